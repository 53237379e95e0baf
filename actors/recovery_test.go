package actors_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

func TestAcknowledgedTurnIsAnsweredAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("half"), testkit.HangUntilCancel()).Otherwise(testkit.Stream("whole"))
		_, err := h.client.Record(t.Context(), key, nil, &messages.WorkflowStarted{WorkflowId: "w"})
		require.NoError(t, err)
		first, second := h.submit("one", steering), h.submit("two")
		synctest.Wait()
		before, err := h.client.RouterState(t.Context(), key)
		require.NoError(t, err)

		next := h.restart()
		*h = *next
		status := h.end(first.GetTurnId())
		require.Equal(t, "answered", status.GetState())
		require.Equal(t, "whole", status.GetContent())
		require.Equal(t, "answered", h.end(second.GetTurnId()).GetState())
		require.Equal(t, []string{"one"}, h.notes(), "one note, not one for each attempt")
		after, err := h.client.RouterState(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, before.WorkflowStatus(), after.WorkflowStatus())
		require.Len(t, h.state().GetConversationHistory(), 4)
	})
}

func TestNumbersOfOutputAreNeverUsedTwiceOverARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		sub := h.subscribe(0)
		h.end(h.submit("one").GetTurnId())
		items := h.items(sub)
		last := items[len(items)-1].(*messages.DeliveryIntent)
		sub.Close()

		*h = *h.restart()
		sub = h.subscribe(last.GetSeq())
		h.end(h.submit("two").GetTurnId())
		items = h.items(sub)
		require.Equal(t, []string{"gap", "resync"}, show(items)[:2], "numbers were skipped, so the reader is told")
		resync := items[1].(*messages.Resync)
		require.Equal(t, resync.GetUpToSeq()+1, items[2].(*messages.DeliveryIntent).GetSeq())
		require.Greater(t, resync.GetUpToSeq(), last.GetSeq())
		sub.Close()
	})
}

func TestUnacknowledgedFinalIsThereForTheNextSubscriber(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		*h = *h.restart()
		sub := h.subscribe(0)
		require.EqualValues(t, 1, sub.Start.GetPendingFinals())
		items := h.items(sub)
		require.Equal(t, []string{"response completed ok", "gap", "resync"}, show(items))
		h.client.Ack(key, items[0].(*messages.DeliveryIntent).GetSeq())
		sub.Close()
		synctest.Wait()
		*h = *h.restart()
		sub = h.subscribe(0)
		require.Zero(t, sub.Start.GetPendingFinals())
		sub.Close()
	})
}

// B19: a stop of the user is not taken for a crash.
func TestB19AbortedRunIsNotResumedAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		defer close(gate)
		h.model.Call(testkit.Stream("half"), testkit.HangDespiteCancel(gate))
		accepted := h.submit("one")
		synctest.Wait()
		_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		*h = *h.restart()
		require.Equal(t, "cancelled", h.end(accepted.GetTurnId()).GetState())
		h.model.ExpectCalls(1)
	})
}

func TestRunThatTakesTheProcessDownEachTimeEndsAsCrashLoop(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.HangUntilCancel())
		accepted := h.submit("poison", steering)
		for range h.deps.Core.RecoveryMaxAttempts {
			synctest.Wait()
			*h = *h.restart()
		}
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "failed", status.GetState())
		require.Equal(t, "crash_loop", status.GetReason())
		require.Equal(t, []string{"poison"}, h.notes())
		h.model.ExpectCalls(3)
	})
}

func TestOrderlyStopSuspendsTheRunAndCountsNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel()).Call(testkit.HangUntilCancel()).Call(testkit.HangUntilCancel()).
			Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("done"))
		accepted, waiting := h.submit("long"), h.submit("next")
		for range 4 {
			synctest.Wait()
			budget, cancel := context.WithTimeout(t.Context(), time.Second)
			require.NoError(t, h.dir.Drain(budget, t.Context()))
			cancel()
			_, err := h.client.Submit(t.Context(), key, turn("late"))
			requireCode(t, messages.CodeDraining, err)
			*h = *h.restart()
		}
		require.Equal(t, "answered", h.end(accepted.GetTurnId()).GetState())
		require.Equal(t, "answered", h.end(waiting.GetTurnId()).GetState())
	})
}

