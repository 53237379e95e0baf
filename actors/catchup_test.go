package actors_test

import (
	"context"
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

// I11: a subscriber that comes while others' commands share its append is told the numbers of its own place among them: what
// comes after the resync goes on where that ended, and nothing is told twice.
func TestSubscriberBetweenCommandsOfOneAppendSeesNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		h.journal.Hold()
		record := func() {
			go func() {
				_, _ = h.client.Record(t.Context(), key, nil, &messages.WorkflowCompleted{})
			}()
			synctest.Wait()
		}
		send := func(text string) {
			go func() { _, _ = h.client.Submit(t.Context(), key, turn(text)) }()
			synctest.Wait()
		}
		record() // in flight: what follows shares the next append
		send("two")
		subs := make(chan *actors.Subscription, 2)
		for _, after := range []uint64{0, 1_000_000} {
			go func() { subs <- h.subscribe(after) }()
			synctest.Wait()
		}
		send("three")
		h.journal.Release()
		for range 2 {
			sub := <-subs
			last, next := uint64(0), sub.Start.GetNextSeq()
			for _, item := range h.items(sub) {
				switch m := item.(type) {
				case *messages.DeliveryIntent:
					require.Equal(t, last+1, m.GetSeq(), "%v", m)
					last = m.GetSeq()
				case *messages.Resync:
					require.Equal(t, next-1, m.GetUpToSeq())
					last = m.GetUpToSeq()
				}
			}
			require.Greater(t, last, next)
			sub.Close()
		}
	})
}

// I11: an activation that begins anew in place (a conflict, an outcome that stays unknown) is a seam for its subscribers as a
// restart is: they are told of the gap, and get the end that was stored while nobody could know.
func TestActivationThatBeginsAnewTellsItsSubscribers(t *testing.T) {
	for name, fault := range map[string]func(*testkit.FaultyJournal){
		"conflict": func(j *testkit.FaultyJournal) { j.ConflictNext() },
		"unknown, stored": func(j *testkit.FaultyJournal) {
			j.UnknownNext(true)
			j.FailNext(20, persistence.ErrUnknown)
		},
		"unknown, not stored": func(j *testkit.FaultyJournal) { j.FailNext(20, persistence.ErrUnknown) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				gate := make(chan struct{})
				h.model.Call(testkit.WaitFor(gate), testkit.Stream("one")).Otherwise(testkit.Stream("again"))
				accepted := h.submit("hi", steering)
				sub := h.subscribe(0)
				defer sub.Close()
				synctest.Wait()
				fault(h.journal)
				close(gate)
				responses, resyncs := 0, 0
				for last := uint64(0); responses == 0; {
					item, err := sub.Next(t.Context())
					require.NoError(t, err)
					switch m := item.(type) {
					case *messages.DeliveryIntent:
						if _, ok := m.Intent().(*messages.RouterResponse); ok {
							responses++
							require.Greater(t, m.GetSeq(), last)
							break // one of before the gap keeps its number
						}
						require.Equal(t, last+1, m.GetSeq(), "a seam that nobody told of: %v", m)
						last = m.GetSeq()
					case *messages.Resync:
						resyncs++
						last = m.GetUpToSeq()
					}
				}
				for _, item := range h.items(sub) {
					if m, ok := item.(*messages.DeliveryIntent); ok {
						require.NotContains(t, showIntent(m.Intent()), "response", "told twice")
					}
					if _, ok := item.(*messages.Resync); ok {
						resyncs++
					}
				}
				require.Positive(t, resyncs)
				h.end(accepted.GetTurnId())
				require.Equal(t, []string{"hi"}, h.notes())
			})
		})
	}
}

