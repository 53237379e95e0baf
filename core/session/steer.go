package session

import (
	"slices"
	"time"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// Reasons why an offered turn did not steer.
const (
	ReasonNoAnswer = "the run did not answer the offer in time"
	ReasonRunEnded = "the run ended before the text could be put in"
)

// offer hands an admitted turn to the active run; its record is durable before that.
func (d *draft) offer(turn *messages.Turn) {
	run := d.s.Ledger.Active
	d.effect(OfferSteer{RunID: run.ID, Attempt: run.Attempt, TurnID: turn.GetTurnId(), Text: turn.GetText()})
	d.effect(ArmOffer{TurnID: turn.GetTurnId(), After: d.cfg.SteerDeadline})
}

func (d *draft) offered(id messages.TurnID) *messages.Turn {
	turn, _, offered := d.s.Ledger.Queue.Find(func(t *messages.Turn) bool { return t.GetTurnId() == id })
	if !offered {
		return nil
	}
	return turn
}

func (d *draft) steerAnswered(c SteerAnswered) {
	turn := d.offered(c.TurnID)
	if turn == nil || !d.running(c.RunID, c.Attempt) {
		return
	}
	if c.Accepted {
		d.s.Live.Accepted = append(slices.Clone(d.s.Live.Accepted), c.TurnID)
		return
	}
	d.fallBack(turn, c.Reason)
}

// offerOver falls back from an offer that has no answer; one that was accepted waits for its boundary or the run's end.
func (d *draft) offerOver(c OfferOver) {
	turn := d.offered(c.TurnID)
	if turn == nil || slices.Contains(d.s.Live.Accepted, c.TurnID) {
		return
	}
	d.fallBack(turn, ReasonNoAnswer)
}

// fallBack returns an offered turn to the queue as its mode says. The queue's limit does not hold for it: it was admitted.
func (d *draft) fallBack(turn *messages.Turn, reason string) {
	p := queue.Fallback(d.s.Ledger.Queue, turn, messages.QueueMode(turn.GetQueueMode()), d.now, d.cfg.queue())
	d.record(&messages.TurnReturned{
		TurnId: turn.GetTurnId(), Placement: string(p.Place), MergedInto: p.Into, Reason: reason, ReturnedAt: d.stamp(),
	})
	if p.Place != queue.PlaceMerged {
		d.queued(turn, reason)
	}
}

// queued announces the run of a turn that leads a waiting entry from now on.
func (d *draft) queued(turn *messages.Turn, reason string) {
	ids := []string{turn.GetTurnId()}
	waits := phase(turn.GetRunId(), ids, messages.PhaseAccepted, messages.PhaseQueued, 1)
	waits.Reason = reason
	d.publish(phase(turn.GetRunId(), ids, "", messages.PhaseAccepted, 1), waits)
}

// returnOffers takes all offers back when their run ends, before anything else starts.
func (d *draft) returnOffers() {
	for _, turn := range d.s.Ledger.Queue.Offered {
		d.fallBack(turn, ReasonRunEnded)
	}
	d.s.Live.Accepted = nil
}

// steerAsked records that the turn steers, with its note if its mode is STEERING, and only then lets the runner put the text
// in: after this record the turn never falls back.
func (d *draft) steerAsked(c SteerAsked) {
	turn := d.offered(c.TurnID)
	if turn == nil || !d.running(c.RunID, c.Attempt) || d.s.Ledger.Active.Aborted {
		d.effect(RefuseSteer{RunID: c.RunID, Attempt: c.Attempt, TurnID: c.TurnID})
		return
	}
	steering := messages.ChatMode(turn.GetMode()) == messages.ChatModeSteering
	if steering {
		d.emit(&messages.SteeringNoteAdded{Content: turn.GetText(), CreatedAt: d.stamp(), TurnId: turn.GetTurnId()})
		d.effect(AnnounceEvents{Head: d.s.Router.EventSequence})
	}
	d.record(&messages.TurnInjected{
		TurnId: turn.GetTurnId(), RunId: c.RunID, BeforeCall: c.BeforeCall, SteeredAt: d.stamp(), Seq: d.s.Live.NextSeq,
	})
	d.index(steeredStatus(turn, c.RunID))
	d.publish(&messages.TurnStateChanged{
		TurnId: turn.GetTurnId(), State: string(messages.TurnSteered), RunId: c.RunID, SteeredInto: c.RunID, SteeringEmitted: steering,
	})
	d.effect(Inject{RunID: c.RunID, Attempt: c.Attempt, TurnID: c.TurnID})
}

func steeredStatus(turn *messages.Turn, run RunID) *messages.TurnStatus {
	return &messages.TurnStatus{
		TurnId: turn.GetTurnId(), State: string(messages.TurnSteered), RunId: run, SteeredInto: run,
		IdempotencyKey: turn.GetIdempotencyKey(), ContentHash: turn.GetContentHash(),
		SteeringEmitted: messages.ChatMode(turn.GetMode()) == messages.ChatModeSteering,
	}
}

// interrupt stops the active run for the turn that was put in front. The stop is durable, so recovery does not resume it.
func (d *draft) interrupt() {
	run := d.s.Ledger.Active
	if run == nil || run.Aborted || run.Suspended {
		return
	}
	d.record(&messages.AbortRequested{
		Scope: string(messages.AbortRun), RunId: run.ID, Reason: string(messages.OutcomeInterrupted), RequestedAt: d.stamp(), Interrupt: true,
	})
	if !d.calling() {
		d.endAborted(RunFinished{}) // it waits for its slot or its start: there is nothing that could report its end
		return
	}
	d.effect(CancelRun{RunID: run.ID, Attempt: run.Attempt, Cause: CauseInterrupt})
	d.effect(ArmGrace{RunID: run.ID, Attempt: run.Attempt, After: d.cfg.AbortGrace})
}

// withdraw takes back a turn that no run has taken. A second time it tells the same.
func (d *draft) withdraw(c Withdraw) {
	turn, active := d.s.Ledger.openTurn(func(t *messages.Turn) bool { return t.GetTurnId() == c.TurnID })
	switch {
	case turn != nil && active:
		status := &messages.TurnStatus{TurnId: c.TurnID}
		d.s.Ledger.Active.fill(status)
		d.reply(&messages.Withdrawn{TurnId: c.TurnID, State: status.GetState()})
	case turn != nil:
		d.endWaiting(turn, messages.TurnWithdrawn, "", nil)
		d.reply(&messages.Withdrawn{TurnId: c.TurnID, Withdrawn: true, State: string(messages.TurnWithdrawn)})
	case c.Ended != nil:
		d.reply(&messages.Withdrawn{
			TurnId: c.TurnID, Withdrawn: messages.TurnState(c.Ended.GetState()) == messages.TurnWithdrawn, State: c.Ended.GetState(),
		})
	default:
		d.reply(messages.Fail(messages.CodeUnknownTurn, "this session never had turn "+cut(c.TurnID)))
	}
}

// Explain says what a submission would do now; nothing is done. Free says whether a slot could be had at once.
func Explain(s State, cfg Config, c Submit, now time.Time, free func(AskSlot) bool) messages.Reply {
	d := newDraft(s, cfg, now)
	d.submit(c)
	for _, effect := range d.out.Effects {
		if ask, ok := effect.(AskSlot); ok && free(ask) {
			d = newDraft(s, cfg, now)
			d.granted = ask.RunID
			d.submit(c)
			break
		}
	}
	accepted, ok := d.out.Reply.(*messages.TurnAccepted)
	if !ok {
		return d.out.Reply
	}
	explanation := &messages.Explanation{
		Disposition: accepted.GetDisposition(), Position: accepted.GetPosition(), MergedInto: accepted.GetMergedInto(),
		QueueMode: string(d.placed.Mode), Reason: d.placed.Reason,
	}
	if accepted.GetDisposition() == string(messages.DispositionDuplicate) {
		explanation.QueueMode = string(d.queueMode(c.Request))
		explanation.Reason = "the idempotency key was used for " + accepted.GetTurnId()
	}
	return explanation
}