func TestDrainLetsARunEndWithinItsBudget(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Delay(10*time.Second), testkit.Stream("done"))
		accepted := h.submit("long")
		budget, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		require.NoError(t, h.dir.Drain(budget, t.Context()))
		require.Equal(t, 10*time.Second, time.Since(begin).Round(time.Second))
		require.Equal(t, "answered", h.end(accepted.GetTurnId()).GetState())
	})
}

func TestTurnsThatOutlivedALongDowntimeExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel())
		running, waiting := h.submit("one", steering), h.submit("two", steering)
		synctest.Wait()
		h.stop()
		time.Sleep(time.Hour)
		*h = *start(t, h.journal, h.model, nil)
		h.activate()
		require.Equal(t, "interrupted", h.end(running.GetTurnId()).GetState())
		require.Equal(t, "expired", h.end(waiting.GetTurnId()).GetState())
		require.Equal(t, []string{"one"}, h.notes(), "a turn that no run took leaves no note")
	})
}

func TestLongRunIsNoDowntime(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		var steps []testkit.Step
		for range 60 {
			steps = append(steps, testkit.Active(), testkit.Delay(29*time.Second))
		}
		h.model.Call(append(steps, testkit.HangUntilCancel())...).Otherwise(testkit.Stream("done"))
		accepted := h.submit("long")
		time.Sleep(25 * time.Minute) // longer than recovery.max_age
		*h = *h.restart()
		require.Equal(t, "answered", h.end(accepted.GetTurnId()).GetState())
	})
}

// B22, B23: the same key is admitted once, also after the turn ended, the session passivated and the process restarted.
func TestB22B23SameKeyIsAdmittedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("once"))
		first := h.submit("pay", keyed("k"))
		h.end(first.GetTurnId())
		time.Sleep(2 * h.deps.Idle)
		active, err := h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active, "passivated")

		var wg sync.WaitGroup
		answers := make([]*messages.TurnAccepted, 8)
		for i := range answers {
			wg.Go(func() {
				answers[i], _ = h.client.Submit(t.Context(), key, turn("pay", keyed("k")))
			})
		}
		wg.Wait()
		*h = *h.restart()
		again := h.submit("pay", keyed("k"))
		for _, a := range slices.Concat(answers, []*messages.TurnAccepted{again}) {
			require.Equal(t, "duplicate", a.GetDisposition())
			require.Equal(t, first.GetTurnId(), a.GetTurnId())
			require.Equal(t, first.GetRunId(), a.GetRunId())
			require.Equal(t, "answered", a.GetState())
		}
		_, err = h.client.Submit(t.Context(), key, turn("pay twice", keyed("k")))
		requireCode(t, messages.CodeIdempotencyConflict, err)
		status, err := h.client.TurnByKey(t.Context(), key, "k")
		require.NoError(t, err)
		require.Equal(t, "once", status.GetContent())
		h.model.ExpectCalls(1)
	})
}

func TestKeyIsForgottenAfterItsWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		first := h.submit("pay", keyed("k"))
		time.Sleep(h.deps.Core.IdempotencyWindow)
		second := h.submit("pay", keyed("k"))
		require.Equal(t, "started", second.GetDisposition())
		require.NotEqual(t, first.GetTurnId(), second.GetTurnId())
		h.end(second.GetTurnId())
	})
}

func TestNoMessageIsLostByPassivation(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("first").GetTurnId())
		for i := range 200 {
			// Around the very instant at which the session asks for leave.
			time.Sleep(h.deps.Idle - time.Duration(i%5-2)*time.Nanosecond)
			accepted := h.submit("again")
			require.Equal(t, "answered", h.end(accepted.GetTurnId()).GetState())
		}
	})
}

