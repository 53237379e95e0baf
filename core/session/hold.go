package session

import (
	"fmt"

	"github.com/correx/correx-actors/messages"
)

// RecoveryPolicy says what a start does with turns that outlived the stop before.
type RecoveryPolicy string

// Recovery policies.
const (
	// RecoveryResume goes on with them.
	RecoveryResume RecoveryPolicy = "resume"
	// RecoveryAsk keeps them until a user says what becomes of them.
	RecoveryAsk RecoveryPolicy = "ask"
	// RecoveryDrop ends them, and tells who sent them.
	RecoveryDrop RecoveryPolicy = "drop"
)

// Valid says whether p is one of them.
func (p RecoveryPolicy) Valid() bool {
	switch p {
	case RecoveryResume, RecoveryAsk, RecoveryDrop:
		return true
	}
	return false
}

// ReasonDropped is why the policy drop ended a turn.
const ReasonDropped = "the server was restarted, and open turns are dropped then"

// askHeld asks who listens what becomes of the turns that are held. Nobody could listen when they were, so it is asked when
// somebody comes.
func (d *draft) askHeld() {
	if d.s.Live.Held {
		d.publish(&messages.Notice{RunId: d.nextRun(), Text: "the server was restarted: open turns wait until you continue or cancel them"})
	}
}

// nextRun is the run that a word of the user is about: the active one, or the first that waits.
func (d *draft) nextRun() RunID {
	if run := d.s.Ledger.Active; run != nil {
		return run.ID
	}
	if waiting := d.s.Ledger.Queue.Waiting; len(waiting) > 0 {
		return waiting[0].Lead().GetRunId()
	}
	return ""
}

// keepAlive is a user's word on a run that waits for it: continue lets the session go on, cancel ends that run's turn and keeps
// the others waiting.
func (d *draft) keepAlive(c KeepAlive) {
	decision := messages.KeepDecision(c.Decision)
	if !decision.Valid() {
		d.reply(messages.Fail(messages.CodeInvalidField, "decision must be continue or cancel"))
		return
	}
	turn, _ := d.s.Ledger.openTurn(func(t *messages.Turn) bool { return t.GetRunId() == c.RunID })
	if turn == nil {
		d.reply(messages.Fail(messages.CodeUnknownRun, fmt.Sprintf("no run %s waits for a word", cut(c.RunID))))
		return
	}
	if decision == messages.KeepContinue {
		d.s.Live.Held = false
		d.reply(&messages.Done{})
		return
	}
	if !d.s.Live.Held {
		d.reply(messages.Fail(messages.CodeInvalidField, fmt.Sprintf("run %s does not wait for a word; abort stops it", cut(c.RunID))))
		return
	}
	d.abort(Abort{Request: &messages.Abort{
		Scope: string(messages.AbortRun), RunId: c.RunID, Reason: "its user did not want it to go on",
	}})
	d.reply(&messages.Done{})
}
