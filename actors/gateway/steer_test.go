package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// steerable is a runner that takes every offer in after a second and ends after ten.
type steerable struct {
	sys    *kernel.System
	order  core.RunOrder
	answer string
	texts  map[string]string
}

type (
	atBoundary struct{ turn string }
	atEnd      struct{}
)

// Receive implements actor.Actor.
func (r *steerable) Receive(ctx actor.Context) {
	run, attempt := r.order.RunID, r.order.Attempt
	switch m := ctx.Message().(type) {
	case *actor.Started:
		r.answer, r.texts = "heard", make(map[string]string)
		r.sys.After(10*time.Second, ctx.Self(), atEnd{})
	case runner.Offer:
		r.texts[m.TurnID] = m.Text
		r.sys.Tell(ctx.Parent(), core.SteerAnswered{RunID: run, Attempt: attempt, TurnID: m.TurnID, Accepted: true})
		r.sys.After(time.Second, ctx.Self(), atBoundary{m.TurnID})
	case atBoundary:
		r.sys.Tell(ctx.Parent(), core.SteerAsked{RunID: run, Attempt: attempt, TurnID: m.turn, BeforeCall: 2})
	case runner.Inject:
		r.answer += " " + r.texts[m.TurnID]
	case atEnd:
		r.sys.Tell(ctx.Parent(), core.RunFinished{RunID: run, Attempt: attempt, Outcome: messages.OutcomeCompleted, Content: r.answer})
		ctx.Stop(ctx.Self())
	}
}

func TestATurnThatSteersIsAnsweredByTheRunThatTookIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server, _ *pipes) {
		c := s.dial()
		first := c.say("a")
		steer := c.say("left", "queue_mode", "steer", "mode", "STEERING", "idempotency_key", "k")
		require.Equal(t, "steering", steer.text("disposition"))
		require.Equal(t, "offered", c.turn(steer["turn_id"]).text("state"))
		require.Equal(t, []any{
			map[string]any{"turn_id": steer["turn_id"], "run_id": first["run_id"]},
		}, s.state("s1")["pending_steers"])
		back := c.say("right", "queue_mode", "steer")
		require.Equal(t, true, c.ask("withdraw", "session_id", "s1", "turn_id", back["turn_id"])["withdrawn"], "an offer can be taken back")

		taken, _ := c.until("turn_state")
		for taken["turn_id"] != steer["turn_id"] {
			taken, _ = c.until("turn_state")
		}
		require.Equal(t, "steered", taken.text("state"))
		require.Equal(t, first["run_id"], taken["steered_into"])
		require.Equal(t, true, taken["steering_emitted"])
		late := c.ask("withdraw", "session_id", "s1", "turn_id", steer["turn_id"])
		require.Equal(t, false, late["withdrawn"])
		require.Equal(t, "steered", late.text("state"))

		// Sent again while the run goes on: there is no answer yet, and then it is the run's.
		status, final, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns?wait=1m",
			`{"text":"left","queue_mode":"steer","mode":"STEERING","idempotency_key":"k"}`)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "router_response", final.kind(), "%v", final)
		require.Equal(t, "heard left", final.text("content"))
		require.Equal(t, first["run_id"], final["run_id"])
		ended := c.turn(steer["turn_id"])
		require.Equal(t, "steered", ended.text("state"))
		require.Equal(t, "heard left", ended.text("content"))
		require.Equal(t, "completed", ended.text("outcome"))
		require.EqualValues(t, 1, s.state("s1").number("event_sequence"), "one note")
	}, func(set *settings) {
		sys := set.session.Kernel
		set.session.NewRunner = func(order core.RunOrder, _ runner.Hold) *actor.Props {
			return sys.Props(func() actor.Actor { return &steerable{sys: sys, order: order} }, kernel.PropsOptions{})
		}
	})
}
