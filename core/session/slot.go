package session

import (
	"slices"
	"time"

	"github.com/correx/correx-actors/core/intake"
	"github.com/correx/correx-actors/messages"
)

// Needs is what a run must hold while it works: a lease on the conversation that it resumes, then a run slot. Comparable.
type Needs struct {
	// Model that answers; "" = the provider's own.
	Model string
	// Engine keeps the conversation and answers whatever the model; "" = the model decides.
	Engine string
	// Lease is the lineage of the resume token; "" = none.
	Lease string
	// Interrupts: whoever holds the lease is asked to end.
	Interrupts bool
}

// mayStart says whether anything may start now.
func (d *draft) mayStart() bool {
	live := d.s.Live
	return live.Recovered && !live.Draining && !live.Held && !d.settling()
}

// proceed starts what is next, if its slot is in hand, and else asks for the slot. It is the last step of every decision: what
// is next may have changed. Previous is the phase in which the next run is.
func (d *draft) proceed(previous messages.Phase) {
	run := d.s.Ledger.Active
	if !d.s.Ledger.Open() {
		d.s.Live.Held = false
	}
	switch {
	case !d.mayStart():
		d.stopAsking()
	case run != nil && run.ID == d.s.Live.Working: // it goes on
	case run != nil:
		if d.take(run.ID, run.Turns, "") {
			d.restart(run)
		}
	case len(d.s.Ledger.Queue.Waiting) > 0 && d.overBudget() != nil:
		d.endUnpaid(d.s.Ledger.Queue.Waiting[0].Turns)
		d.proceed(messages.PhaseQueued)
	case len(d.s.Ledger.Queue.Waiting) > 0:
		if next := d.s.Ledger.Queue.Waiting[0].Turns; d.take(next[0].GetRunId(), next, previous) {
			d.startRun(next, previous)
		}
	default:
		d.stopAsking()
	}
}

// take says whether the run's slot is in hand; else it asks for it. A waiting turn's wait is announced once, also over a
// restart; previous is its phase before.
func (d *draft) take(run RunID, turns []*messages.Turn, previous messages.Phase) bool {
	live := &d.s.Live
	if d.granted == run {
		d.granted = ""
		return true
	}
	ask := AskSlot{RunID: run, Needs: d.needs(turns)}
	if live.Asked == ask {
		return false
	}
	first := live.Asked.RunID != run
	live.Asked = ask
	if previous != "" && !d.s.Ledger.awaited(run) {
		d.record(&messages.SlotAwaited{RunId: run, AwaitedAt: d.stamp()})
		d.publish(phase(run, turnIDs(turns), previous, messages.PhaseWaitingForSlot, 1))
	}
	d.effect(ask)
	if first {
		live.Asks++
		d.effect(ArmSlot{RunID: run, Ask: live.Asks, After: d.cfg.SlotTimeout})
	}
	return false
}

// stopAsking gives back what was asked for.
func (d *draft) stopAsking() {
	if d.s.Live.Asked != (AskSlot{}) {
		d.s.Live.Asked = AskSlot{}
		d.effect(DropSlot{})
	}
}

// needs of a run with these turns. The resume token is resolved now and not when the turn was queued, so that it continues what
// it follows.
func (d *draft) needs(turns []*messages.Turn) Needs {
	_, lineage := d.resume(turns)
	return Needs{
		Model:  d.model(turns),
		Engine: d.engine(turns),
		Lease:  lineage,
		Interrupts: slices.ContainsFunc(turns, func(t *messages.Turn) bool {
			return messages.QueueMode(t.GetQueueMode()) == messages.QueueInterrupt
		}),
	}
}

// resume gives the token that a run with these turns resumes, and its lineage. Merged turns have the same token.
func (d *draft) resume(turns []*messages.Turn) (token *messages.ResumeToken, lineage string) {
	return intake.Resume(turns[0].GetResume(), d.s.Ledger.Resume, d.cfg.ResumeEngines)
}

