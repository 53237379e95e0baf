package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

func TestTurnIsAnsweredInTheDocumentedOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("Hel"), testkit.Delay(time.Second), testkit.Stream("lo"), testkit.Usage(3, 2))
		sub := h.subscribe(0)
		accepted := h.submit("hi")
		require.Equal(t, "started", accepted.GetDisposition())
		items := h.items(sub)
		require.Equal(t, []string{
			"phase accepted", "phase waiting_for_slot", "phase dispatched", "phase starting_engine", "phase streaming",
			"delta Hel", "delta lo", "phase finalizing", "finalize Hello", "turn answered", "phase completed", "response completed Hello",
		}, show(items))
		for i, item := range items {
			require.EqualValues(t, i+1, item.(*messages.DeliveryIntent).GetSeq(), "I11: numbers rise by one")
		}
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "Hello", status.GetContent())
		history := h.state().GetConversationHistory()
		require.Len(t, history, 2)
		require.Equal(t, "hi", history[0].GetContent())
		require.Equal(t, "Hello", history[1].GetContent())
		sub.Close()
	})
}

func TestSteeringTurnLeavesExactlyOneNoteWhateverItsOutcome(t *testing.T) {
	for name, step := range map[string]testkit.Step{
		"answered":  testkit.Stream("ok"),
		"failed":    testkit.Fail(inference.KindUnavailable),
		"panicked":  testkit.Panic("boom"),
		"truncated": testkit.FailWith(&inference.Error{Kind: inference.KindTruncated}),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				h.model.Call(step)
				sub := h.subscribe(0)
				accepted := h.submit("be brief", steering)
				status := h.end(accepted.GetTurnId())
				require.True(t, status.GetSteeringEmitted())
				require.Equal(t, []string{"be brief"}, h.notes(), "I2")
				items := h.items(sub)
				last := items[len(items)-1].(*messages.DeliveryIntent).GetRouterResponse()
				require.True(t, last.GetSteeringEmitted())
				sub.Close()
			})
		})
	}
}

func TestChatTurnNeverLeavesANote(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("ok")).Call(testkit.Fail(inference.KindAuth))
		require.False(t, h.end(h.submit("one").GetTurnId()).GetSteeringEmitted())
		failed := h.end(h.submit("two").GetTurnId())
		require.Equal(t, "failed", failed.GetState())
		require.Equal(t, "provider_auth", failed.GetReason())
		require.Empty(t, h.notes())
	})
}

// B01: a burst while busy loses nothing silently.
func TestB01BurstWhileBusyIsAnsweredInOrderAndTheRestRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.WaitFor(gate), testkit.Stream("first")).Otherwise(testkit.Stream("next"))
		first := h.submit("0")
		var waiting []string
		for i := range h.deps.Core.QueueLimit {
			accepted := h.submit("more")
			require.Equal(t, "queued", accepted.GetDisposition())
			require.EqualValues(t, i, accepted.GetPosition())
			waiting = append(waiting, accepted.GetTurnId())
		}
		_, err := h.client.Submit(t.Context(), key, turn("too many"))
		f := requireCode(t, messages.CodeQueueFull, err)
		require.True(t, f.GetRetryable())
		close(gate)
		require.Equal(t, "first", h.end(first.GetTurnId()).GetContent())
		for _, id := range waiting {
			require.Equal(t, "answered", h.end(id).GetState())
		}
		require.Empty(t, h.state().GetQueue())
	})
}

func TestEveryRunSeesTheEventsRecordedBeforeItsStart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		_, err := h.client.Record(t.Context(), key, nil,
			&messages.WorkflowStarted{WorkflowId: "w"}, &messages.StageCompleted{StageId: "build", Summary: "built it"})
		require.NoError(t, err)
		h.end(h.submit("status?").GetTurnId())
		brief := h.model.ExpectCalls(1)[0].Request.Pack.Brief
		require.Equal(t, "RUNNING", brief.Status)
		require.Equal(t, []string{"build"}, brief.Succeeded)
	})
}

func TestRecordIsAtomicAndChecksItsExpectation(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		recorded, err := h.client.Record(t.Context(), key, new(uint64), &messages.WorkflowStarted{WorkflowId: "w"})
		require.NoError(t, err)
		require.EqualValues(t, 1, recorded.GetLastSequence())
		_, err = h.client.Record(t.Context(), key, new(uint64), &messages.StageStarted{StageId: "a"})
		requireCode(t, messages.CodeSequenceConflict, err)
		_, err = h.client.Record(t.Context(), key, nil, &messages.StageStarted{StageId: "a"}, &messages.SteeringNoteAdded{Content: "x"})
		requireCode(t, messages.CodeForbiddenEvent, err)
		_, err = h.client.Record(t.Context(), key, nil, &messages.StageStarted{StageId: "a"}, &messages.StageFailed{})
		requireCode(t, messages.CodeInvalidEvent, err)
		require.EqualValues(t, 1, h.state().GetEventSequence())
		notes, err := h.client.SteeringNotes(t.Context(), key, "")
		require.NoError(t, err)
		require.Empty(t, notes)
	})
}

