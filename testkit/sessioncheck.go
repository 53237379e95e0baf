package testkit

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// sessionCheck is the dumb twin that a session's decisions are compared with: it counts what was promised and what was kept.
type sessionCheck struct {
	output outputCheck
	queue  queueTwin
	turns  map[string]*turnLife
	byKey  map[string]*messages.Turn
}

// turnLife is what happened to one admitted turn.
type turnLife struct {
	turn     *messages.Turn
	accepted bool       // the run accepted its offer
	led      bool       // it led a waiting entry, so that its run was announced
	taken    bool       // a run took it
	injected string     // the run that it steered
	joined   *time.Time // when a followup joined its entry last
	ended    messages.TurnState
	notes    int
}

func newSessionCheck() *sessionCheck {
	return &sessionCheck{output: newOutputCheck(), turns: make(map[string]*turnLife), byKey: make(map[string]*messages.Turn)}
}

// after checks one command. State before and r are both sides of it.
func (c *sessionCheck) after(k *SessionKit, cmd session.Command, before session.State, r Result) error {
	for _, step := range []func() error{
		func() error { return c.reply(cmd, r) },
		func() error { return c.explained(k, cmd, before, r) },
		func() error { return c.recovered(k, cmd, before, r) },
		func() error { return c.answered(cmd, before, r) },
		func() error { return c.ledger(k, before, r) },
		func() error { return c.notes(cmd, r) },
		func() error { return c.waiting(k) },
		func() error { return c.offers(r) },
		func() error { return c.output.after(before, r, c.turns) },
		func() error { return c.phases() },
		func() error { return c.announced(before, r) },
		func() error { return c.repeated(k, cmd, before, r) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// reply: what asks is answered, what reports is not.
func (c *sessionCheck) reply(cmd session.Command, r Result) error {
	asks := false
	switch cmd.(type) {
	case session.Start, session.Submit, session.Record, session.Abort, session.Withdraw, session.KeepAlive:
		asks = true
	case session.Recover, session.Touch, session.ToolsAsked, session.ToolsMoved, session.Ack, session.RunPhased, session.RunRetried, session.RunStreamed, session.RunFinished,
		session.GraceOver, session.Tick, session.Drain, session.Suspend, session.SteerAnswered, session.SteerAsked, session.OfferOver, session.SlotGranted, session.SlotOver,
		session.LeaseWanted, session.SettleOver, session.StartFailed, session.StartAgain:
	}
	if asks != (r.Reply != nil) {
		return fmt.Errorf("the reply to a %T is %v", cmd, r.Reply)
	}
	if r.Reply == nil {
		return nil
	}
	if _, refused := r.Reply.(*messages.Failure); refused && (len(r.Records) > 0 || len(r.Effects) > 0) {
		return fmt.Errorf("a refusal that does something: %v, %d records, %d effects", r.Reply, len(r.Records), len(r.Effects))
	}
	return copyThroughBytes(r.Reply, r.Reply.ProtoReflect().New().Interface())
}

// explained: what explain says of a submission is what submit then does.
func (c *sessionCheck) explained(k *SessionKit, cmd session.Command, before session.State, r Result) error {
	submit, ok := cmd.(session.Submit)
	if !ok {
		return nil
	}
	said := session.Explain(before, k.cfg, submit, k.now, func(session.AskSlot) bool {
		return !k.taken && before.Live.Asked == (session.AskSlot{})
	})
	accepted, ok := r.Reply.(*messages.TurnAccepted)
	if !ok {
		if !proto.Equal(said, r.Reply) {
			return fmt.Errorf("explain says %v, submit %v", said, r.Reply)
		}
		return nil
	}
	e, ok := said.(*messages.Explanation)
	if !ok || e.GetDisposition() != accepted.GetDisposition() || e.GetPosition() != accepted.GetPosition() ||
		e.GetMergedInto() != accepted.GetMergedInto() || e.GetReason() == "" {
		return fmt.Errorf("explain says %v, submit %v", said, accepted)
	}
	for _, record := range r.Ledger {
		if admitted, ok := record.(*messages.TurnAdmitted); ok && admitted.GetTurn().GetQueueMode() != e.GetQueueMode() {
			return fmt.Errorf("explain says %v, submit records %v", said, admitted)
		}
	}
	return copyThroughBytes(said, said.ProtoReflect().New().Interface())
}

// answered: an offer that was accepted has no deadline any more; it waits for its boundary or the run's end.
func (c *sessionCheck) answered(cmd session.Command, before session.State, r Result) error {
	if a, ok := cmd.(session.SteerAnswered); ok && a.Accepted && c.turns[a.TurnID] != nil {
		run := before.Ledger.Active
		c.turns[a.TurnID].accepted = run != nil && run.ID == a.RunID && run.Attempt == a.Attempt && !run.Suspended
	}
	if o, ok := cmd.(session.OfferOver); ok && len(r.Ledger) > 0 && c.turns[o.TurnID].accepted {
		return fmt.Errorf("turn %s falls back at its deadline, but the run has accepted it", o.TurnID)
	}
	return nil
}

// recovered: nothing outlives a downtime that is too long, and nothing expires in another one.
func (c *sessionCheck) recovered(k *SessionKit, cmd session.Command, before session.State, r Result) error {
	if _, ok := cmd.(session.Recover); !ok {
		return nil
	}
	down := k.now.Sub(before.Ledger.LastTime)
	long := before.Ledger.Open() && down > k.cfg.RecoveryMaxAge+k.cfg.AliveEvery()
	if long && r.State.Ledger.Open() {
		return fmt.Errorf("%v are open after a downtime of %s", c.queue.open(), down)
	}
	for _, record := range r.Ledger {
		end, ok := record.(*messages.TurnEnded)
		if !ok || end.GetReason() == string(messages.CodeBudgetExceeded) {
			continue
		}
		if !long && k.cfg.RecoveryPolicy != session.RecoveryDrop || end.GetState() != string(messages.TurnExpired) {
			return fmt.Errorf("turn %s ends as %s after a downtime of %s", end.GetTurnId(), end.GetState(), down)
		}
	}
	return nil
}

// repeated: a withdraw or an abort that comes a second time does nothing, and a withdraw tells the same. An abort of whatever runs
// is of another run when the first one has ended it at once.
func (c *sessionCheck) repeated(k *SessionKit, cmd session.Command, before session.State, r Result) error {
	withdraw, withdraws := cmd.(session.Withdraw)
	abort, aborts := cmd.(session.Abort)
	if !aborts && !withdraws {
		return nil
	}
	ended := before.Ledger.Active != nil && (k.state.Ledger.Active == nil || k.state.Ledger.Active.ID != before.Ledger.Active.ID)
	if aborts && ended && abort.Request.GetRunId() == "" && abort.Request.GetTurnId() == "" {
		return nil
	}
	if withdraws {
		cmd = session.Withdraw{TurnID: withdraw.TurnID}
	}
	again := session.Decide(k.state, k.cfg, k.complete(cmd), k.now)
	if again.Durable() || len(again.Effects) > 0 || withdraws && !proto.Equal(again.Reply, r.Reply) {
		return fmt.Errorf("a second %T replies %v after %v, with %d records and %d effects", cmd, again.Reply, r.Reply, len(again.Ledger),
			len(again.Effects))
	}
	return nil
}

// notes: one for each STEERING turn that a run took, in the append that ends or injects it, and no other (I2).
func (c *sessionCheck) notes(cmd session.Command, r Result) error {
	noted := make(map[string]bool)
	_, host := cmd.(session.Record)
	for _, event := range r.Events {
		note, ok := event.(*messages.SteeringNoteAdded)
		if ok == host {
			return fmt.Errorf("I2: a %T writes %s", cmd, event.EventType())
		}
		life := c.turns[note.GetTurnId()]
		if ok && (life == nil || !life.steering() || life.turn.GetText() != note.GetContent()) {
			return fmt.Errorf("I2: note %v of turn %v", note, life)
		}
		if ok {
			life.notes++
			noted[note.GetTurnId()] = true
		}
	}
	for _, record := range r.Ledger {
		var took []string
		if end, ok := record.(*messages.RunEnded); ok {
			took = end.GetTurnIds()
		}
		if injection, ok := record.(*messages.TurnInjected); ok {
			took = []string{injection.GetTurnId()}
		}
		for _, id := range took {
			if c.turns[id].steering() != noted[id] {
				return fmt.Errorf("I2: turn %s is %s and ends with a note %t", id, c.turns[id].turn.GetMode(), noted[id])
			}
			delete(noted, id)
		}
	}
	if len(noted) > 0 {
		return fmt.Errorf("I2: notes outside of the end of their run or of their injection: %v", noted)
	}
	return nil
}

// waiting: the state holds exactly the unended turns, in order, and nothing waits without a reason (I5, I7).
func (c *sessionCheck) waiting(k *SessionKit) error {
	s := k.state
	var open []string
	if s.Ledger.Active != nil {
		open = append(open, s.Ledger.Active.TurnIDs()...)
	}
	for _, turn := range s.Ledger.Queue.Turns() {
		open = append(open, turn.GetTurnId())
	}
	want := c.queue.open()
	if !slices.Equal(open, want) || len(s.Ledger.Queue.Waiting) != len(c.queue.waiting) {
		return fmt.Errorf("I7: open are %v in %d entries, the state has %v in %d", want, len(c.queue.waiting), open, len(s.Ledger.Queue.Waiting))
	}
	if s.Ledger.Active == nil && len(s.Ledger.Queue.Offered) > 0 {
		return fmt.Errorf("%v are offered, but nothing runs", ids(c.queue.offered))
	}
	if err := c.started(s); err != nil {
		return err
	}
	for _, id := range open {
		status, ok := s.Turn(id)
		if ended := messages.TurnState(status.GetState()); !ok || (ended.Ended() || c.turns[id].ended != "") && ended != c.turns[id].ended {
			return fmt.Errorf("I7: the state says of the open %s: %v", id, status)
		}
	}
	for id, life := range c.turns {
		if (life.ended == "" || life.ended == messages.TurnMerged && k.journal.turns[id] == nil) && !slices.Contains(open, id) {
			return fmt.Errorf("I7: turn %s is open, but not in the state", id)
		}
	}
	return nil
}

// started: whatever could start has started, or waits for its slot, for more followups or for a user's word.
func (c *sessionCheck) started(s session.State) error {
	next, asked := "", s.Live.Asked.RunID
	switch run := s.Ledger.Active; {
	case run != nil && run.ID != s.Live.Working:
		next = run.ID
	case run == nil && len(s.Ledger.Queue.Waiting) > 0:
		next = s.Ledger.Queue.Waiting[0].Lead().GetRunId()
	}
	may := !s.Live.Draining && !s.Live.Held && !s.Live.Settling
	switch {
	case next != "" && may && asked != next:
		return fmt.Errorf("%s is next, but it neither runs nor waits for its slot; %q does", next, asked)
	case asked != "" && (!may || next == ""):
		return fmt.Errorf("a slot is asked for %s, which may not start", asked)
	}
	return nil
}

// offers: the record comes before the deed. A turn is handed over when its offer is recorded, and put in when its injection is.
func (c *sessionCheck) offers(r Result) error {
	var want, got []string
	for _, record := range r.Ledger {
		if admission, ok := record.(*messages.TurnAdmitted); ok && admission.GetPlacement() == "offered" {
			want = append(want, "offer "+admission.GetTurn().GetTurnId(), "deadline "+admission.GetTurn().GetTurnId())
		}
		if injection, ok := record.(*messages.TurnInjected); ok {
			want = append(want, "inject "+injection.GetTurnId())
		}
	}
	for _, effect := range r.Effects {
		if e, ok := effect.(session.OfferSteer); ok {
			got = append(got, "offer "+e.TurnID)
			if text := c.turns[e.TurnID].turn.GetText(); text != e.Text {
				return fmt.Errorf("turn %s is offered as %q, its text is %q", e.TurnID, e.Text, text)
			}
		}
		if e, ok := effect.(session.ArmOffer); ok {
			got = append(got, "deadline "+e.TurnID)
		}
		if e, ok := effect.(session.Inject); ok {
			got = append(got, "inject "+e.TurnID)
		}
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("the ledger says %v, the effects do %v", want, got)
	}
	return nil
}

// phases: every end is announced, who leads an entry has announced its run, whoever never did has not, and a run that never starts
// ends aborted.
func (c *sessionCheck) phases() error {
	for id, life := range c.turns {
		run := c.output.runs[life.turn.GetRunId()]
		switch {
		case life.ended != "" && !c.output.announced[id]:
			return fmt.Errorf("I7: turn %s ended as %s, and nobody is told", id, life.ended)
		case life.led != (run != nil):
			return fmt.Errorf("turn %s led an entry: %t, its run is announced: %t", id, life.led, run != nil)
		case run == nil || life.ended == "":
		case !run.final:
			return fmt.Errorf("turn %s ended as %s, but its run stays in phase %s", id, life.ended, run.phase)
		}
	}
	return nil
}

// announced: whoever follows events is told of each growth of the log, and of nothing else.
func (c *sessionCheck) announced(before session.State, r Result) error {
	told := before.Router.EventSequence
	for _, effect := range r.Effects {
		if a, ok := effect.(session.AnnounceEvents); ok {
			told = a.Head
		}
	}
	if told != r.State.Router.EventSequence {
		return fmt.Errorf("events are announced up to %d, the log is at %d", told, r.State.Router.EventSequence)
	}
	return nil
}
