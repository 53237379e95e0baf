package actors_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// looper is a runner with boundaries: it accepts every offer, asks for leave at its next boundary, and ends with what was put in.
type looper struct {
	sys   *kernel.System
	order core.RunOrder
	// boundary is when it comes to its next boundary, length when it ends.
	boundary, length time.Duration
	mute             bool // it answers no offer

	offered  []string
	injected []string
	text     map[string]string
}

type (
	atBoundary struct{}
	atEnd      struct{}
)

// Receive implements actor.Actor.
func (l *looper) Receive(ctx actor.Context) {
	report := func(msg any) { l.sys.Tell(ctx.Parent(), msg) }
	switch m := ctx.Message().(type) {
	case *actor.Started:
		l.text = make(map[string]string)
		l.sys.After(l.boundary, ctx.Self(), atBoundary{})
		l.sys.After(l.length, ctx.Self(), atEnd{})
	case runner.Offer:
		if l.mute {
			return
		}
		l.offered, l.text[m.TurnID] = append(l.offered, m.TurnID), m.Text
		report(core.SteerAnswered{RunID: l.order.RunID, Attempt: l.order.Attempt, TurnID: m.TurnID, Accepted: true})
	case atBoundary:
		for _, id := range l.offered {
			report(core.SteerAsked{RunID: l.order.RunID, Attempt: l.order.Attempt, TurnID: id, BeforeCall: 2})
		}
	case runner.Inject:
		l.injected = append(l.injected, l.text[m.TurnID])
	case runner.Cancel:
		report(core.RunFinished{RunID: l.order.RunID, Attempt: l.order.Attempt, Outcome: messages.OutcomeCancelled})
		ctx.Stop(ctx.Self())
	case atEnd:
		answer := strings.Join(append([]string{"heard"}, l.injected...), " ")
		report(core.RunFinished{RunID: l.order.RunID, Attempt: l.order.Attempt, Outcome: messages.OutcomeCompleted, Content: answer})
		ctx.Stop(ctx.Self())
	}
}

func withLooper(t *testing.T, change func(*looper), scenario func(t *testing.T, h *host)) {
	t.Helper()
	inBubble(t, func(t *testing.T, h *host) {
		h.stop()
		*h = *start(t, h.journal, h.model, func(d *session.Deps) { looping(d, change) })
		scenario(t, h)
	})
}

// looping gives a session loopers for its runs.
func looping(d *session.Deps, change func(*looper)) {
	d.NewRunner = func(order core.RunOrder, _ runner.Hold) *actor.Props {
		return d.Kernel.Props(func() actor.Actor {
			l := &looper{sys: d.Kernel, order: order, boundary: 5 * time.Second, length: 10 * time.Second}
			if change != nil {
				change(l)
			}
			return l
		}, kernel.PropsOptions{})
	}
}

func TestSteeringIsRecordedBeforeItIsPutInAndNeverFallsBack(t *testing.T) {
	withLooper(t, nil, func(t *testing.T, h *host) {
		first := h.submit("a")
		synctest.Wait()
		steer := h.submit("left", mode(messages.QueueSteer), steering)
		later := h.submit("right", mode(messages.QueueSteerBacklog))
		require.Len(t, h.state().GetPendingSteers(), 2)
		time.Sleep(6 * time.Second)
		status := h.end(steer.GetTurnId())
		require.Equal(t, "steered", status.GetState())
		require.Equal(t, first.GetRunId(), status.GetSteeredInto())
		require.Equal(t, []string{"left"}, h.notes(), "its note is written when it is put in")
		require.Equal(t, "heard left right", h.end(first.GetTurnId()).GetContent())
		time.Sleep(time.Minute)
		require.Equal(t, "steered", h.end(later.GetTurnId()).GetState())
		require.Equal(t, "heard left right", h.end(later.GetTurnId()).GetContent(), "the answer of the run that took it")
		require.Empty(t, h.state().GetQueue())
		require.Equal(t, []string{"left"}, h.notes())
	})
}

// B08: the run ends before the boundary.
func TestB08AcceptedSteerOfARunThatEndsFirstBecomesATurnOfItsOwn(t *testing.T) {
	withLooper(t, func(l *looper) { l.boundary = time.Hour }, func(t *testing.T, h *host) {
		h.submit("a")
		synctest.Wait()
		steer := h.submit("left", mode(messages.QueueSteer), steering)
		status := h.end(steer.GetTurnId())
		require.Equal(t, "answered", status.GetState())
		require.Equal(t, "heard", status.GetContent())
		require.Equal(t, []string{"left"}, h.notes())
	})
}

// B10: an abort before the text was put in gives the turn back, and it runs once.
func TestB10AbortOfTheRunGivesTheOfferBack(t *testing.T) {
	withLooper(t, nil, func(t *testing.T, h *host) {
		first := h.submit("a")
		synctest.Wait()
		steer := h.submit("left", mode(messages.QueueSteer))
		time.Sleep(time.Second)
		_, err := h.client.Abort(t.Context(), key, &messages.Abort{})
		require.NoError(t, err)
		require.Equal(t, "cancelled", h.end(first.GetTurnId()).GetState())
		require.Equal(t, "answered", h.end(steer.GetTurnId()).GetState())
	})
}

func TestOfferWithoutAnAnswerFallsBackAtItsDeadline(t *testing.T) {
	withLooper(t, func(l *looper) { l.mute = true }, func(t *testing.T, h *host) {
		h.submit("a")
		synctest.Wait()
		steer := h.submit("left", mode(messages.QueueSteer))
		time.Sleep(h.deps.Core.SteerDeadline - time.Nanosecond)
		status, err := h.client.Turn(t.Context(), key, steer.GetTurnId())
		require.NoError(t, err)
		require.Equal(t, "offered", status.GetState())
		time.Sleep(2 * time.Nanosecond)
		status, err = h.client.Turn(t.Context(), key, steer.GetTurnId())
		require.NoError(t, err)
		require.Equal(t, "queued", status.GetState())
		require.Equal(t, "answered", h.end(steer.GetTurnId()).GetState())
	})
}

// B11: what was offered and not put in survives the process.
func TestB11OfferSurvivesARestart(t *testing.T) {
	withLooper(t, nil, func(t *testing.T, h *host) {
		h.submit("a")
		synctest.Wait()
		steer := h.submit("left", mode(messages.QueueSteer), steering)
		time.Sleep(time.Second)
		deps := h.deps
		h.stop()
		*h = *start(t, h.journal, h.model, func(d *session.Deps) { d.NewRunner = nil; d.Core = deps.Core })
		h.model.Otherwise()
		h.activate()
		require.Equal(t, "answered", h.end(steer.GetTurnId()).GetState())
		require.Equal(t, []string{"left"}, h.notes())
	})
}

func TestWithdrawnOfferIsNotPutIn(t *testing.T) {
	withLooper(t, nil, func(t *testing.T, h *host) {
		first := h.submit("a")
		synctest.Wait()
		steer := h.submit("left", mode(messages.QueueSteer), steering)
		done, _, err := h.client.Withdraw(t.Context(), key, steer.GetTurnId())
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, "heard", h.end(first.GetTurnId()).GetContent())
		require.Empty(t, h.notes())
	})
}
