package actors_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// withTools gives runs the demo tools and those of the test.
func withTools(t *testing.T, more func(t *testing.T) []*tools.Tool, scenario func(t *testing.T, h *host)) {
	t.Helper()
	inBubble(t, func(t *testing.T, h *host) {
		h.stop()
		*h = *start(t, h.journal, h.model, toolbox(t, more))
		scenario(t, h)
	})
}

func toolbox(t *testing.T, more func(t *testing.T) []*tools.Tool) func(d *session.Deps) {
	t.Helper()
	return func(d *session.Deps) {
		offered, err := tools.Demo()
		require.NoError(t, err)
		if more != nil {
			offered = append(offered, more(t)...)
		}
		log := slog.New(slog.DiscardHandler)
		registry, err := tools.NewRegistry(log, offered)
		require.NoError(t, err)
		d.Slots = slots.New(d.Kernel, slots.Config{Max: 1})
		d.Runner.Tools = &runner.Toolbox{Registry: registry, Executor: tools.NewExecutor(tools.Config{}, log), MaxRounds: 3}
	}
}

func calls(id, name, arguments string) inference.ToolCall {
	return inference.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
}

func TestRunCallsToolsAndGoesOnWithTheirAnswers(t *testing.T) {
	withTools(t, nil, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("let me see. "), testkit.CallTools(
			calls("a", "echo", `{"text":"hello"}`), calls("b", "fail", `{"message":"no such file"}`), calls("c", "nothing", `{}`)))
		h.model.Call(testkit.Stream("done"))
		sub := h.subscribe(0)
		accepted := h.submit("look")
		require.Equal(t, "let me see. done", h.end(accepted.GetTurnId()).GetContent())
		requests := h.model.ExpectCalls(2)
		require.Len(t, requests[0].Request.Tools, 3)
		require.Empty(t, requests[0].Request.Rounds)
		require.Len(t, requests[1].Request.Rounds, 1)
		round := requests[1].Request.Rounds[0]
		require.Equal(t, "let me see. ", round.Text)
		require.Len(t, round.Calls, 3)
		require.Equal(t, []string{"hello", "failed: no such file", "there is no tool of that name"}, round.Answers)

		var last *messages.ToolStatus
		var order []string
		for _, item := range h.items(sub) {
			delivered, ok := item.(*messages.DeliveryIntent)
			require.True(t, ok)
			switch intent := delivered.Intent().(type) {
			case *messages.ToolStatus:
				last = intent
				order = append(order, "tool_status")
			case *messages.StreamFinalize:
				order = append(order, "stream_finalize")
			case *messages.RouterResponse:
				order = append(order, "router_response")
			}
		}
		require.True(t, last.GetFinal())
		require.Len(t, last.GetActions(), 3)
		for i, ok := range []bool{true, false, false} {
			require.Equal(t, "completed", last.GetActions()[i].GetPhase())
			require.Equal(t, ok, last.GetActions()[i].GetOk())
		}
		require.Equal(t, "no such file", last.GetActions()[1].GetError().GetMessage())
		require.Equal(t, []string{"tool_status", "stream_finalize", "router_response"}, order[len(order)-3:])

		// I3: what tools gave is in no later prompt.
		h.model.Call(testkit.Stream("bye"))
		h.end(h.submit("and now?").GetTurnId())
		later := h.model.ExpectCalls(3)[2].Request
		require.Empty(t, later.Rounds)
		for _, entry := range later.Pack.Messages() {
			require.NotContains(t, entry.Content, "hello")
		}
	})
}