func TestAbortCancelsTheCallAndKeepsThePartialAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("half an ans"), testkit.HangUntilCancel()).Otherwise(testkit.Stream("whole"))
		sub := h.subscribe(0)
		first, second := h.submit("long", steering), h.submit("next")
		synctest.Wait()
		aborted, err := h.client.Abort(t.Context(), key, &messages.Abort{Reason: "enough"})
		require.NoError(t, err)
		require.Equal(t, []string{first.GetTurnId()}, aborted.GetTurnIds())
		h.model.ExpectCanceled()
		status := h.end(first.GetTurnId())
		require.Equal(t, "cancelled", status.GetState())
		require.Equal(t, "half an ans", status.GetContent())
		require.Equal(t, "enough", status.GetReason())
		require.Equal(t, "answered", h.end(second.GetTurnId()).GetState(), "B14: queued work goes on in a run of its own")
		require.Equal(t, []string{"long"}, h.notes())
		history := h.state().GetConversationHistory()
		require.True(t, history[1].GetPartial())
		var responses []string
		for _, item := range h.items(sub) {
			if r := item.(*messages.DeliveryIntent).GetRouterResponse(); r != nil {
				responses = append(responses, r.GetOutcome())
				if r.GetOutcome() == "cancelled" { // B121
					require.Equal(t, string(messages.UsageEstimated), r.GetUsage().GetSource())
					require.NotZero(t, r.GetUsage().GetInputTokens())
				}
			}
		}
		require.Equal(t, []string{"cancelled", "completed"}, responses, "exactly one response for each run")
		again, err := h.client.Abort(t.Context(), key, &messages.Abort{RunId: first.GetRunId()})
		require.NoError(t, err)
		require.Empty(t, again.GetRunIds(), "a run that has ended: nothing to abort")
		_, err = h.client.Abort(t.Context(), key, &messages.Abort{RunId: "run_never"})
		requireCode(t, messages.CodeUnknownRun, err)
		sub.Close()
	})
}

// B71: a provider that ignores its context does not hold the session.
func TestB71RunThatIgnoresItsCancelIsEndedAfterTheGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		gate := make(chan struct{})
		h.model.Call(testkit.Stream("x"), testkit.HangDespiteCancel(gate), testkit.Stream("late")).Otherwise(testkit.Stream("next"))
		first, second := h.submit("a"), h.submit("b")
		synctest.Wait()
		begin := time.Now()
		_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		require.Equal(t, "x", h.end(first.GetTurnId()).GetContent())
		require.GreaterOrEqual(t, time.Since(begin), h.deps.Core.AbortGrace)
		require.Equal(t, "next", h.end(second.GetTurnId()).GetContent())
		close(gate)
		time.Sleep(time.Second)
		require.Equal(t, "x", h.end(first.GetTurnId()).GetContent(), "the late report is dropped")
	})
}

func TestLimitsEndACallThatShowsNoLife(t *testing.T) {
	for name, steps := range map[string][]testkit.Step{
		"before the first token": {testkit.HangUntilCancel()},
		"between two tokens":     {testkit.Stream("a"), testkit.HangUntilCancel()},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *host) {
				h.model.Call(steps...)
				status := h.end(h.submit("hi").GetTurnId())
				require.Equal(t, "failed", status.GetState())
				require.Equal(t, "provider_timeout", status.GetReason())
				h.model.ExpectCanceled()
			})
		})
	}
}

// B115: any activity resets the stall clock.
func TestB115ProgressWithoutTextKeepsACallAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		var steps []testkit.Step
		for range 20 {
			steps = append(steps, testkit.Active(), testkit.Delay(50*time.Second))
		}
		h.model.Call(append(steps, testkit.Stream("at last"))...)
		require.Equal(t, "at last", h.end(h.submit("think").GetTurnId()).GetContent())
	})
}

func TestPanicOfOneSessionsProviderDisturbsNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Call(testkit.Panic("boom")).Otherwise(testkit.Stream("ok"))
		status := h.end(h.submit("hi").GetTurnId())
		require.Equal(t, "internal", status.GetReason())
		other := messages.NewKey("other")
		accepted, err := h.client.Submit(t.Context(), other, turn("hello"))
		require.NoError(t, err)
		synctest.Wait()
		got, err := h.client.Turn(t.Context(), other, accepted.GetTurnId())
		require.NoError(t, err)
		require.Equal(t, "answered", got.GetState())
		require.Equal(t, "answered", h.end(h.submit("again").GetTurnId()).GetState())
	})
}

func TestUnknownSessionAndTurnAreToldApart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		_, err := h.client.State(t.Context(), key)
		requireCode(t, messages.CodeUnknownSession, err)
		_, err = h.client.Abort(t.Context(), key, &messages.Abort{})
		requireCode(t, messages.CodeUnknownSession, err)
		_, err = h.client.Start(t.Context(), key, &messages.SessionConfig{})
		require.NoError(t, err)
		_, err = h.client.Turn(t.Context(), key, "turn_x")
		requireCode(t, messages.CodeUnknownTurn, err)
		_, err = h.client.State(t.Context(), messages.NewKey("a/b"))
		requireCode(t, messages.CodeInvalidSessionID, err)
	})
}

func TestHistoryIsCappedAtTwiceKeepLast(t *testing.T) {
	inBubble(t, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("ok"))
		for range 10 {
			h.end(h.submit("again").GetTurnId())
		}
		require.Len(t, h.state().GetConversationHistory(), 2*h.deps.Core.KeepLast)
	})
}