func TestSessionWithASubscriberStays(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		sub := h.subscribe(0)
		time.Sleep(3 * h.deps.Idle)
		active, err := h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Len(t, active, 1)
		sub.Close()
		time.Sleep(2 * h.deps.Idle)
		active, err = h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active)
	})
}

// I6: nothing is acknowledged, and no effect runs, when the append fails.
func TestFailedAppendHasNoEffect(t *testing.T) {
	for _, failure := range []error{persistence.ErrFull, persistence.ErrUnavailable, persistence.ErrFailed} {
		t.Run(failure.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				h.model.Otherwise(testkit.Stream("ok"))
				_, err := h.client.Start(t.Context(), key, &messages.SessionConfig{})
				require.NoError(t, err)
				h.journal.FailNext(1, failure)
				_, err = h.client.Submit(t.Context(), key, turn("hi"))
				require.True(t, requireCode(t, messages.CodeUnavailable, err).GetRetryable())
				require.Empty(t, h.model.Calls())
				require.Empty(t, h.state().GetConversationHistory())
				require.Equal(t, "answered", h.end(h.submit("hi again").GetTurnId()).GetState())
			})
		})
	}
}

// The end of a run is tried again and never dropped.
func TestEndOfARunOutlivesAJournalThatTakesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("answer"))
		accepted := h.submit("hi", steering)
		synctest.Wait()
		h.journal.FailNext(8, persistence.ErrFull)
		close(gate)
		require.Equal(t, "answer", h.end(accepted.GetTurnId()).GetContent())
		require.Equal(t, []string{"hi"}, h.notes())
	})
}

func TestUnknownOutcomeIsAskedUntilItIsKnown(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				h.model.Call(testkit.Stream("once"))
				h.journal.UnknownNext(stored)
				accepted := h.submit("hi")
				require.Equal(t, "once", h.end(accepted.GetTurnId()).GetContent())
				h.model.ExpectCalls(1)
			})
		})
	}
}

// A second try that surely stored nothing says nothing of the first: the turn may be there, and then it runs.
func TestUnknownOutcomeIsNotSettledByATryThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		_, err := h.client.Start(t.Context(), key, &messages.SessionConfig{})
		require.NoError(t, err)
		h.journal.UnknownNext(true)
		h.journal.FailNext(1, persistence.ErrUnavailable)
		accepted := h.submit("hi")
		time.Sleep(time.Minute)
		require.Len(t, h.model.ExpectCalls(1), 1)
		require.Equal(t, "answered", h.end(accepted.GetTurnId()).GetState())
	})
}

func TestOutcomeThatStaysUnknownIsToldWithTheTurnsID(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		_, err := h.client.Start(t.Context(), key, &messages.SessionConfig{})
		require.NoError(t, err)
		h.journal.UnknownNext(true)
		h.journal.FailNext(50, persistence.ErrUnknown)
		_, err = h.client.Submit(t.Context(), key, turn("hi"))
		f := requireCode(t, messages.CodeUnavailable, err)
		require.NotEmpty(t, f.GetTurnId())
		time.Sleep(time.Hour)
		require.Equal(t, "answered", h.end(f.GetTurnId()).GetState(), "it had been stored")
	})
}

func TestConflictIsCuredByANewReplay(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		h.journal.ConflictNext()
		require.Equal(t, "answered", h.end(h.submit("two").GetTurnId()).GetState())
		require.Len(t, h.state().GetConversationHistory(), 4)
	})
}

// I12: a writer that finds itself fenced stops its run, tells who waits, and ends.
func TestFencedSessionStopsItsRunAndEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("by the new owner"))
		accepted := h.submit("hi")
		synctest.Wait()
		_, err := h.journal.StealEpoch(t.Context(), key)
		require.NoError(t, err)
		_, err = h.client.Submit(t.Context(), key, turn("more"))
		requireCode(t, messages.CodeUnavailable, err)
		h.model.ExpectCanceled()
		require.Equal(t, "by the new owner", h.end(accepted.GetTurnId()).GetContent())
	})
}

