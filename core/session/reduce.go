package session

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

// New is the state of a session before its first record.
func New(key messages.Key) State { return State{Key: key} }

// Reduce folds one stored record of either stream. Errors: a payload that does not decode, and messages.ErrUnknownType for
// a ledger record of a newer build: such a session must not be activated by this one.
func Reduce(s State, cfg Config, rec messages.Record) (State, error) {
	if rec.Stream == messages.StreamEvents {
		event, err := messages.DecodeEvent(rec.Type, rec.Version, rec.Payload)
		if err != nil {
			return s, err
		}
		return s.reduceEvent(event, rec.Seq, rec.Time), nil
	}
	record, err := messages.DecodeLedger(rec.Type, rec.Version, rec.Payload)
	if err != nil {
		if errors.Is(err, messages.ErrUnknownType) && rec.Flags&messages.FlagIgnorable != 0 {
			s.Ledger.Head = rec.Seq
			return s, nil
		}
		return s, fmt.Errorf("ledger record %d: %w", rec.Seq, err)
	}
	if part, ok := record.(*messages.CheckpointPart); ok && part.GetPart() == part.GetParts() {
		if _, err := messages.JoinCheckpoint(joined(s.Ledger.Parts, part)); err != nil {
			return s, fmt.Errorf("ledger record %d: %w", rec.Seq, err)
		}
	}
	s.Ledger = s.Ledger.reduce(record, rec.Seq, s.settings(cfg).keepLast)
	return s, nil
}

func (s State) reduceEvent(e messages.Event, seq uint64, at time.Time) State {
	s.Router = router.Reduce(s.Router, e, seq, at, s.Key)
	return s
}

// reduce folds one ledger record. A record that does not fit (it names a run that is not active) changes nothing but the
// head: replay never refuses.
func (l Ledger) reduce(record messages.LedgerRecord, seq uint64, keepLast int) Ledger { //nolint:funlen // one case for each record
	l.Head = seq
	l.SinceCheckpoint++
	switch r := record.(type) {
	case *messages.SessionConfigured:
		l.Config = r.GetConfig()
	case *messages.TurnAdmitted:
		if r.GetTurn() == nil {
			return l
		}
		at := r.GetTurn().GetAcceptedAt()
		l.Queue = l.Queue.Put(r.GetTurn(), queue.ParsePlace(r.GetPlacement()), r.GetMergedInto(), at.AsTime())
		l = l.at(at)
	case *messages.TurnReturned:
		at := r.GetReturnedAt()
		l.Queue = l.Queue.Return(r.GetTurnId(), queue.ParsePlace(r.GetPlacement()), r.GetMergedInto(), r.GetReason(), at.AsTime())
		l = l.at(at)
	case *messages.TurnInjected:
		l = l.injected(r, keepLast).at(r.GetSteeredAt())
	case *messages.SlotAwaited:
		if !l.awaited(r.GetRunId()) {
			l.Awaited = append(slices.Clone(l.Awaited), r.GetRunId())
		}
		l = l.at(r.GetAwaitedAt())
	case *messages.RunStarted:
		l = l.runStarted(r, keepLast).at(r.GetStartedAt())
	case *messages.ToolsLaunched:
		l = l.changeActive(r.GetRunId(), func(run *Run) { run.Launched = true }).at(r.GetLaunchedAt())
	case *messages.RunSuspended:
		l = l.changeActive(r.GetRunId(), func(run *Run) { run.Suspended = true })
	case *messages.RunEnded:
		l = l.runEnded(r, keepLast).at(r.GetEndedAt())
	case *messages.TurnEnded:
		l.Queue = l.Queue.Remove(r.GetTurnId())
		l = l.forgetAwaited(messages.RunIDOf(r.GetTurnId())).at(r.GetEndedAt())
	case *messages.AbortRequested:
		l = l.changeActive(r.GetRunId(), func(run *Run) {
			run.Aborted, run.AbortReason, run.Interrupted = true, r.GetReason(), r.GetInterrupt()
		})
		l = l.at(r.GetRequestedAt())
	case *messages.OutputReserved:
		l.OutputReserved = max(l.OutputReserved, r.GetUpTo())
	case *messages.SessionAlive:
		l = l.at(r.GetAt())
	case *messages.FinalsAcked:
		l.Finals = l.Finals.keep(r.GetUpTo(), time.Time{}, l.Finals.Len())
	case *messages.CheckpointPart:
		data := joined(l.Parts, r)
		if l.Parts = &data; r.GetPart() == r.GetParts() {
			if whole, err := messages.JoinCheckpoint(data); err == nil { // Reduce has looked
				l = restore(whole, seq)
			}
		}
	case *messages.LedgerCheckpoint:
		l = restore(r, seq)
	}
	return l
}

