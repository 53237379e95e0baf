package kernel

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

func TestMessagesWithoutSenderBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		letters := newRecorder()
		s.as.EventStream.Subscribe(func(event any) {
			if letter, ok := event.(*actor.DeadLetterEvent); ok {
				letters.add(letter.Message)
			}
		})
		until := make(chan struct{})
		pid := spawnWith(t, s, echo, PropsOptions{MailboxLimit: 2})
		s.Tell(pid, wedge{until})
		synctest.Wait()
		for n := range 3 {
			s.Tell(pid, ping{n})
		}
		require.Equal(t, []any{ping{2}}, letters.all(), "full")
		s.as.Root.Stop(pid)
		close(until)
		synctest.Wait()
		require.Equal(t, []any{ping{0}, ping{1}}, letters.all(), "queued when it stopped")
		s.Tell(pid, ping{3})
		s.Tell(nil, ping{4})
		require.Equal(t, []any{ping{3}, ping{4}}, letters.all(), "gone")
	})
}

func TestFuturesGetADeadLetterResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		until := make(chan struct{})
		pid := spawnWith(t, s, echo, PropsOptions{MailboxLimit: 1})
		s.Tell(pid, wedge{until})
		synctest.Wait()
		waiting := s.as.Root.RequestFuture(pid, ping{}, time.Hour)
		require.ErrorIs(t, s.as.Root.RequestFuture(pid, ping{}, time.Hour).Wait(), actor.ErrDeadLetter, "full")
		s.as.Root.Stop(pid)
		close(until)
		require.ErrorIs(t, waiting.Wait(), actor.ErrDeadLetter, "queued")
		require.ErrorIs(t, s.as.Root.RequestFuture(pid, ping{}, time.Hour).Wait(), actor.ErrDeadLetter, "gone")
	})
}

func TestLogNamesTheComponentAndNoContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		s.Tell(s.as.NewLocalPID("nobody"), "secret")
		shutdown(t, s)
		require.Contains(t, log.String(), `msg="actor system started" component=protoactor`)
		require.Contains(t, log.String(), `msg="dead letter" component=kernel actor=nobody type=string`)
		require.NotContains(t, log.String(), "secret")
	})
}
