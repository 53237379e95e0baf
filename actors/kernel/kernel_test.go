package kernel

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// Messages of the tests.
type (
	ping    struct{ n int }
	pong    struct{ n int }
	boom    struct{}
	urgent  struct{ n int }
	wedge   struct{ until chan struct{} }
	deferIt struct{}
)

func (urgent) ControlMessage() {}

// newSystem makes a system that is shut down, and must end, before the test does.
func newSystem(t *testing.T) *System {
	t.Helper()
	s := New(Config{})
	t.Cleanup(func() { shutdown(t, s) })
	return s
}

func shutdown(t *testing.T, s *System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx))
}

func spawnFunc(t *testing.T, s *System, receive actor.ReceiveFunc) *actor.PID {
	t.Helper()
	return spawnWith(t, s, receive, PropsOptions{})
}

func spawnWith(t *testing.T, s *System, receive actor.ReceiveFunc, opts PropsOptions) *actor.PID {
	t.Helper()
	pid, err := s.Spawn(s.Props(func() actor.Actor { return receive }, opts))
	require.NoError(t, err)
	return pid
}

// echo answers ping with pong, fails on boom, blocks on wedge.
func echo(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case ping:
		ctx.Respond(pong(msg))
	case boom:
		panic("boom")
	case wedge:
		<-msg.until
	}
}

// recorder keeps what an actor has seen, for assertions after synctest.Wait.
type recorder struct{ seen chan any }

func newRecorder() *recorder { return &recorder{seen: make(chan any, 1000)} }

func (r *recorder) add(v any) { r.seen <- v }

func (r *recorder) all() []any {
	var all []any
	for {
		select {
		case v := <-r.seen:
			all = append(all, v)
		default:
			return all
		}
	}
}

// probe is an actor that records the user and control messages it gets.
func probe(t *testing.T, s *System) (*actor.PID, *recorder) {
	t.Helper()
	rec := newRecorder()
	return spawnFunc(t, s, func(ctx actor.Context) {
		switch msg := ctx.Message().(type) {
		case *actor.Started, *actor.Stopping, *actor.Stopped:
		default:
			rec.add(msg)
		}
	}), rec
}

func TestAskGetsTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		answer, err := s.Ask(t.Context(), spawnFunc(t, s, echo), ping{7})
		require.NoError(t, err)
		require.Equal(t, pong{7}, answer)
		requireNoAsks(t, s)
	})
}

// requireNoAsks fails if a reply address is left in the registry.
func requireNoAsks(t *testing.T, s *System) {
	t.Helper()
	for _, bucket := range s.as.ProcessRegistry.LocalPIDs.LocalPIDs {
		for id := range bucket.Items() {
			require.NotContains(t, id, askPrefix)
		}
	}
}

func TestAskErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			if _, ok := ctx.Message().(ping); ok {
				ctx.Respond(context.DeadlineExceeded)
			}
		})
		_, err := s.Ask(t.Context(), pid, ping{})
		require.Equal(t, context.DeadlineExceeded, err, "an answer that is an error")

		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, context.DeadlineExceeded)
		defer cancel()
		begin := time.Now()
		_, err = s.Ask(ctx, pid, "no answer")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Minute, time.Since(begin))

		_, err = s.Ask(ctx, pid, ping{})
		require.ErrorIs(t, err, context.DeadlineExceeded, "ctx is over before")

		_, err = s.Ask(t.Context(), s.as.NewLocalPID("nobody"), ping{})
		require.ErrorIs(t, err, ErrStopped)
		_, err = s.Ask(t.Context(), nil, ping{})
		require.ErrorIs(t, err, ErrStopped)
		requireNoAsks(t, s)
	})
}

func TestFullMailboxRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		var handled atomic.Int32
		pid := spawnWith(t, s, func(ctx actor.Context) {
			switch msg := ctx.Message().(type) {
			case wedge:
				<-msg.until
			case ping, urgent:
				handled.Add(1)
			}
		}, PropsOptions{MailboxLimit: 3})
		sender, got := probe(t, s)

		until := make(chan struct{})
		s.Tell(pid, wedge{until})
		synctest.Wait()
		for n := range 5 {
			s.TellAs(pid, ping{n}, sender)
		}
		_, err := s.Ask(t.Context(), pid, ping{})
		require.ErrorIs(t, err, ErrMailboxFull)
		s.Tell(pid, urgent{})
		s.as.Root.Poison(pid)
		close(until)
		synctest.Wait()
		require.Equal(t, []any{
			&Refusal{Message: ping{3}, Err: ErrMailboxFull},
			&Refusal{Message: ping{4}, Err: ErrMailboxFull},
		}, got.all())
		require.EqualValues(t, 4, handled.Load(), "three of the user lane, one of the control lane")
		_, err = s.Ask(t.Context(), pid, ping{})
		require.ErrorIs(t, err, ErrStopped, "the poison pill fits into a full mailbox")
	})
}

func TestLanesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		rec := newRecorder()
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			switch msg := ctx.Message().(type) {
			case wedge:
				<-msg.until
			case ping, urgent, *actor.Terminated:
				rec.add(msg)
			}
		})
		until := make(chan struct{})
		s.Tell(pid, wedge{until})
		synctest.Wait()
		s.Tell(pid, ping{1})
		s.Tell(pid, urgent{2})
		s.Tell(pid, ping{3})
		s.Tell(pid, urgent{4})
		who := s.as.NewLocalPID("x")
		process, _ := s.as.ProcessRegistry.Get(pid)
		terminated := &actor.Terminated{Who: who}
		process.SendSystemMessage(pid, terminated)
		close(until)
		synctest.Wait()
		require.Equal(t, []any{terminated, urgent{2}, urgent{4}, ping{1}, ping{3}}, rec.all())
	})
}

func TestHoldKeepsTheUserLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		rec := newRecorder()
		pid := spawnFunc(t, s, func(ctx actor.Context) {
			switch msg := ctx.Message().(type) {
			case *actor.Started:
				s.Hold(ctx.Self())
			case ping:
				rec.add(msg)
			case urgent:
				rec.add(msg)
				if msg.n == 9 {
					s.Release(ctx.Self())
				}
			}
		})
		s.Tell(pid, ping{1})
		s.Tell(pid, urgent{2})
		synctest.Wait()
		require.Equal(t, []any{urgent{2}}, rec.all())
		s.Tell(pid, urgent{9})
		synctest.Wait()
		require.Equal(t, []any{urgent{9}, ping{1}}, rec.all())
	})
}

func TestStopWaitsAndPoisonFinishesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		var handled atomic.Int32
		slow := func(ctx actor.Context) {
			if _, ok := ctx.Message().(ping); ok {
				time.Sleep(time.Second)
				handled.Add(1)
			}
		}
		pid := spawnFunc(t, s, slow)
		for range 3 {
			s.Tell(pid, ping{})
		}
		require.NoError(t, s.Poison(t.Context(), pid))
		require.EqualValues(t, 3, handled.Load())
		require.NoError(t, s.Poison(t.Context(), pid), "gone already")

		pid = spawnFunc(t, s, slow)
		for range 3 {
			s.Tell(pid, ping{})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, ErrMailboxFull)
		defer cancel()
		require.ErrorIs(t, s.Stop(ctx, pid), ErrMailboxFull, "the cause of ctx")
		require.NoError(t, s.Stop(t.Context(), pid))
		require.EqualValues(t, 4, handled.Load())
		require.NoError(t, s.Stop(t.Context(), nil))
		requireNoAsks(t, s)
	})
}

func TestAfterSendsOnceUnlessStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		pid, got := probe(t, s)
		stop := s.After(time.Minute, pid, ping{1})
		s.After(time.Hour, pid, ping{2})
		time.Sleep(30 * time.Second)
		stop()
		stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []any{ping{2}}, got.all())
	})
}

func TestShutdownStopsGroupsInReverseOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		rec := newRecorder()
		named := func(name string) *actor.Props {
			return s.Props(func() actor.Actor {
				return actor.ReceiveFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Stopping); ok {
						time.Sleep(time.Second)
						rec.add(name)
					}
				})
			}, PropsOptions{})
		}
		first, second := named("journal"), named("gateway")
		for _, props := range []*actor.Props{first, second, first} {
			_, err := s.Spawn(props)
			require.NoError(t, err)
		}
		_, err := s.SpawnIn("edge", named("edge"))
		require.NoError(t, err)
		shutdown(t, s)
		require.Equal(t, []any{"edge", "gateway", "journal", "journal"}, rec.all())
		shutdown(t, s)
		_, err = s.Spawn(first)
		require.ErrorIs(t, err, ErrStopped)
		require.True(t, s.as.IsStopped())
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		pid := spawnFunc(t, s, echo)
		until := make(chan struct{})
		s.Tell(pid, wedge{until})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
		close(until)
		shutdown(t, s)
	})
}
