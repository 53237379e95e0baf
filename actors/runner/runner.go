package runner

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/messages"
)

// Causes with which a run's context ends.
var (
	// ErrStopped: the runner's actor was stopped or restarted by its supervisor.
	ErrStopped = errors.New("runner stopped")
	// ErrAborted: a user stopped the run.
	ErrAborted = errors.New("run aborted")
	// ErrInterrupted: a turn of mode interrupt stopped the run.
	ErrInterrupted = errors.New("run interrupted")
	// ErrSuspended: the process stops in order; the run goes on after the next start.
	ErrSuspended = errors.New("run suspended")
	// ErrFenced: another node owns the session.
	ErrFenced = errors.New("run fenced")
)

// Cancel ends the call at once. It is a control message: it overtakes acknowledgments.
type Cancel struct{ Cause core.CancelCause }

// ControlMessage implements kernel.Control.
func (Cancel) ControlMessage() {}

// Ack lets the runner report the text that has gathered since its last report.
type Ack struct{}

// ControlMessage implements kernel.Control.
func (Ack) ControlMessage() {}

// Offer asks whether a turn's text may be put into the run. The answer is core.SteerAnswered to the parent.
type Offer struct {
	TurnID messages.TurnID
	Text   string
}

// ControlMessage implements kernel.Control.
func (Offer) ControlMessage() {}

// Inject is the leave to put an accepted text before the next model call.
type Inject struct{ TurnID messages.TurnID }

// ControlMessage implements kernel.Control.
func (Inject) ControlMessage() {}

// RefuseSteer says that a turn which the run accepted will not steer it: it was withdrawn, or has fallen back.
type RefuseSteer struct{ TurnID messages.TurnID }

// ControlMessage implements kernel.Control.
func (RefuseSteer) ControlMessage() {}

// LaunchTools is the leave to start a batch of tool calls.
type LaunchTools struct{ CallIDs []string }

// ControlMessage implements kernel.Control.
func (LaunchTools) ControlMessage() {}

// ReasonNoBoundary is why a run without tools refuses every offer: it makes one call, so nothing can be put before a next one.
const ReasonNoBoundary = "the run makes one model call only: it has no boundary at which it could be steered"

// finished is sent by the runner's goroutine when it has reported everything.
type finished struct{}

// Runner is the actor of one attempt. It starts its work when it starts itself, because a stop overtakes user messages, and
// its one goroutine reports to the parent: core.RunPhased, core.RunRetried, core.RunStreamed (at most one unacknowledged) and, exactly once,
// core.RunFinished.
type Runner struct {
	deps   *Deps
	order  core.RunOrder
	hold   Hold
	cancel context.CancelCauseFunc
	report *reporter
	steer  *steering
	// offered tools; nil = none, so the run has no boundary.
	offered *tools.Set
}

// Hold is what an attempt works under: its run slot, and the lease of the conversation that it resumes.
type Hold interface {
	// Adopt is said before the work begins; false = it was taken back, and nothing may begin.
	Adopt() bool
	// Release is said when the work has really ended, also long after the session has gone on without it.
	Release()
}

// Props describes the runner of one attempt, to be spawned as a child of its session.
func Props(deps *Deps, order core.RunOrder, hold Hold) *actor.Props {
	return deps.Kernel.Props(func() actor.Actor { return &Runner{deps: deps, order: order, hold: hold} }, kernel.PropsOptions{})
}

// Receive implements actor.Actor.
func (r *Runner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		r.start(ctx)
	case Ack:
		r.report.ack()
	case Offer:
		reason := r.steer.offer(m, r.offered == nil)
		r.deps.Kernel.Tell(ctx.Parent(), core.SteerAnswered{
			RunID: r.order.RunID, Attempt: r.report.attempt(), TurnID: m.TurnID, Accepted: reason == "", Reason: reason,
		})
	case Inject:
		r.steer.leaves <- leave{turn: m.TurnID, in: true}
	case RefuseSteer:
		r.steer.leaves <- leave{turn: m.TurnID}
	case LaunchTools:
		r.steer.launched <- struct{}{}
	case Cancel:
		r.cancel(causeError(m.Cause))
	case finished:
		ctx.Stop(ctx.Self())
	case *actor.Stopping, *actor.Restarting:
		r.cancel(ErrStopped)
	}
}

func (r *Runner) start(ctx actor.Context) {
	sys, self, parent := r.deps.Kernel, ctx.Self(), ctx.Parent()
	r.report = &reporter{order: r.order, tell: func(msg any) { sys.Tell(parent, msg) }}
	run, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	if !r.hold.Adopt() {
		ctx.Stop(self)
		return
	}
	r.offered = r.deps.offered(run, r.order)
	r.steer = newSteering(r.report, r.offered != nil)
	go func() {
		defer r.hold.Release()
		defer cancel(ErrStopped)
		work := &toolRun{deps: r.deps, report: r.report, offered: r.offered, steer: r.steer}
		r.report.finish(attempt(run, r.deps, r.order, r.report, work))
		sys.Tell(self, finished{})
		cancel(ErrStopped)
		for _, exited := range work.exited { // a tool that ignores its end counts against the limits until it is gone
			<-exited
		}
	}()
}

func causeError(cause core.CancelCause) error {
	switch cause {
	case core.CauseAborted:
		return ErrAborted
	case core.CauseInterrupt:
		return ErrInterrupted
	case core.CauseSuspended:
		return ErrSuspended
	case core.CauseFenced:
		return ErrFenced
	case core.CauseStopped:
		return ErrStopped
	}
	return ErrStopped
}