func TestJournalThatCannotBeReadAtFirstDelaysTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		*h = *h.restart()
		h.journal.FailClaims(2, persistence.ErrUnavailable)
		_, err := h.client.State(t.Context(), key)
		requireCode(t, messages.CodeUnavailable, err)
		time.Sleep(time.Minute)
		require.Len(t, h.state().GetConversationHistory(), 2)
	})
}

func TestDamagedSessionIsQuarantinedAndTheOthersGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		*h = *h.restart()
		h.journal.FailClaims(1, &persistence.CorruptError{Key: key, Stream: messages.StreamLedger, Seq: 1, Reason: "test"})
		_, err := h.client.Submit(t.Context(), key, turn("two"))
		requireCode(t, messages.CodeQuarantined, err)
		other := messages.NewKey("other")
		_, err = h.client.Submit(t.Context(), other, turn("hello"))
		require.NoError(t, err)
		synctest.Wait()
	})
}

// I1: what a session tells is what its event log says.
func TestStateIsTheFoldOfTheEventLog(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		for i := range 60 {
			_, err := h.client.Record(t.Context(), key, nil,
				&messages.StageStarted{StageId: "s"}, &messages.StageCompleted{StageId: "s", Summary: string(rune('a' + i%26))},
				&messages.ForeignEvent{Type: "artifact", Json: []byte(`{"type":"artifact","n":1.0}`)})
			require.NoError(t, err)
		}
		before := h.state()
		*h = *h.restart()
		after := h.state()
		after.Epoch = before.GetEpoch()
		require.True(t, proto.Equal(before, after))
		require.EqualValues(t, 60, after.GetL2Total())
		require.Len(t, after.GetL2Memory(), 50)
	})
}

func TestLedgerIsFoldedAndPruned(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		for range h.deps.Core.CheckpointEvery {
			h.end(h.submit("again").GetTurnId())
		}
		info, err := h.journal.Session(t.Context(), key)
		require.NoError(t, err)
		require.Less(t, info.LedgerHead-info.LedgerStart, uint64(h.deps.Core.CheckpointEvery)+8)
		before := h.state()
		*h = *h.restart()
		after := h.state()
		after.Epoch = before.GetEpoch()
		require.True(t, proto.Equal(before, after))
	})
}

func TestSessionsAreListedWithTheirState(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Delay(time.Hour), testkit.Stream("slow")).Otherwise(testkit.Stream("ok"))
		h.deps.Runner.Limits.FirstToken = 2 * time.Hour
		h.submit("long")
		other := messages.NewKey("other")
		_, err := h.client.Start(t.Context(), other, &messages.SessionConfig{})
		require.NoError(t, err)
		rows, more, err := h.client.Sessions(t.Context(), messages.DefaultTenant, "", "", 10)
		require.NoError(t, err)
		require.False(t, more)
		require.Len(t, rows, 2)
		require.Equal(t, actors.SessionIdle, rows[0].State)
		require.Equal(t, actors.SessionBusy, rows[1].State)
		rows, _, err = h.client.Sessions(t.Context(), messages.DefaultTenant, actors.SessionBusy, "", 10)
		require.NoError(t, err)
		require.Len(t, rows, 1)
	})
}

// Kept output costs an idle session nothing; who comes back later is told of the gap.
func TestIdleSessionLetsGoOfItsOutput(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		h.end(h.submit("one").GetTurnId())
		time.Sleep(50 * time.Second)
		sub := h.subscribe(0)
		require.NotContains(t, show(h.items(sub)), "gap", "it is kept for a while")
		sub.Close()
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		active, err := h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Len(t, active, 1)
		sub = h.subscribe(0)
		require.Equal(t, []string{"response completed ok", "gap", "resync"}, show(h.items(sub)))
		accepted := h.submit("two")
		require.Equal(t, "answered", h.end(accepted.GetTurnId()).GetState())
		require.Contains(t, show(h.items(sub)), "response completed ok", "it goes on after the gap")
		sub.Close()
		synctest.Wait()
		time.Sleep(2 * h.deps.Idle)
		active, err = h.dir.Active(t.Context())
		require.NoError(t, err)
		require.Empty(t, active)
	})
}
