package session

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	core "github.com/correx/correx-actors/core/session"
)

// timers of an activation. Each is armed once and looks at the state when it is due: a session that is used has not a new one
// for each message.
type timers struct {
	idle  func()
	alive func()
	retry retry
	// idleAt is when idle is due.
	idleAt time.Duration
	// quietSince is when the session last did something. Both are times since the activation began.
	quietSince time.Duration
	// gen invalidates an Idle that was sent before something happened.
	gen uint64
}

func (t *timers) stop() {
	for _, stop := range []func(){t.idle, t.alive} {
		if stop != nil {
			stop()
		}
	}
	t.idle, t.alive = nil, nil
}

// trimAfter is how long an idle session without subscribers keeps its output for one that comes back; later ones get the
// answers that nobody acknowledged, a gap and the present state.
const trimAfter = time.Minute

// retry is the pause before the next try of something that failed.
type retry struct{ last time.Duration }

const (
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
)

func (r *retry) next() time.Duration {
	r.last = min(max(2*r.last, retryMin), retryMax)
	return r.last
}

func (r *retry) reset() { r.last = 0 }

// due is a timer's message.
type due struct {
	life  *life
	what  dueKind
	cmd   core.Command
	batch *batch
}

type dueKind int

const (
	dueIdle dueKind = iota
	dueAlive
	dueRecover
	dueRetry
	dueResend
	dueCommand
)

func (s *Session) arm(d due, after time.Duration) (stop func()) {
	return s.deps.Kernel.After(after, s.self, d)
}

func (s *Session) due(ctx actor.Context, d due) {
	if d.life != s.life || s.stage == stageEnding {
		return
	}
	switch d.what {
	case dueIdle:
		s.timers.idle = nil
		s.idleDue()
	case dueAlive:
		s.timers.alive = nil
		if s.stage == stageReady && s.state.Ledger.Open() {
			s.report(ctx, core.Tick{})
		}
	case dueRecover:
		if s.stage == stageRecovering {
			s.recover()
		}
	case dueRetry:
		s.blocked = false
		s.drive(ctx)
	case dueResend:
		if d.batch == s.inflight {
			s.send(d.batch)
		}
	case dueCommand:
		s.report(ctx, d.cmd)
	}
}

// idle says whether ending now would disturb nobody.
func (s *Session) idle() bool {
	return s.inflight == nil && !s.blocked && len(s.pending) == 0 && len(s.finding) == 0 &&
		s.runner == nil && len(s.subscribers) == 0 &&
		(s.stage == stageRefusing || s.stage == stageReady && !s.state.Ledger.Open())
}

// settle arms the timers that fit the state after each message: the idle one while nothing is going on, the alive one while
// there is open work.
func (s *Session) settle(actor.Context) {
	if s.stage == stageEnding || s.stage == stageRecovering {
		return
	}
	s.settleSlot()
	if s.stage == stageReady && s.state.Ledger.Open() && s.timers.alive == nil {
		s.timers.alive = s.arm(due{life: s.life, what: dueAlive}, s.deps.Core.AliveEvery())
	}
	s.timers.gen++
	s.timers.quietSince = time.Since(s.begun)
	if s.idle() {
		s.armIdle()
	}
	s.settleDrain()
}

// armIdle waits for the next thing that an idle session does: it lets go of its output, or asks for leave to end. One that does
// not exist asks at once: a name that somebody tried out costs nothing.
func (s *Session) armIdle() {
	wait := s.deps.Idle
	switch {
	case s.passing():
		wait = 0
	case s.output.kept() > 0:
		wait = min(wait, trimAfter)
	}
	at := s.timers.quietSince + wait
	if s.timers.idle != nil {
		if s.timers.idleAt <= at {
			return // it is due no later, and looks again
		}
		s.timers.idle()
	}
	s.timers.idleAt = at
	s.timers.idle = s.arm(due{life: s.life, what: dueIdle}, at-time.Since(s.begun))
}

// passing says whether nothing would be lost if the session ended at once.
func (s *Session) passing() bool { return s.stage == stageRefusing || !s.state.Exists() }

func (s *Session) idleDue() {
	if !s.idle() || s.parent == nil {
		return
	}
	quiet := time.Since(s.begun) - s.timers.quietSince
	if quiet >= trimAfter {
		s.output.clear()
	}
	if s.passing() || quiet >= s.deps.Idle {
		s.deps.Kernel.Tell(s.parent, Idle{Key: s.key, Self: s.self, Gen: s.timers.gen})
		return
	}
	s.armIdle()
}

// passivate is the parent's leave: everything that it passed on before has been handled.
func (s *Session) passivate(ctx actor.Context, m Passivate) {
	if s.idle() && m.Gen == s.timers.gen {
		s.end(ctx)
		return
	}
	s.deps.Kernel.Tell(s.parent, Stay{Key: s.key, Self: s.self})
	s.settle(ctx)
}

// drain admits and starts nothing more; the parent is told when no run is active.
func (s *Session) drain(ctx actor.Context) {
	s.draining, s.drainAsked = true, s.parent
	if s.stage == stageReady {
		s.pending = append(s.pending, &pending{cmd: core.Drain{}, internal: true})
		s.drive(ctx)
		return
	}
	s.settleDrain()
}

// suspend records that the run is to be resumed, and cancels it.
func (s *Session) suspend(ctx actor.Context) {
	s.draining, s.suspendTo = true, s.parent
	if s.stage == stageReady {
		s.pending = append(s.pending, &pending{cmd: core.Suspend{}, internal: true})
		s.drive(ctx)
		return
	}
	s.settleDrain()
}

// settleDrain tells the parent what it waits for during a shutdown.
func (s *Session) settleDrain() {
	if s.drainAsked == nil && s.suspendTo == nil {
		return
	}
	quiet := s.inflight == nil && len(s.pending) == 0
	if s.drainAsked != nil && (s.stage != stageReady || quiet && !s.state.Running()) {
		s.deps.Kernel.Tell(s.drainAsked, Drained{Key: s.key})
		s.drainAsked = nil
	}
	// A journal that takes nothing must not hold up the stop: what waits is found open by the next start.
	if s.suspendTo != nil && (s.stage != stageReady || quiet && !s.state.Running() || s.stuck && s.inflight == nil) {
		s.deps.Kernel.Tell(s.suspendTo, Suspended{Key: s.key})
		s.suspendTo = nil
	}
}
