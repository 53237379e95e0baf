package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// panicky panics in the session's own goroutine.
type panicky struct {
	persistence.Journal
	next atomic.Bool
}

func (p *panicky) Append(key messages.Key, expect persistence.Expect, batch persistence.Batch, done func(persistence.Appended, error)) {
	if p.next.CompareAndSwap(true, false) {
		panic("boom")
	}
	p.Journal.Append(key, expect, batch, done)
}

func TestSessionThatPanicsIsRestartedAndTheOthersGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.stop()
		journal := &panicky{Journal: h.journal}
		h.model.Otherwise(testkit.Stream("ok"))
		*h = *start(t, h.journal, h.model, func(d *session.Deps) { d.Journal = journal })
		sub := h.subscribe(0)
		other, err := h.client.Subscribe(t.Context(), messages.NewKey("other"), actors.SubscribeOptions{})
		require.NoError(t, err)
		journal.next.Store(true)
		_, err = h.client.Submit(t.Context(), key, turn("hi"))
		require.True(t, requireCode(t, messages.CodeUnavailable, err).GetRetryable(), "who waits is told at once")
		_, err = sub.Next(t.Context())
		requireCode(t, messages.CodeUnavailable, err) // the subscription ended, and says so
		require.Equal(t, "answered", h.end(h.submit("again").GetTurnId()).GetState())
		_, err = h.client.Submit(t.Context(), messages.NewKey("other"), turn("hello"))
		require.NoError(t, err)
		require.NotEmpty(t, h.items(other))
		sub.Close()
		other.Close()
	})
}

func TestReaderOfAnotherJournalIsResynced(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		sub := h.subscribe(1_000_000)
		require.Equal(t, []string{"gap", "resync"}, show(h.items(sub)))
		sub.Close()
	})
}

// A run whose answer the journal can never take still ends.
func TestAnswerThatIsTooLargeForTheJournalEndsItsRunAsFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("huge"))
		accepted := h.submit("hi", steering)
		synctest.Wait()
		h.journal.FailNext(1, persistence.ErrTooLarge)
		close(gate)
		status := h.end(accepted.GetTurnId())
		require.Equal(t, []string{"hi"}, h.notes())
		require.Equal(t, "failed", status.GetState())
		require.Equal(t, "internal", status.GetReason())
	})
}

// fullDisk takes nothing while it is full.
type fullDisk struct {
	persistence.Journal
	full atomic.Bool
}

func (f *fullDisk) Append(key messages.Key, expect persistence.Expect, batch persistence.Batch, done func(persistence.Appended, error)) {
	if f.full.Load() {
		go done(persistence.Appended{}, persistence.ErrFull)
		return
	}
	f.Journal.Append(key, expect, batch, done)
}

// A disk that stays full does not hold up an orderly stop, and nothing is lost by it.
func TestStopDoesNotWaitForAJournalThatTakesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.stop()
		disk := &fullDisk{Journal: h.journal}
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("answer")).Otherwise(testkit.Stream("again"))
		*h = *start(t, h.journal, h.model, func(d *session.Deps) { d.Journal = disk })
		accepted := h.submit("hi", steering)
		synctest.Wait()
		disk.full.Store(true)
		close(gate)
		time.Sleep(time.Second)
		budget, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		require.NoError(t, h.dir.Drain(budget, t.Context()))
		require.Less(t, time.Since(begin), 10*time.Second)

		*h = *h.restart() // with room again
		require.Equal(t, "again", h.end(accepted.GetTurnId()).GetContent())
		require.Equal(t, []string{"hi"}, h.notes())
	})
}

// A replay in place is no crash: however often the head moves under a run, it is not taken for one that kills the process.
func TestReplaysInPlaceAreNoCrashes(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel()).Call(testkit.HangUntilCancel()).Call(testkit.HangUntilCancel()).
			Call(testkit.HangUntilCancel()).Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("at last"))
		accepted := h.submit("long")
		for range 5 {
			synctest.Wait()
			h.journal.ConflictNext()
			_, err := h.client.Record(t.Context(), key, nil, &messages.StageStarted{StageId: "s"})
			require.NoError(t, err)
		}
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "answered", status.GetState(), status.GetReason())
	})
}
