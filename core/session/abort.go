package session

import "github.com/correx/correx-actors/messages"

// maxReasonBytes bounds the reason that a user gives for an abort.
const maxReasonBytes = 1024

// abort ends what is in scope: waiting turns first, then the active run is canceled. Turns accepted later are not touched.
func (d *draft) abort(c Abort) {
	req := c.Request
	scope := messages.AbortScope(req.GetScope())
	if scope == "" {
		scope = messages.AbortRun
	}
	if f := checkShort("reason", req.GetReason(), maxReasonBytes); f != nil {
		d.reply(f)
		return
	}
	switch scope {
	case messages.AbortRun:
		d.abortOne(c, req.GetRunId() == "", messages.CodeUnknownRun, "this session never had run "+cut(req.GetRunId()),
			func(t *messages.Turn) bool { return t.GetRunId() == req.GetRunId() })
	case messages.AbortTurn:
		if req.GetTurnId() == "" {
			d.reply(messages.Fail(messages.CodeInvalidField, "turn_id is missing; scope turn needs it"))
			return
		}
		d.abortOne(c, false, messages.CodeUnknownTurn, "this session never had turn "+cut(req.GetTurnId()),
			func(t *messages.Turn) bool { return t.GetTurnId() == req.GetTurnId() })
	case messages.AbortSession:
		done := &messages.Aborted{}
		for _, turn := range d.s.Ledger.Queue.Turns() {
			d.endWaiting(turn, messages.TurnCancelled, req.GetReason(), done)
		}
		d.abortActive(req, done)
		d.reply(done)
	default:
		d.reply(messages.Fail(messages.CodeInvalidField, "scope must be run, turn or session"))
	}
}

// abortOne aborts the active run, or the one turn that matches; of one that has ended nothing is left to abort.
func (d *draft) abortOne(c Abort, active bool, unknown messages.Code, text string, match func(*messages.Turn) bool) {
	done := &messages.Aborted{}
	if active {
		d.abortActive(c.Request, done)
		d.reply(done)
		return
	}
	turn, running := d.s.Ledger.openTurn(match)
	switch {
	case turn != nil && running:
		if turn == d.s.Ledger.Active.Turns[0] { // the others ended as merged when the run started
			d.abortActive(c.Request, done)
		}
	case turn != nil:
		d.endWaiting(turn, messages.TurnCancelled, c.Request.GetReason(), done)
	case !c.Ended:
		d.reply(messages.Fail(unknown, text))
		return
	}
	d.reply(done)
}

// abortActive makes the stop durable first, so that no recovery takes it for a crash, and then cancels the call. A second
// abort of the same run tells the same and does nothing.
func (d *draft) abortActive(req *messages.Abort, done *messages.Aborted) {
	run := d.s.Ledger.Active
	if run == nil {
		return
	}
	done.RunIds = append(done.RunIds, run.ID)
	done.TurnIds = append(done.TurnIds, run.TurnIDs()...)
	if run.Aborted {
		return
	}
	d.record(&messages.AbortRequested{
		Scope: string(messages.AbortRun), RunId: run.ID, Reason: req.GetReason(), RequestedAt: d.stamp(),
	})
	if !d.calling() {
		d.endAborted(RunFinished{Content: d.s.Live.Text.String()}) // it has no call that could report its end
		return
	}
	d.effect(CancelRun{RunID: run.ID, Attempt: run.Attempt, Cause: CauseAborted})
	d.effect(ArmGrace{RunID: run.ID, Attempt: run.Attempt, After: d.cfg.AbortGrace})
}

// endWaiting ends a turn that no run took: its state is announced, and so is the end of the run that it never got.
func (d *draft) endWaiting(turn *messages.Turn, state messages.TurnState, reason string, done *messages.Aborted) {
	this := func(t *messages.Turn) bool { return t == turn }
	found, entry, offered := d.s.Ledger.Queue.Find(this)
	if found == nil {
		return // gone with another one of the same id, which no build of ours records
	}
	leads, at := false, messages.PhaseQueued
	if d.s.Ledger.awaited(turn.GetRunId()) {
		at = messages.PhaseWaitingForSlot
	}
	var heir *messages.Turn
	if !offered {
		turns := d.s.Ledger.Queue.Waiting[entry].Turns
		if leads = turns[0] == turn; leads && len(turns) > 1 {
			heir = turns[1]
		}
	}
	if done != nil {
		done.TurnIds = append(done.TurnIds, turn.GetTurnId())
		if leads {
			done.RunIds = append(done.RunIds, turn.GetRunId())
		}
	}
	d.record(&messages.TurnEnded{
		TurnId: turn.GetTurnId(), State: string(state), Reason: reason, EndedAt: d.stamp(), Seq: d.s.Live.NextSeq,
	})
	d.index(&messages.TurnStatus{
		TurnId:         turn.GetTurnId(),
		State:          string(state),
		Reason:         reason,
		RunId:          turn.GetRunId(),
		IdempotencyKey: turn.GetIdempotencyKey(),
		ContentHash:    turn.GetContentHash(),
	})
	d.publish(&messages.TurnStateChanged{TurnId: turn.GetTurnId(), State: string(state), Reason: reason, RunId: turn.GetRunId()})
	if !leads {
		return // it had no run of its own, so no phase to end
	}
	last := phase(turn.GetRunId(), []string{turn.GetTurnId()}, at, messages.PhaseAborted, 1)
	last.Reason = reason
	d.publish(last)
	if heir != nil {
		d.queued(heir, "")
	}
}
