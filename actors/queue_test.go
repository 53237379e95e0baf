package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

func mode(m messages.QueueMode) func(*messages.SubmitTurn) {
	return func(t *messages.SubmitTurn) { t.QueueMode = string(m) }
}

func TestFollowupsThatComeWhileARunIsActiveBecomeOneRun(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("first")).Otherwise(testkit.Stream("both"))
		first := h.submit("a")
		second := h.submit("b", mode(messages.QueueFollowup))
		third := h.submit("c", mode(messages.QueueFollowup))
		require.Equal(t, "queued", second.GetDisposition())
		require.Equal(t, "merged", third.GetDisposition())
		require.Equal(t, second.GetTurnId(), third.GetMergedInto())
		require.Equal(t, second.GetRunId(), third.GetRunId())
		close(gate)
		require.Equal(t, "first", h.end(first.GetTurnId()).GetContent())
		require.Equal(t, "answered", h.end(second.GetTurnId()).GetState())
		time.Sleep(time.Second)
		merged := h.end(third.GetTurnId())
		require.Equal(t, "merged", merged.GetState())
		require.Equal(t, "both", merged.GetContent(), "the answer of the run that took it")
		h.model.ExpectCalls(2)
		require.Equal(t, "b\nc", h.state().GetConversationHistory()[2].GetContent())
	})
}

func TestInterruptStopsTheRunAndGoesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("half"), testkit.HangUntilCancel()).Otherwise(testkit.Stream("next"))
		sub := h.subscribe(0)
		first, waiting := h.submit("long", steering), h.submit("waits")
		synctest.Wait()
		urgent := h.submit("now", mode(messages.QueueInterrupt))
		require.Equal(t, "queued", urgent.GetDisposition())
		require.Zero(t, urgent.GetPosition())
		h.model.ExpectCanceled()
		require.Equal(t, "interrupted", h.end(first.GetTurnId()).GetState())
		require.Equal(t, "answered", h.end(urgent.GetTurnId()).GetState())
		require.Equal(t, "answered", h.end(waiting.GetTurnId()).GetState())
		require.Equal(t, []string{"long"}, h.notes())
		var runs []string
		for _, item := range h.items(sub) {
			if r := item.(*messages.DeliveryIntent).GetRouterResponse(); r != nil {
				runs = append(runs, r.GetRunId())
			}
		}
		require.Equal(t, []string{first.GetRunId(), urgent.GetRunId(), waiting.GetRunId()}, runs, "I9")
		sub.Close()
	})
}

// B08, B11: an offer that a plain run refuses becomes a turn of its own, exactly once.
func TestB08SteerOfAPlainRunFallsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("first")).Otherwise(testkit.Stream("second"))
		h.submit("a")
		synctest.Wait()
		steer := h.submit("b", mode(messages.QueueSteer), steering)
		require.Equal(t, "steering", steer.GetDisposition())
		require.Equal(t, "offered", steer.GetState())
		synctest.Wait()
		status, err := h.client.Turn(t.Context(), key, steer.GetTurnId())
		require.NoError(t, err)
		require.Equal(t, "queued", status.GetState())
		close(gate)
		require.Equal(t, "second", h.end(steer.GetTurnId()).GetContent())
		require.Equal(t, []string{"b"}, h.notes())
		h.model.ExpectCalls(2)
	})
}

// B13: a waiting turn can be taken back, and a second time tells the same.
func TestB13WithdrawIsIdempotentAndTheTurnNeverRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("first"))
		first, second := h.submit("a"), h.submit("b", steering)
		for range 2 {
			done, state, err := h.client.Withdraw(t.Context(), key, second.GetTurnId())
			require.NoError(t, err)
			require.True(t, done)
			require.Equal(t, messages.TurnWithdrawn, state)
		}
		done, state, err := h.client.Withdraw(t.Context(), key, first.GetTurnId())
		require.NoError(t, err)
		require.False(t, done)
		require.Equal(t, messages.TurnRunning, state)
		close(gate)
		h.end(first.GetTurnId())
		require.Empty(t, h.notes(), "no run took it")
		require.Equal(t, "withdrawn", h.end(second.GetTurnId()).GetState())
		_, _, err = h.client.Withdraw(t.Context(), key, "turn_never")
		requireCode(t, messages.CodeUnknownTurn, err)
		h.model.ExpectCalls(1)
	})
}

func TestExplainSaysWhatSubmitThenDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("first")).Otherwise(testkit.Stream("more"))
		_, err := h.client.Explain(t.Context(), key, turn("x"))
		requireCode(t, messages.CodeUnknownSession, err)
		_, err = h.client.Start(t.Context(), key, nil)
		require.NoError(t, err)
		for _, m := range []messages.QueueMode{
			messages.QueueCollect, messages.QueueFollowup, messages.QueueFollowup, messages.QueueSteer, messages.QueueSteerBacklog, messages.QueueInterrupt,
		} {
			request := turn("x", mode(m))
			told, err := h.client.Explain(t.Context(), key, request)
			require.NoError(t, err)
			again, err := h.client.Explain(t.Context(), key, request)
			require.NoError(t, err)
			require.Equal(t, told.String(), again.String(), "nothing was done")
			accepted, err := h.client.Submit(t.Context(), key, request)
			require.NoError(t, err)
			require.Equal(t, told.GetDisposition(), accepted.GetDisposition(), m)
			require.Equal(t, told.GetPosition(), accepted.GetPosition(), m)
			require.Equal(t, told.GetMergedInto(), accepted.GetMergedInto(), m)
			require.NotEmpty(t, told.GetReason())
			synctest.Wait()
		}
		close(gate)
		time.Sleep(time.Minute)
	})
}

// An explanation that asks the index disturbs nothing, whatever the session was asked before.
func TestExplainOfAKeyTellsOfItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("ok"))
		first := h.submit("a", keyed("k"))
		for _, k := range []string{"new", "k", "other"} {
			told, err := h.client.Explain(t.Context(), key, turn("a", keyed(k)))
			require.NoError(t, err)
			require.Equal(t, map[bool]string{true: "duplicate", false: "queued"}[k == "k"], told.GetDisposition())
		}
		require.Equal(t, uint32(1), h.state().GetActiveRun().GetAttempt())
		_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		require.Equal(t, "cancelled", h.end(first.GetTurnId()).GetState())
		told, err := h.client.Explain(t.Context(), key, turn("a", keyed("k")))
		require.NoError(t, err)
		require.Equal(t, "duplicate", told.GetDisposition())
	})
}

func TestQueueSurvivesARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("ok"))
		turns := []*messages.TurnAccepted{
			h.submit("a"), h.submit("b", mode(messages.QueueFollowup)), h.submit("c", mode(messages.QueueFollowup)),
			h.submit("d"), h.submit("e", mode(messages.QueueSteerBacklog)),
		}
		*h = *h.restart()
		for i, want := range []string{"answered", "answered", "merged", "answered", "answered"} {
			require.Equal(t, want, h.end(turns[i].GetTurnId()).GetState(), i)
		}
		require.Empty(t, h.state().GetQueue())
		require.Empty(t, h.state().GetPendingSteers())
	})
}
