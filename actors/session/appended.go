package session

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/runner"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// appended is the outcome of the append in flight.
type appended struct {
	life  *life
	batch *batch
	where persistence.Appended
	err   error
}

// ControlMessage implements kernel.Control.
func (appended) ControlMessage() {}

func (s *Session) appended(ctx actor.Context, m appended) {
	if m.life != s.life || m.batch != s.inflight {
		return
	}
	if m.err == nil {
		s.inflight, s.stuck = nil, false
		s.timers.retry.reset()
		s.apply(ctx, m.batch)
		s.drive(ctx)
		return
	}
	s.appendFailed(ctx, m.batch, m.err)
}

// appendFailed does what the table of errors in docs/journal.md says. No effect of the batch has run.
func (s *Session) appendFailed(ctx actor.Context, b *batch, err error) {
	s.log().LogAttrs(context.Background(), slog.LevelWarn, "append failed",
		slog.Any(messages.AttrError, err), slog.Int(messages.AttrRecords, len(b.data.Records)))
	if errors.Is(err, persistence.ErrUnknown) {
		s.appendUnknown(b)
		return
	}
	switch {
	case errors.Is(err, persistence.ErrConflict):
		s.dropBatch()
		s.pending = append(waiting(b), s.pending...)
		s.cancelRunner(core.CauseStopped)
		s.recover()
	case errors.Is(err, persistence.ErrFenced):
		s.dropBatch()
		s.cancelRunner(core.CauseFenced)
		moved := messages.FailRetryable(messages.CodeUnavailable, "another process took the session over; try again")
		s.pending = append(waiting(b), s.pending...)
		s.refuseWaiting(moved)
		s.end(ctx)
	case errors.Is(err, persistence.ErrDeleted):
		s.dropBatch()
		s.cancelRunner(core.CauseStopped)
		s.pending = append(waiting(b), s.pending...)
		s.recoveryFailed(ctx, err)
	case errors.Is(err, persistence.ErrCorrupt):
		s.dropBatch()
		s.cancelRunner(core.CauseStopped)
		s.pending = append(waiting(b), s.pending...)
		s.recoveryFailed(ctx, err)
	case errors.Is(err, persistence.ErrTooLarge), errors.Is(err, persistence.ErrInvalid):
		for _, p := range waiting(b) {
			shrink(p)
		}
		s.notStored(ctx, b, messages.Fail(messages.CodeInputTooLarge, "the command is too large to be recorded"))
	case errors.Is(err, persistence.ErrClosed):
		s.notStored(ctx, b, messages.FailRetryable(messages.CodeDraining, "the server is shutting down; try again"))
	case b.tries > 0: // this try stored nothing, but an earlier one may have
		s.appendUnknown(b)
	default: // full, unavailable, failed: surely not stored, or the driver refuses all
		s.notStored(ctx, b, messages.FailRetryable(messages.CodeUnavailable, "the journal takes no records now; try again"))
	}
}

// dropBatch gives the append in flight up: nothing of it takes effect.
func (s *Session) dropBatch() {
	s.inflight.giveBack()
	s.inflight = nil
}

func waiting(b *batch) []*pending {
	all := make([]*pending, len(b.steps))
	for i, step := range b.steps {
		all[i] = step.from
	}
	return all
}

// notStored refuses the commands from outside and keeps our own for another try: the end of a run is never dropped. What
// waits behind our own is refused as well when the journal takes nothing: nobody knows for how long. The state stays as it
// was. There is no restart: that would make an overload worse.
func (s *Session) notStored(ctx actor.Context, b *batch, f *messages.Failure) {
	s.dropBatch()
	again := s.refuseOutside(waiting(b), f)
	if len(again) == 0 {
		s.drive(ctx)
		return
	}
	if f.GetRetryable() {
		s.pending = s.refuseOutside(s.pending, f)
	}
	s.pending = append(again, s.pending...)
	s.blocked, s.stuck = true, true // nothing is decided until the pause is over
	s.arm(due{life: s.life, what: dueRetry}, s.timers.retry.next())
}

// refuseOutside refuses the commands from outside and gives the others.
func (s *Session) refuseOutside(commands []*pending, f *messages.Failure) (own []*pending) {
	for _, p := range commands {
		if p.internal {
			own = append(own, p)
			continue
		}
		s.refuse(p, f)
	}
	return own
}

// shrink takes the answer out of the end of a run that the journal can never take: better a run that failed than one that
// never ends.
func shrink(p *pending) {
	end, ok := p.cmd.(core.RunFinished)
	if !ok {
		return
	}
	end.Outcome, end.Content = messages.OutcomeFailed, ""
	end.Error = messages.Fail(messages.CodeInternal, "the answer is too large to be recorded")
	p.cmd = end
}

// appendUnknown tries the same batch again: its record ids make that safe. When the time is up the senders are told with the
// turn's id, so that they can ask, and a new replay finds out what is true.
func (s *Session) appendUnknown(b *batch) {
	b.tries++
	pause := s.timers.retry.next()
	if b.firstTry.IsZero() {
		b.firstTry = s.now()
	}
	if s.now().Add(pause).Sub(b.firstTry) <= s.deps.UnknownFor {
		s.arm(due{life: s.life, what: dueResend, batch: b}, pause)
		return
	}
	s.dropBatch()
	var again []*pending
	for _, p := range waiting(b) {
		if p.internal {
			again = append(again, p)
			continue
		}
		f := messages.FailRetryable(messages.CodeUnavailable, "it is not known whether the command was recorded; ask before you send it again")
		f.TurnId = p.turnID
		s.answer(p, f)
	}
	s.pending = append(again, s.pending...)
	s.cancelRunner(core.CauseStopped)
	s.recover()
}

// cancelRunner ends the run's call without waiting for its report.
func (s *Session) cancelRunner(cause core.CancelCause) {
	if s.runner != nil {
		s.deps.Kernel.Tell(s.runner, runner.Cancel{Cause: cause})
		s.deps.Kernel.Root().Stop(s.runner)
		s.runner = nil
	}
}
