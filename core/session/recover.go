package session

import "github.com/correx/correx-actors/messages"

// Reasons of ends that recovery decides.
const (
	ReasonExpired   = "waited through a downtime that was too long"
	ReasonDowntime  = "the server was down for too long while it ran"
	ReasonCrashLoop = "crash_loop"
)

// recover brings an activation back to work: numbers go on in a fresh block (I11), what outlived a long downtime ends, a run
// without an end is started again, and else the next turn starts.
func (d *draft) recover(c Recover) {
	d.s.Live = Live{Epoch: c.Epoch, NextSeq: d.s.Ledger.OutputReserved + 1, Recovered: true, Draining: c.Draining}
	if c.Draining || !d.s.Ledger.Open() {
		return
	}
	d.checkpoint()
	// The last sign of life may be AliveEvery old although the process died later. Nothing else is recorded before: it would
	// look like a sign of life itself.
	if d.now.Sub(d.s.Ledger.LastTime) > d.cfg.RecoveryMaxAge+d.cfg.AliveEvery() {
		d.expire()
		return
	}
	d.returnOffers()
	run := d.s.Ledger.Active
	switch {
	case run == nil:
		d.startNext(messages.PhaseQueued)
	case run.Aborted:
		d.endAborted("", nil)
		d.startNext(messages.PhaseQueued)
	case !c.InPlace && !run.Suspended && int(run.Recoveries)+1 >= d.cfg.RecoveryMaxAttempts:
		d.end(ending{
			outcome: messages.OutcomeFailed,
			failure: messages.FailRetryable(messages.CodeCrashLoop, "the server stopped during each attempt to answer this turn"),
			reason:  ReasonCrashLoop,
		})
		d.startNext(messages.PhaseQueued)
	default:
		d.restart(run, c.InPlace)
	}
}

// restart gives the run its next attempt; it had launched no tool, so nothing is done twice.
func (d *draft) restart(run *Run, inPlace bool) {
	recoveries := run.Recoveries
	if !run.Suspended && !inPlace {
		recoveries++
	}
	d.record(&messages.RunStarted{
		RunId: run.ID, TurnIds: run.TurnIDs(), Attempt: run.Attempt + 1, StartedAt: d.stamp(), Recoveries: recoveries,
	})
	next := d.s.Ledger.Active
	d.publish(phase(next.ID, next.TurnIDs(), "", messages.PhaseDispatched, next.Attempt))
	d.s.Live.Phase = messages.PhaseDispatched
	d.effect(StartRun{Order: d.order()})
}

// expire ends all that waited through a long downtime: nobody wants yesterday's answer now, but everybody is told.
func (d *draft) expire() {
	for _, turn := range d.s.Ledger.Queue.Offered { // first: the run's end would give them back
		d.endWaiting(turn, messages.TurnExpired, ReasonExpired, nil)
	}
	if run := d.s.Ledger.Active; run != nil {
		if run.Aborted {
			d.endAborted("", nil)
		} else {
			d.end(ending{outcome: messages.OutcomeInterrupted, reason: ReasonDowntime})
		}
	}
	for _, turn := range d.s.Ledger.Queue.Turns() {
		d.endWaiting(turn, messages.TurnExpired, ReasonExpired, nil)
	}
}
