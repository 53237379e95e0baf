package session

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	core "github.com/correx/correx-actors/core/session"
)

// timers of an activation.
type timers struct {
	idle  func()
	alive func()
	retry retry
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
	gen   uint64
}

type dueKind int

const (
	dueIdle dueKind = iota
	dueTrim
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
		if s.idle() && d.gen == s.timers.gen && s.parent != nil {
			s.deps.Kernel.Tell(s.parent, Idle{Key: s.key, Self: s.self, Gen: d.gen})
		}
	case dueTrim:
		s.timers.idle = nil
		if s.idle() && d.gen == s.timers.gen {
			s.output.clear()
			s.timers.idle = s.arm(due{life: s.life, what: dueIdle, gen: d.gen}, s.deps.Idle-trimAfter)
		}
	case dueAlive:
		s.timers.alive = nil
		s.report(ctx, core.Tick{})
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
// there is open work. A session that does not exist does not wait: a name that somebody tried out costs nothing.
func (s *Session) settle(actor.Context) {
	if s.stage == stageEnding || s.stage == stageRecovering {
		return
	}
	if s.stage == stageReady && s.state.Ledger.Open() {
		if s.timers.alive == nil {
			s.timers.alive = s.arm(due{life: s.life, what: dueAlive}, s.deps.Core.AliveEvery())
		}
	} else if s.timers.alive != nil {
		s.timers.alive()
		s.timers.alive = nil
	}
	s.settleSlot()
	s.timers.gen++
	if s.timers.idle != nil {
		s.timers.idle()
		s.timers.idle = nil
	}
	if s.idle() {
		what, after := dueIdle, s.deps.Idle
		switch {
		case s.stage == stageRefusing || !s.state.Exists():
			after = 0
		case s.output.kept() > 0 && after > trimAfter:
			what, after = dueTrim, trimAfter
		}
		s.timers.idle = s.arm(due{life: s.life, what: what, gen: s.timers.gen}, after)
	}
	s.settleDrain()
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
