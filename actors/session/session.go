// Package session holds the actor of one session: it interprets what core/session decides. Append first, then the new state,
// then reply and effects; when the append fails, none of them.
//
// It never blocks: claims, replays, appends and look-ups run elsewhere and come back as messages of the control lane. One
// append is in flight at a time; what arrives meanwhile waits, in order, and is decided together for the next one. Reads are
// answered at once from the state that is durable.
package session

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// stage of an activation.
type stage int

const (
	// stageRecovering: claim and replay are on the way; commands wait.
	stageRecovering stage = iota
	// stageReady: commands are served.
	stageReady
	// stageRefusing: the journal's answer forbids service (quarantine, tombstone); every command gets the reason.
	stageRefusing
	// stageEnding: the actor has been told to stop.
	stageEnding
)

// Session is the actor of one session. Its fields are touched by Receive only.
type Session struct {
	deps *Deps // shared by all sessions of the process
	key  messages.Key

	// life tells this incarnation's own completions from those of an earlier one: the PID is the same.
	life   *life
	self   *actor.PID
	parent *actor.PID
	stage  stage
	// refusal is what every command gets in stageRefusing.
	refusal *messages.Failure

	state   core.State
	pending []*pending
	// inflight is the append under way; nil = none.
	inflight *batch
	// blocked: nothing is decided now; the first command waits for an index look-up, or for a pause after a failed append.
	blocked bool
	// stuck: the last append was refused, and something of ours waits to be tried again.
	stuck bool
	// finding are the commands whose answer is looked up in the index, without holding up any other.
	finding map[*pending]struct{}

	output      *output
	subscribers map[string]*subscriber
	runner      *actor.PID
	hold        holding
	timers      timers
	draining    bool
	// begunOnce: this incarnation has recovered before; the next time is in place.
	begunOnce bool
	// looks counts look-ups, so that the answer of an older one is told apart.
	looks      uint64
	drainAsked *actor.PID
	suspendTo  *actor.PID
	// begun is when the activation began; with base it makes a clock that does not jump.
	begun time.Time
}

// life is an incarnation's identity.
type life struct{ _ byte }

// Props describes the actor of a session. Draining tells an incarnation at its start that the process is shutting down.
func Props(deps *Deps, key messages.Key, draining *atomic.Bool) *actor.Props {
	return deps.Kernel.Props(func() actor.Actor { return newSession(deps, key, draining) }, kernel.PropsOptions{Supervisor: runners{deps}})
}

// runners supervises the attempts of a session: one that panics again and again is stopped. It is made of what all sessions
// share, since there is one for each of them.
type runners struct{ *Deps }

// HandleFailure implements actor.SupervisorStrategy.
func (r runners) HandleFailure(
	sys *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, message any,
) {
	kernel.Backoff{Limit: 1, OnFailure: func(child *actor.PID, reason any, _ int) {
		r.Log.Error("runner panicked", slog.String(messages.AttrActor, child.GetId()), slog.Any(messages.AttrReason, reason))
	}}.HandleFailure(sys, parent, child, stats, reason, message)
}

func newSession(deps *Deps, key messages.Key, draining *atomic.Bool) *Session {
	return &Session{
		deps:     deps,
		key:      key,
		life:     new(life),
		state:    core.New(key),
		draining: draining.Load(),
	}
}

// log names the session in each line. It is made when it is needed: lines are few and sessions many.
func (s *Session) log() *slog.Logger {
	return s.deps.Log.With(slog.String(messages.AttrSession, string(s.key.Session)))
}