// A stop that comes while sessions still recover starts nothing and counts no attempt: the open work is the next start's.
func TestStopDuringRecoveryLeavesOpenWorkToTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("at last"))
		first, second := h.submit("one", steering), h.submit("two")
		synctest.Wait()
		for range 5 {
			h.stop()
			next := start(t, h.journal, h.model, nil)
			*h = *next
			h.journal.FailClaims(1, persistence.ErrUnavailable)
			h.activate()
			synctest.Wait()
			begin := time.Now()
			require.NoError(t, h.dir.Drain(t.Context(), t.Context()))
			require.Zero(t, time.Since(begin), "nothing runs, so nothing is waited for")
			time.Sleep(time.Minute) // the claim comes through
			h.model.ExpectCalls(1)
			_, err := h.client.Submit(t.Context(), key, turn("three"))
			requireCode(t, messages.CodeDraining, err)
			require.NoError(t, h.dir.Drain(t.Context(), t.Context()))
		}
		*h = *h.restart()
		require.Equal(t, "at last", h.end(first.GetTurnId()).GetContent())
		require.Equal(t, "at last", h.end(second.GetTurnId()).GetContent())
		require.Equal(t, []string{"one"}, h.notes())
	})
}

// While the journal takes nothing, the end of a run is tried again, and commands behind it are refused in time and for good:
// also those that would first have to be looked up.
func TestCommandsBehindAnEndThatCannotBeStoredAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("one")).Otherwise(testkit.Stream("two"))
		accepted := h.submit("hi", steering)
		synctest.Wait()
		h.journal.FailNext(20, persistence.ErrFull)
		close(gate)
		time.Sleep(10 * time.Second)
		for _, change := range []func(*messages.SubmitTurn){keyed("k"), steering} {
			begin := time.Now()
			_, err := h.client.Submit(t.Context(), key, turn("more", change))
			requireCode(t, messages.CodeUnavailable, err)
			require.LessOrEqual(t, time.Since(begin), 5*time.Second)
		}
		require.Equal(t, "one", h.end(accepted.GetTurnId()).GetContent())
		_, err := h.client.TurnByKey(t.Context(), key, "k")
		requireCode(t, messages.CodeUnknownTurn, err)
		require.Equal(t, "started", h.submit("more", keyed("k")).GetDisposition())
		require.Equal(t, []string{"hi"}, h.notes())
	})
}

// slowIndex is a journal whose index takes its time.
type slowIndex struct{ persistence.Journal }

func (j slowIndex) Lookup(ctx context.Context, key messages.Key, index persistence.Index, name string) ([]byte, bool, error) {
	time.Sleep(time.Second)
	return j.Journal.Lookup(ctx, key, index, name)
}

// No command is lost by a passivation, or by the end of its session, while its answer is looked up.
func TestQuestionUnderWayOutlivesItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		id := h.submit("one", keyed("k")).GetTurnId()
		h.end(id)
		h.stop()
		*h = *start(t, h.journal, h.model, func(d *session.Deps) {
			d.Idle = 10 * time.Millisecond
			d.Journal = slowIndex{d.Journal}
		})
		ask := map[string]func(context.Context) (*messages.TurnStatus, error){
			"by id":  func(ctx context.Context) (*messages.TurnStatus, error) { return h.client.Turn(ctx, key, id) },
			"by key": func(ctx context.Context) (*messages.TurnStatus, error) { return h.client.TurnByKey(ctx, key, "k") },
		}
		for name, turn := range ask {
			_, err := h.client.State(t.Context(), key)
			require.NoError(t, err)
			within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			status, err := turn(within)
			cancel()
			require.NoError(t, err, name)
			require.Equal(t, "answered", status.GetState())
		}
		time.Sleep(time.Minute)
		active, err := h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active, "afterwards it is passivated as any other")

		refused := make(chan error, 1)
		go func() {
			_, err := h.client.Turn(t.Context(), key, id)
			refused <- err
		}()
		synctest.Wait()
		require.NoError(t, h.dir.Stop(t.Context()))
		require.True(t, requireCode(t, messages.CodeUnavailable, <-refused).GetRetryable())
		time.Sleep(time.Second) // the index answers a session that is gone
	})
}