// engine that a run goes to: the one whose token its turn names, whatever the session's model is; that of the session's own token
// only if nobody asks for a model.
func (d *draft) engine(turns []*messages.Turn) string {
	if turns[0].GetResume() == nil && d.model(turns) != "" {
		return ""
	}
	token, _ := d.resume(turns)
	return token.GetEngine()
}

// model of a run: the newest of its turns that names one wins.
func (d *draft) model(turns []*messages.Turn) string {
	model := d.s.settings(d.cfg).model
	for _, turn := range turns {
		if own := turn.GetModel(); own != "" {
			model = own
		}
	}
	return model
}

// slotGranted: what was asked for is in hand.
func (d *draft) slotGranted(c SlotGranted) {
	if d.s.Live.Asked.RunID != c.RunID || c.RunID == "" {
		return // it was asked for something else meanwhile, or for nothing more
	}
	d.s.Live.Asked, d.granted = AskSlot{}, c.RunID
}

// slotOver ends what waited for its slot too long: whoever sent it is told, and the next one has its chance.
func (d *draft) slotOver(c SlotOver) {
	if c.RunID == "" || d.s.Live.Asked.RunID != c.RunID || d.s.Live.Asks != c.Ask {
		return
	}
	d.stopAsking()
	if d.s.Ledger.Active != nil {
		d.end(ending{outcome: messages.OutcomeFailed, failure: messages.FailRetryable(messages.CodeSlotTimeout,
			"the run waited too long for a run slot; too many others were at work")})
		return
	}
	// The last part first: no part leads for a moment only to end as well.
	for _, turn := range slices.Backward(d.s.Ledger.Queue.Waiting[0].Turns) {
		d.endWaiting(turn, messages.TurnFailed, string(messages.CodeSlotTimeout), nil)
	}
}

// leaseWanted: a turn of mode interrupt of another session waits for the conversation that this session's run resumes.
func (d *draft) leaseWanted(c LeaseWanted) {
	if run := d.s.Ledger.Active; run != nil && run.ID == c.RunID && !d.s.Live.Draining {
		d.interrupt()
	}
}

// awaited says whether the run's wait for a slot was announced.
func (l Ledger) awaited(run RunID) bool { return slices.Contains(l.Awaited, run) }

// forget drops waits of runs that do not wait any more.
func (l Ledger) forgetAwaited(run RunID) Ledger {
	if l.awaited(run) {
		l.Awaited = slices.DeleteFunc(slices.Clone(l.Awaited), func(id RunID) bool { return id == run })
	}
	return l
}

// Starts of an attempt that never began: tried again after pauses that double, then the run fails.
const (
	maxStarts  = 4
	startPause = 100 * time.Millisecond
)

// startFailed: the runner ended before its work began. Nothing of it was done, so nothing is done twice.
func (d *draft) startFailed(c StartFailed) {
	if !d.running(c.RunID, c.Attempt) || d.s.Live.Phase != messages.PhaseDispatched || d.s.Live.Restarting {
		return
	}
	if d.s.Ledger.Active.Aborted {
		d.endAborted(RunFinished{})
		return
	}
	d.s.Live.Starts++
	if d.s.Live.Starts >= maxStarts {
		d.checkpoint()
		d.end(ending{outcome: messages.OutcomeFailed, failure: messages.FailRetryable(messages.CodeInternal, "the run could not be started")})
		return
	}
	d.s.Live.Restarting = true
	d.effect(ArmStart{RunID: c.RunID, Attempt: c.Attempt, After: startPause << (d.s.Live.Starts - 1)})
}

// startAgain gives the attempt another start.
func (d *draft) startAgain(c StartAgain) {
	if d.running(c.RunID, c.Attempt) && d.s.Live.Restarting {
		d.s.Live.Restarting = false
		d.effect(StartRun{Order: d.order()})
	}
}

// calling says whether the active run has a runner that will report its end.
func (d *draft) calling() bool { return d.s.Running() && !d.s.Live.Restarting }