// Receive implements actor.Actor.
func (s *Session) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.started(ctx)
	case *Request:
		s.request(ctx, m)
	case recovered:
		s.recovered(ctx, m)
	case appended:
		s.appended(ctx, m)
	case looked:
		s.looked(ctx, m)
	case turnFound:
		s.turnFound(ctx, m)
	case explained:
		s.explained(ctx, m)
	case core.RunPhased, core.RunRetried, core.ToolsAsked, core.ToolsMoved, core.RunStreamed,
		core.RunFinished, core.SteerAnswered, core.SteerAsked, core.StartFailed:
		if cmd, ok := m.(core.Command); ok { // a report of the run
			s.report(ctx, cmd)
		}
	case slots.Granted:
		s.slotGranted(ctx, m)
	case slots.Wanted:
		s.leaseWanted(ctx, m)
	case due:
		s.due(ctx, m)
	case Passivate:
		s.passivate(ctx, m)
	case Drain:
		s.drain(ctx)
	case Suspend:
		s.suspend(ctx)
	case *actor.Terminated:
		s.terminated(ctx, m)
	case *actor.Stopping, *actor.Restarting:
		s.stopping()
	}
}

func (s *Session) started(ctx actor.Context) {
	s.self, s.parent = ctx.Self(), ctx.Parent()
	s.begun = time.Now()
	s.recover()
}

// stopping tells everybody who waits or listens that this incarnation will not answer any more.
func (s *Session) stopping() {
	s.stage = stageEnding
	s.timers.stop()
	s.abandonSlots()
	s.forgetLineage()
	lost := messages.FailRetryable(messages.CodeUnavailable, "the session ended before it could answer; try again")
	for _, p := range s.takeWaiting() {
		s.refuse(p, lost)
	}
	for _, sub := range s.subscribers {
		s.deps.Kernel.Tell(sub.pid, &Lost{Key: s.key})
	}
	s.subscribers = nil
	if s.drainAsked != nil {
		s.deps.Kernel.Tell(s.drainAsked, Drained{Key: s.key})
	}
	if s.suspendTo != nil {
		s.deps.Kernel.Tell(s.suspendTo, Suspended{Key: s.key})
	}
}

// takeWaiting takes everything that waits for an answer, the append in flight first.
func (s *Session) takeWaiting() []*pending {
	var all []*pending
	if s.inflight != nil {
		for _, step := range s.inflight.steps {
			all = append(all, step.from)
		}
		s.inflight.giveBack()
		s.inflight = nil
	}
	all = append(all, s.pending...)
	s.pending = nil
	for p := range s.finding {
		all = append(all, p)
	}
	s.finding = nil
	return all
}

// now is the start of the activation plus monotonic time, so that a wall clock that jumps moves nothing; core keeps it from
// falling below the ledger's last time.
func (s *Session) now() time.Time { return s.begun.Add(time.Since(s.begun)) }

// end stops the actor; stopping answers who waits.
func (s *Session) end(ctx actor.Context) {
	s.stage = stageEnding
	ctx.Stop(s.self)
}

// terminated: a subscriber is gone, or the runner ended.
func (s *Session) terminated(ctx actor.Context, m *actor.Terminated) {
	defer s.settle(ctx)
	delete(s.subscribers, m.Who.GetId())
	last := s.runner != nil && m.Who.GetId() == s.runner.GetId()
	if last {
		s.runner = nil
	}
	neverBegan := s.workEnded(m.Who)
	if !last {
		return
	}
	// A runner reports its end before it ends itself. One that did not was killed by its supervisor: its run must not
	// keep the session busy. A report that is in the mailbox already comes first, because this one goes behind it.
	run := s.state.Ledger.Active
	switch {
	case run == nil || s.stage != stageReady:
	case neverBegan && s.state.Live.Phase == messages.PhaseDispatched:
		s.deps.Kernel.Tell(s.self, core.StartFailed{RunID: run.ID, Attempt: run.Attempt})
	default:
		s.deps.Kernel.Tell(s.self, core.RunFinished{
			RunID: run.ID, Attempt: run.Attempt, Outcome: messages.OutcomeFailed, Content: s.state.Live.Text.String(),
			Error: messages.FailRetryable(messages.CodeInternal, "the run failed inside the server"),
		})
	}
}