// A steer is put in at the next boundary: between the calls of a sequential batch, whose rest is not run.
func TestSteerIsPutInBetweenTwoToolsAndTheRestIsSkipped(t *testing.T) {
	withTools(t, nil, func(t *testing.T, h *host) {
		h.model.Call(testkit.CallTools(calls("a", "sleep", `{"ms":10000}`), calls("b", "sleep", `{"ms":10000}`)))
		h.model.Call(testkit.Stream("went left"))
		first := h.submit("go")
		time.Sleep(time.Second)
		steer := h.submit("left!", mode(messages.QueueSteer), steering)
		require.Equal(t, "steering", steer.GetDisposition())
		require.Equal(t, "went left", h.end(first.GetTurnId()).GetContent())
		status := h.end(steer.GetTurnId())
		require.Equal(t, "steered", status.GetState())
		require.Equal(t, "went left", status.GetContent())
		require.Equal(t, []string{"left!"}, h.notes())
		round := h.model.ExpectCalls(2)[1].Request.Rounds[0]
		require.Equal(t, []string{"left!"}, round.Said)
		require.Equal(t, "slept 10s", round.Answers[0])
		require.Equal(t, "not run: the user spoke", round.Answers[1])
	})
}

// B16: a stop ends the run also while a tool works, and nothing more is started.
func TestB16StopWhileAToolWorks(t *testing.T) {
	withTools(t, nil, func(t *testing.T, h *host) {
		h.model.Call(testkit.Stream("so far"), testkit.CallTools(calls("a", "sleep", `{"ms":60000}`), calls("b", "echo", `{"text":"x"}`)))
		accepted := h.submit("go")
		time.Sleep(time.Second)
		_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		begun := time.Now()
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "cancelled", status.GetState())
		require.Equal(t, "so far", status.GetContent())
		require.Less(t, time.Since(begun), time.Second, "it need not wait for the grace")
		h.model.ExpectCalls(1)
	})
}

// A run that had started tools is not started again after a crash: they may have done something. Its sender is told.
func TestRunWithToolsIsInterruptedByACrash(t *testing.T) {
	withTools(t, nil, func(t *testing.T, h *host) {
		h.model.Call(testkit.CallTools(calls("a", "sleep", `{"ms":60000}`)))
		accepted := h.submit("go", steering)
		time.Sleep(time.Second)
		h.stop()
		*h = *start(t, h.journal, h.model, toolbox(t, nil))
		h.activate()
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "interrupted", status.GetState())
		require.Contains(t, status.GetReason(), "tools")
		require.Equal(t, []string{"go"}, h.notes())
		h.model.ExpectCalls(1)
	})
}

func TestToolRoundsAreBounded(t *testing.T) {
	withTools(t, nil, func(t *testing.T, h *host) {
		h.model.Otherwise(testkit.Stream("again "), testkit.CallTools(calls("a", "echo", `{"text":"x"}`)))
		status := h.end(h.submit("go").GetTurnId())
		require.Equal(t, "failed", status.GetState())
		require.Equal(t, string(messages.CodeToolRoundsExceeded), status.GetReason())
		h.model.ExpectCalls(4)
	})
}

// B71: a tool that does not end when it is told to counts against the limits until it is gone, and holds up nobody but them.
func TestToolThatIgnoresItsEndKeepsItsSlot(t *testing.T) {
	gate := make(chan struct{})
	deaf := func(t *testing.T) []*tools.Tool {
		t.Helper()
		tool, err := tools.New(tools.Spec{Name: "deaf"}, func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
			<-gate
			return tools.Result{}, nil
		})
		require.NoError(t, err)
		return []*tools.Tool{tool}
	}
	withTools(t, func(t *testing.T) []*tools.Tool {
		gate = make(chan struct{}) // of this bubble
		return deaf(t)
	}, func(t *testing.T, h *host) {
		h.model.Call(testkit.CallTools(calls("a", "deaf", `{}`)))
		accepted := h.submit("go")
		synctest.Wait()
		_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		require.Equal(t, "cancelled", h.end(accepted.GetTurnId()).GetState())
		h.model.Call(testkit.Stream("next"))
		next := h.submit("next")
		require.Equal(t, "queued", next.GetDisposition(), "the only slot is in use")
		time.Sleep(time.Second)
		close(gate)
		require.Equal(t, "next", h.end(next.GetTurnId()).GetContent())
	})
}
