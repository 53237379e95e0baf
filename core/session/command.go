package session

import (
	"time"

	"github.com/correx/correx-actors/messages"
)

// Command is what Decide decides on: a client's or host's request with what the shell added to it, or a report of the run.
//
//sumtype:decl
type Command interface{ isCommand() }

// Recover is the first command of an activation, after replay.
type Recover struct {
	Epoch uint64
	// InPlace: the process lived on and only read its journal anew, so a run that had no end is no sign of a crash.
	InPlace bool
	// Draining: the process is shutting down, open work is left to the next start.
	Draining bool
}

// Start makes the session or changes its settings.
type Start struct{ Config *messages.SessionConfig }

// Touch makes the session if it does not exist.
type Touch struct{}

// Submit asks for a turn.
type Submit struct {
	Request *messages.SubmitTurn
	// TurnID is the id that the turn gets if it is admitted.
	TurnID messages.TurnID
	// Prior is what the journal's idempotency index says of Request's key; nil = nothing.
	Prior *Prior
}

// Prior is an earlier, ended turn with the same idempotency key.
type Prior struct {
	Entry  *messages.IdempotencyEntry
	Status *messages.TurnStatus
}

// Record appends workflow events of a host.
type Record struct {
	Events []messages.Event
	// Expected is the event log's head that the host believes; nil = no check.
	Expected *uint64
}

// Abort stops work.
type Abort struct {
	Request *messages.Abort
	// Ended: the turn or run that Request names ended earlier.
	Ended bool
}

// Withdraw takes back a turn that has not started.
type Withdraw struct {
	TurnID messages.TurnID
	// Ended is what the journal's index says of a turn that has ended; nil = nothing.
	Ended *messages.TurnStatus
}

// SteerAnswered is the run's answer to an offer.
type SteerAnswered struct {
	RunID    RunID
	Attempt  uint32
	TurnID   messages.TurnID
	Accepted bool
	// Reason of a refusal.
	Reason string
}

// SteerAsked asks for leave to put an accepted turn's text before the run's next model call: the record comes before the deed.
type SteerAsked struct {
	RunID   RunID
	Attempt uint32
	TurnID  messages.TurnID
	// BeforeCall is the number of that call, from 1.
	BeforeCall uint32
}

// OfferOver says that the run has not answered an offer in time.
type OfferOver struct{ TurnID messages.TurnID }

// SlotGranted says that what AskSlot asked for is in hand.
type SlotGranted struct{ RunID RunID }

// SlotOver says that a slot did not come in time; Ask is the count that ArmSlot gave.
type SlotOver struct {
	RunID RunID
	Ask   uint64
}

// LeaseWanted says that another session's interrupt waits for the conversation that the run resumes.
type LeaseWanted struct{ RunID RunID }

// SettleOver says that the time in which followups gather is over; Settle is the count that ArmSettle gave.
type SettleOver struct{ Settle uint64 }

// StartFailed says that the attempt's runner ended before its work began.
type StartFailed struct {
	RunID   RunID
	Attempt uint32
}

// StartAgain says that the pause after a failed start is over.
type StartAgain struct {
	RunID   RunID
	Attempt uint32
}

// KeepAlive is a user's word on a run that waits for it.
type KeepAlive struct {
	RunID    RunID
	Decision string
}

// Ack acknowledges finals.
type Ack struct{ Seq uint64 }

// RunPhased reports a step of the run, or with a reason alone that it waits.
type RunPhased struct {
	RunID   RunID
	Attempt uint32
	Phase   messages.Phase
	// Reason of a wait; "" = none.
	Reason string
}

// RunRetried reports that the text of an attempt was cut: the next one replaces it, and all that is reported later is of that.
type RunRetried struct {
	RunID RunID
	// Attempt that was cut.
	Attempt uint32
	Reason  string
}

// ToolsAsked asks for leave to start a batch of tool calls: the record comes before the deed.
type ToolsAsked struct {
	RunID   RunID
	Attempt uint32
	CallIDs []string
}

// ToolsMoved reports the newest state of the run's tool calls, all of them.
type ToolsMoved struct {
	RunID   RunID
	Attempt uint32
	Actions []*messages.ToolAction
}

// RunStreamed reports text of the run.
type RunStreamed struct {
	RunID   RunID
	Attempt uint32
	Text    string
}

// RunFinished reports the end of the run.
type RunFinished struct {
	RunID   RunID
	Attempt uint32
	Outcome messages.Outcome
	// Content is the whole answer, or what there was of it.
	Content      string
	FinishReason string
	Usage        *messages.Usage
	Error        *messages.Failure
	// Resume is the token with which a later run continues; nil = the engine gave none.
	Resume *messages.ResumeToken
	// ResumeLost: the token that the run resumed leads nowhere any more.
	ResumeLost bool
}

// GraceOver says that the canceled run has not reported in time.
type GraceOver struct {
	RunID   RunID
	Attempt uint32
}

// Tick comes now and then while the session has open work.
type Tick struct{}

// Drain stops admission and starts; the active run goes on.
type Drain struct{}

// Suspend stops the active run for a stop of the process; recovery resumes it.
type Suspend struct{}