// joined are the parts of a checkpoint so far and the next one.
func joined(parts *[]byte, next *messages.CheckpointPart) []byte {
	if parts == nil {
		return next.GetData()
	}
	return slices.Concat(*parts, next.GetData())
}

func (l Ledger) at(t *timestamppb.Timestamp) Ledger {
	if when := t.AsTime(); t != nil && when.After(l.LastTime) {
		l.LastTime = when
	}
	return l
}

func (l Ledger) runStarted(r *messages.RunStarted, keepLast int) Ledger {
	run := &Run{
		ID: r.GetRunId(), Attempt: r.GetAttempt(), Recoveries: r.GetRecoveries(), StartedAt: r.GetStartedAt().AsTime(),
	}
	if l.Active != nil && l.Active.ID == run.ID {
		run.Turns, run.Injected, run.Launched = l.Active.Turns, l.Active.Injected, l.Active.Launched // a further attempt: its turns are in the history already
		l.Active = run
		return l
	}
	if l.Active != nil {
		return l
	}
	rest, taken := l.Queue.Take(r.GetTurnIds())
	if len(taken) == 0 {
		return l
	}
	run.Turns = taken
	l.Queue, l.Active = rest, run
	l = l.forgetAwaited(run.ID)
	l.History = remember(l.History, keepLast, question(taken))
	return l
}

// injected ends an offered turn: its text is part of the run's conversation from now on.
func (l Ledger) injected(r *messages.TurnInjected, keepLast int) Ledger {
	turn, _, offered := l.Queue.Find(func(t *messages.Turn) bool { return t.GetTurnId() == r.GetTurnId() })
	if !offered {
		return l
	}
	l.Queue = l.Queue.Remove(r.GetTurnId())
	l = l.changeActive(r.GetRunId(), func(run *Run) { run.Injected = append(slices.Clone(run.Injected), turn) })
	l.History = remember(l.History, keepLast, question([]*messages.Turn{turn}))
	return l
}

func (l Ledger) runEnded(r *messages.RunEnded, keepLast int) Ledger {
	if l.Active == nil || l.Active.ID != r.GetRunId() {
		return l
	}
	if !blank(r.GetContent()) {
		l.History = remember(l.History, keepLast, Entry{
			Role:    messages.RoleRouter,
			Content: r.GetContent(),
			At:      timeOf(r.GetEndedAt()),
			Partial: messages.Outcome(r.GetOutcome()) != messages.OutcomeCompleted,
			TurnID:  first(r.GetTurnIds()),
		})
	}
	l.Finals, l.Spent = l.Finals.add(r), l.Spent.add(r)
	l.Active = nil
	if r.GetResume() != nil {
		l.Resume = intake.Stored{Token: r.GetResume(), Lineage: r.GetResumeLineage(), TurnID: first(r.GetTurnIds())}
	} else if r.GetResumeLost() {
		l.Resume = intake.Stored{}
	}
	return l
}

func (l Ledger) changeActive(id RunID, change func(*Run)) Ledger {
	if l.Active == nil || l.Active.ID != id {
		return l
	}
	run := *l.Active
	change(&run)
	l.Active = &run
	return l
}
