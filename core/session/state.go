package session

import (
	"time"

	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

// State is all that a session's actor knows. It is immutable: every change gives a new one, and readers may keep old ones.
type State struct {
	Key messages.Key
	// Router is the fold of the event log (I1).
	Router router.State
	// Ledger is the fold of the turn ledger.
	Ledger Ledger
	// Live belongs to this activation and dies with it.
	Live Live
}

// Ledger is what the turn ledger says.
type Ledger struct {
	// Head is the last ledger record folded in.
	Head uint64
	// Config is what start_session set; nil = nothing.
	Config *messages.SessionConfig
	// Active run; nil = idle.
	Active *Run
	// Queue of waiting and offered turns.
	Queue queue.Queue
	// History of the conversation, oldest first, at most twice the session's keep-last entries.
	History []Entry
	// Finals that no subscriber has acknowledged.
	Finals Finals
	// OutputReserved: output numbers up to this one may have been given out (I11).
	OutputReserved uint64
	// LastTime is the newest time that a record names; it bounds the clock from below and dates a downtime.
	LastTime time.Time
	// Resume is the newest resume token that the session's runs reported.
	Resume intake.Stored
	// Spent is what the session's runs used on the newest day.
	Spent Spending
	// Awaited are the waiting runs whose wait for a slot was announced.
	Awaited []RunID
	// Parts of a checkpoint whose last part is still to come; nil = none.
	Parts *[]byte
	// SinceCheckpoint counts ledger records since the last checkpoint.
	SinceCheckpoint int
}

// Run is the active run.
type Run struct {
	ID RunID
	// Turns that the run answers, the first one leads.
	Turns []*messages.Turn
	// Attempt counts from 1.
	Attempt uint32
	// Recoveries counts restarts after a crash.
	Recoveries uint32
	StartedAt  time.Time
	// Suspended: the process stopped in order while it ran.
	Suspended bool
	// Aborted: a user stopped it; it is never resumed.
	Aborted bool
	// AbortReason is what the user said.
	AbortReason string
	// Interrupted: a turn of mode interrupt stopped it; Aborted is set too.
	Interrupted bool
	// Launched: tools were started, so a crash may have left something half done: it is never started again.
	Launched bool
	// Injected turns steered the run.
	Injected []*messages.Turn
}

// RunID is messages.RunID.
type RunID = messages.RunID

// TurnIDs of the run in order.
func (r *Run) TurnIDs() []string {
	ids := make([]string, len(r.Turns))
	for i, t := range r.Turns {
		ids[i] = t.GetTurnId()
	}
	return ids
}

// Live is the part of a state that is not recorded.
type Live struct {
	// Epoch of this activation's claim.
	Epoch uint64
	// NextSeq is the number of the next output item.
	NextSeq uint64
	// CheckpointAt: no checkpoint is tried before so many records; the last one was too large.
	CheckpointAt int
	// Settles and Asks count the times of settling and the requests for slots, so that a timer of an older one is told apart.
	Settles, Asks uint64
	// Asked is the request for a slot that is under way; the zero value = none.
	Asked AskSlot
	// Working is the run whose attempt has its slot: only its reports count.
	Working RunID
	// Phase of the active run, as published.
	Phase messages.Phase
	// Accepted are the offered turns that the active run has accepted and not yet asked for.
	Accepted []messages.TurnID
	// Actions of the active run's tools, as published.
	Actions []*messages.ToolAction
	// Text that the active run's attempt has streamed so far.
	Text Text

	// The flags stand together: an idle session is kept small.

	// Recovered: Recover has been decided, commands may come.
	Recovered bool
	// Draining: no new turn is admitted and none is started.
	Draining bool
	// Held: open turns outlived a restart and wait for a user's word.
	Held bool
	// Settling: the one turn that waits is given time for more of its kind.
	Settling bool
	// Restarting: the attempt is between two starts, and no runner exists.
	Restarting bool
	// AfterCrash: the next attempt of the active run is a recovery from a crash.
	AfterCrash bool
	// Streamed: the active run has streamed text since this activation began, in this attempt or an earlier one.
	Streamed bool
	// Starts of the attempt that failed.
	Starts uint8
}

// Open says whether the session has unfinished turns.
func (l Ledger) Open() bool { return l.Active != nil || !l.Queue.Empty() }

// Running says whether this activation has a run in work: not one that waits for its slot or for the next start.
func (s State) Running() bool {
	return s.Ledger.Active != nil && s.Ledger.Active.ID == s.Live.Working
}

// Exists says whether anything was ever recorded.
func (s State) Exists() bool { return s.Ledger.Head > 0 || s.Router.EventSequence > 0 }

// openTurn finds an unended turn by a predicate.
func (l Ledger) openTurn(match func(*messages.Turn) bool) (turn *messages.Turn, active bool) {
	if l.Active != nil {
		for _, t := range l.Active.Turns {
			if match(t) {
				return t, true
			}
		}
	}
	turn, _, _ = l.Queue.Find(match)
	return turn, false
}

// Turn tells of an unended turn, by id.
func (s State) Turn(id messages.TurnID) (*messages.TurnStatus, bool) {
	return s.openStatus(func(t *messages.Turn) bool { return t.GetTurnId() == id })
}

// TurnByKey tells of an unended turn, by its idempotency key.
func (s State) TurnByKey(key string) (*messages.TurnStatus, bool) {
	return s.openStatus(func(t *messages.Turn) bool { return key != "" && t.GetIdempotencyKey() == key })
}

func (s State) openStatus(match func(*messages.Turn) bool) (*messages.TurnStatus, bool) {
	t, active := s.Ledger.openTurn(match)
	if t == nil {
		return nil, false
	}
	status := &messages.TurnStatus{
		TurnId:         t.GetTurnId(),
		State:          string(messages.TurnQueued),
		RunId:          t.GetRunId(),
		IdempotencyKey: t.GetIdempotencyKey(),
		ContentHash:    t.GetContentHash(),
	}
	if active {
		s.Ledger.Active.fill(status)
		return status, true
	}
	_, entry, offered := s.Ledger.Queue.Find(match)
	if offered {
		status.State = string(messages.TurnOffered)
		return status, true
	}
	position := uint32(s.Ledger.Queue.Before(entry)) //nolint:gosec // bounded by the queue limit
	status.Position = &position
	status.Reason = s.waitReason(t, position)
	lead := s.Ledger.Queue.Waiting[entry].Lead()
	if status.RunId = lead.GetRunId(); lead != t {
		status.MergedInto = lead.GetTurnId()
	}
	return status, true
}

// fill tells the state of one of the run's turns: the leading one runs, the others have ended as merged into it.
func (r *Run) fill(status *messages.TurnStatus) {
	status.State, status.RunId = string(messages.TurnRunning), r.ID
	if lead := r.Turns[0].GetTurnId(); status.GetTurnId() != lead {
		status.State, status.MergedInto = string(messages.TurnMerged), lead
	}
}

// waitReason says why a turn with so many before it waits.
func (s State) waitReason(turn *messages.Turn, before uint32) string {
	switch {
	case turn.GetWaitReason() != "":
		return turn.GetWaitReason()
	case s.Live.Held:
		return "the server was restarted: open turns wait for a word of their user"
	case s.Live.Settling:
		return "it waits for more followups"
	case s.Ledger.Active == nil && before == 0 && s.Live.Asked.Needs.Lease != "":
		return "it waits for a run slot, or for another session that goes on with the same conversation"
	case s.Ledger.Active == nil && before == 0 && s.Live.Asked.RunID != "":
		return "it waits for a run slot: too many other answers are being worked on"
	}
	return waitsItsTurn
}

const waitsItsTurn = "it waits its turn"