func (Recover) isCommand()       {}
func (Start) isCommand()         {}
func (Touch) isCommand()         {}
func (Submit) isCommand()        {}
func (Record) isCommand()        {}
func (Abort) isCommand()         {}
func (Withdraw) isCommand()      {}
func (SteerAnswered) isCommand() {}
func (SteerAsked) isCommand()    {}
func (OfferOver) isCommand()     {}
func (SlotGranted) isCommand()   {}
func (SlotOver) isCommand()      {}
func (LeaseWanted) isCommand()   {}
func (SettleOver) isCommand()    {}
func (StartFailed) isCommand()   {}
func (StartAgain) isCommand()    {}
func (KeepAlive) isCommand()     {}
func (Ack) isCommand()           {}
func (RunPhased) isCommand()     {}
func (RunRetried) isCommand()    {}
func (ToolsAsked) isCommand()    {}
func (ToolsMoved) isCommand()    {}
func (RunStreamed) isCommand()   {}
func (RunFinished) isCommand()   {}
func (GraceOver) isCommand()     {}
func (Tick) isCommand()          {}
func (Drain) isCommand()         {}
func (Suspend) isCommand()       {}

// Decision is what a command does.
type Decision struct {
	// At is the time of the decision, which every record of it has.
	At time.Time
	// Host events, as recorded by a host.
	Host []messages.Event
	// Emit is what the router writes to the event log; the type admits steering notes only (I2).
	Emit []messages.RouterEvent
	// Ledger records.
	Ledger []messages.LedgerRecord
	// Index entries that go into the same append.
	Index []IndexEntry
	// Checkpoint: Ledger starts with a checkpoint, and what lies before it may be pruned.
	Checkpoint bool
	// Next is the state afterwards: the fold of the records above over the old one, and what is live.
	Next State
	// Reply to the command's sender, once all is durable (I6); nil = none.
	Reply messages.Reply
	// Effects, after the reply.
	Effects []Effect
}

// Durable says whether there is anything to append.
func (d Decision) Durable() bool { return len(d.Host)+len(d.Emit)+len(d.Ledger) > 0 }

// IndexEntry is one entry of the journal's index: of a turn that has ended, or of an idempotency key.
type IndexEntry struct {
	// Turn, or nil.
	Turn *messages.TurnStatus
	// Key and Idempotency, or neither.
	Key         string
	Idempotency *messages.IdempotencyEntry
	// Expires is when the entry may go. A turn's outlives its key's, so that a key that is remembered finds its turn.
	Expires time.Time
	// Keep bounds the entries of this kind, the oldest go first; 0 = no bound.
	Keep int
}

// Effect is what a decision wants done.
//
//sumtype:decl
type Effect interface{ isEffect() }

// Publish delivers a numbered output item.
type Publish struct {
	Seq    uint64
	Intent messages.Intent
}

// AskSlot asks for what a run needs before it may start, in place of what was asked for before; SlotGranted answers. Whoever can
// grant it at once decides the command again with it in hand (DecideWith).
type AskSlot struct {
	RunID RunID
	Needs Needs
}

// DropSlot takes the request back, or what it got.
type DropSlot struct{}

// ArmSlot sends SlotOver after a while.
type ArmSlot struct {
	RunID RunID
	Ask   uint64
	After time.Duration
}

// ArmSettle sends SettleOver after a while.
type ArmSettle struct {
	Settle uint64
	After  time.Duration
}

// ArmStart sends StartAgain after a while.
type ArmStart struct {
	RunID   RunID
	Attempt uint32
	After   time.Duration
}

// StartRun starts the active run's next attempt. Its slot is in hand.
type StartRun struct{ Order RunOrder }

// CancelRun cancels the attempt's provider call.
type CancelRun struct {
	RunID   RunID
	Attempt uint32
	Cause   CancelCause
}

// ArmGrace sends GraceOver after a while.
type ArmGrace struct {
	RunID   RunID
	Attempt uint32
	After   time.Duration
}

// OfferSteer hands a turn to the active run, which answers with SteerAnswered.
type OfferSteer struct {
	RunID   RunID
	Attempt uint32
	TurnID  messages.TurnID
	Text    string
}

// ArmOffer sends OfferOver after a while.
type ArmOffer struct {
	TurnID messages.TurnID
	After  time.Duration
}

// LaunchTools is the leave that ToolsAsked asked for.
type LaunchTools struct {
	RunID   RunID
	Attempt uint32
	CallIDs []string
}

// RefuseSteer answers SteerAsked for a turn that is no longer offered: it was withdrawn, or fell back.
type RefuseSteer struct {
	RunID   RunID
	Attempt uint32
	TurnID  messages.TurnID
}

// Inject is the leave that SteerAsked asked for.
type Inject struct {
	RunID   RunID
	Attempt uint32
	TurnID  messages.TurnID
}

// AckRunner lets the runner send its next text.
type AckRunner struct {
	RunID   RunID
	Attempt uint32
}

// AnnounceEvents tells events subscribers that the event log has grown.
type AnnounceEvents struct{ Head uint64 }

func (Publish) isEffect()        {}
func (AskSlot) isEffect()        {}
func (DropSlot) isEffect()       {}
func (ArmSlot) isEffect()        {}
func (ArmSettle) isEffect()      {}
func (ArmStart) isEffect()       {}
func (StartRun) isEffect()       {}
func (CancelRun) isEffect()      {}
func (ArmGrace) isEffect()       {}
func (OfferSteer) isEffect()     {}
func (ArmOffer) isEffect()       {}
func (LaunchTools) isEffect()    {}
func (RefuseSteer) isEffect()    {}
func (Inject) isEffect()         {}
func (AckRunner) isEffect()      {}
func (AnnounceEvents) isEffect() {}

// CancelCause says why a run is canceled.
type CancelCause string

// Cancel causes.
const (
	CauseAborted   CancelCause = "aborted"
	CauseInterrupt CancelCause = "interrupted"
	CauseSuspended CancelCause = "suspended"
	CauseFenced    CancelCause = "fenced"
	CauseStopped   CancelCause = "stopped"
)
