package session

import "github.com/correx/correx-actors/messages"

// runRetried begins a further attempt within the same runner: its text replaces that of the one before. It is recorded, so that
// no attempt's number is used twice, and it is no recovery: what providers do wrong never ends a run as a crash loop. The next
// attempt of a run that was stopped does not begin.
func (d *draft) runRetried(c RunRetried) {
	if !d.running(c.RunID, c.Attempt) || d.s.Ledger.Active.Aborted {
		return
	}
	run := d.s.Ledger.Active
	d.record(&messages.RunStarted{
		RunId: run.ID, TurnIds: run.TurnIDs(), Attempt: run.Attempt + 1, StartedAt: d.stamp(), Recoveries: run.Recoveries,
	})
	next := d.s.Ledger.Active
	d.s.Live.Phase, d.s.Live.Text = messages.PhaseDispatched, Text{}
	again := phase(next.ID, next.TurnIDs(), "", messages.PhaseDispatched, next.Attempt)
	again.Reason = c.Reason
	d.publish(again)
}

// waits tells what a run waits for: its phase stays as it is and has a reason.
func (d *draft) waits(reason string) {
	run, at := d.s.Ledger.Active, d.s.Live.Phase
	if reason == "" || run.Aborted {
		return
	}
	still := phase(run.ID, run.TurnIDs(), at, at, run.Attempt)
	still.Reason = reason
	d.publish(still)
}

// final says whether a final is of the active attempt. A run that was stopped may have gone on to its next attempt before it
// heard of that.
func (d *draft) final(c RunFinished) bool {
	if d.running(c.RunID, c.Attempt) {
		return true
	}
	run := d.s.Ledger.Active
	return run != nil && run.Aborted && d.running(c.RunID, c.Attempt-1)
}
