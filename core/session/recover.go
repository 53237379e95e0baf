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
	d.s.Live = Live{
		Epoch: c.Epoch, NextSeq: d.s.Ledger.OutputReserved + 1, Recovered: true, Draining: c.Draining,
		Asks: d.s.Live.Asks, Settles: d.s.Live.Settles, // timers of before the replay may still be on their way
	}
	if !d.s.Ledger.Open() || c.Draining {
		return
	}
	d.checkpoint()
	// The last sign of life may be AliveEvery old although the process died later. Nothing else is recorded before: it would
	// look like a sign of life itself.
	if d.now.Sub(d.s.Ledger.LastTime) > d.cfg.RecoveryMaxAge+d.cfg.AliveEvery() {
		d.expire(ReasonExpired, ReasonDowntime)
		return
	}
	if !c.InPlace && d.cfg.RecoveryPolicy == RecoveryDrop {
		d.expire(ReasonDropped, ReasonDropped)
		return
	}
	d.returnOffers()
	run := d.s.Ledger.Active
	switch {
	case run == nil:
	case run.Aborted:
		d.endAborted(RunFinished{})
	case run.Launched:
		d.end(ending{outcome: messages.OutcomeInterrupted, reason: ReasonTools})
	case !c.InPlace && !run.Suspended && int(run.Recoveries)+1 >= d.cfg.RecoveryMaxAttempts:
		d.end(ending{
			outcome: messages.OutcomeFailed,
			failure: messages.FailRetryable(messages.CodeCrashLoop, "the server stopped during each attempt to answer this turn"),
			reason:  ReasonCrashLoop,
		})
	default:
		d.s.Live.AfterCrash = !c.InPlace && !run.Suspended
	}
	if !c.InPlace && d.cfg.RecoveryPolicy == RecoveryAsk && d.s.Ledger.Open() {
		d.hold()
	}
}

// restart gives the run its next attempt, whose slot is in hand; it had launched no tool, so nothing is done twice.
func (d *draft) restart(run *Run) {
	recoveries := run.Recoveries
	if d.s.Live.AfterCrash {
		recoveries++
	}
	d.record(&messages.RunStarted{
		RunId: run.ID, TurnIds: run.TurnIDs(), Attempt: run.Attempt + 1, StartedAt: d.stamp(), Recoveries: recoveries,
	})
	next := d.s.Ledger.Active
	d.begin(next)
	d.publish(phase(next.ID, next.TurnIDs(), "", messages.PhaseDispatched, next.Attempt))
	d.effect(StartRun{Order: d.order()})
}

// expire ends all that is open: nobody wants yesterday's answer now, but everybody is told why. Waiting and active are the reasons
// of the turns that waited and of the run that was active.
func (d *draft) expire(waiting, active string) {
	for _, turn := range d.s.Ledger.Queue.Offered { // first: the run's end would give them back
		d.endWaiting(turn, messages.TurnExpired, waiting, nil)
	}
	if run := d.s.Ledger.Active; run != nil {
		if run.Aborted {
			d.endAborted(RunFinished{})
		} else {
			d.end(ending{outcome: messages.OutcomeInterrupted, reason: active})
		}
	}
	for _, turn := range d.s.Ledger.Queue.Turns() {
		d.endWaiting(turn, messages.TurnExpired, waiting, nil)
	}
}
