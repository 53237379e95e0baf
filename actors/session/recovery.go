package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// recovered is the outcome of claim and replay.
type recovered struct {
	life  *life
	state core.State
	epoch uint64
	took  time.Duration
	err   error
}

// ControlMessage implements kernel.Control.
func (recovered) ControlMessage() {}

// recover claims the session and replays both streams, in a goroutine of its own.
func (s *Session) recover() {
	s.stage = stageRecovering
	s.blocked = false
	s.abandonSlots()
	// What an earlier recovery left undone is decided anew.
	s.pending = slices.DeleteFunc(s.pending, func(p *pending) bool {
		_, again := p.cmd.(core.Recover)
		p.looked = false // the index is asked anew: what it said is older than what the replay finds
		return again
	})
	deps, key, life, self := s.deps, s.key, s.life, s.self
	go func() {
		begin := time.Now()
		state, epoch, err := load(context.Background(), deps, key)
		deps.Kernel.Tell(self, recovered{life: life, state: state, epoch: epoch, took: time.Since(begin), err: err})
	}()
}

// load claims first, so that nothing can be written behind the replay's back (I12).
func load(ctx context.Context, deps *Deps, key messages.Key) (core.State, uint64, error) {
	claim, err := deps.Journal.Claim(ctx, key, deps.Owner)
	if err != nil {
		return core.State{}, 0, err
	}
	reduce := func(state core.State, rec messages.Record) (core.State, error) {
		return core.Reduce(state, deps.Core, rec)
	}
	state := core.New(key)
	for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
		if state, _, err = persistence.Replay(ctx, deps.Journal, key, stream, 0, state, reduce); err != nil {
			return core.State{}, 0, err
		}
	}
	return state, claim.Epoch, nil
}

func (s *Session) recovered(ctx actor.Context, m recovered) {
	if m.life != s.life || s.stage != stageRecovering {
		return
	}
	if m.err != nil {
		s.recoveryFailed(ctx, m.err)
		return
	}
	published := max(s.state.Live.NextSeq, 1) - 1
	asks, settles := s.state.Live.Asks, s.state.Live.Settles
	s.state, s.stage = m.state, stageReady
	s.state.Live.Asks, s.state.Live.Settles = asks, settles
	s.state.Live.Epoch, s.state.Live.NextSeq = m.epoch, m.state.Ledger.OutputReserved+1
	s.output = newOutput(s.deps.Output)
	s.noteLineage()
	s.carryOver(published)
	s.timers.retry.reset()
	s.log().LogAttrs(context.Background(), slog.LevelDebug, "session started",
		slog.Uint64(messages.AttrEventHead, m.state.Router.EventSequence), slog.Uint64(messages.AttrLedger, m.state.Ledger.Head),
		slog.Uint64(messages.AttrEpoch, m.epoch), slog.Int64(messages.AttrDuration, m.took.Milliseconds()))
	first := &pending{cmd: core.Recover{Epoch: m.epoch, InPlace: s.begunOnce, Draining: s.draining}, internal: true}
	s.begunOnce = true
	s.pending = slices.Insert(s.pending, 0, first)
	s.drive(ctx)
}

// recoveryFailed: damage and tombstones refuse all service until the process or an operator changes something; anything else
// is tried again.
func (s *Session) recoveryFailed(ctx actor.Context, err error) {
	level := slog.LevelError
	switch {
	case errors.Is(err, persistence.ErrDeleted):
		level = slog.LevelDebug
		s.refusal = messages.Fail(messages.CodeSessionDeleted, "the session was deleted")
	case errors.Is(err, persistence.ErrCorrupt), errors.Is(err, messages.ErrUnknownType), errors.Is(err, messages.ErrBadRecord):
		s.refusal = messages.Fail(messages.CodeQuarantined, "the session's journal has a record that cannot be read; an operator must look at it")
		if s.parent != nil {
			s.deps.Kernel.Tell(s.parent, Quarantined{Key: s.key, Self: s.self})
		}
	case errors.Is(err, persistence.ErrClosed):
		s.end(ctx)
		return
	default:
		s.log().LogAttrs(context.Background(), slog.LevelWarn, "session cannot start, will try again", slog.Any(messages.AttrError, err))
		s.refuseWaiting(messages.FailRetryable(messages.CodeUnavailable, "the journal cannot be read now; try again"))
		s.arm(due{life: s.life, what: dueRecover}, s.timers.retry.next())
		return
	}
	s.stage = stageRefusing
	s.log().LogAttrs(context.Background(), level, "session refuses service", slog.Any(messages.AttrError, err))
	s.refuseWaiting(s.refusal)
	s.settle(ctx)
}

func (s *Session) refuseWaiting(f *messages.Failure) {
	for _, p := range s.takeWaiting() {
		s.refuse(p, f)
	}
}
