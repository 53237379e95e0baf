package testkit

import (
	"fmt"
	"slices"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// sessionCheck is the dumb twin that a session's decisions are compared with: it counts what was promised and what was kept.
type sessionCheck struct {
	output outputCheck
	turns  map[string]*turnLife
	open   []string // unended turns in the order of admission
	byKey  map[string]*messages.Turn
}

// turnLife is what happened to one admitted turn.
type turnLife struct {
	turn  *messages.Turn
	taken bool // a run took it
	ended messages.TurnState
	notes int
}

func newSessionCheck() *sessionCheck {
	return &sessionCheck{output: newOutputCheck(), turns: make(map[string]*turnLife), byKey: make(map[string]*messages.Turn)}
}

// after checks one command. State before and r are both sides of it.
func (c *sessionCheck) after(k *SessionKit, cmd session.Command, before session.State, r Result) error {
	for _, step := range []func() error{
		func() error { return c.reply(cmd, r) },
		func() error { return c.ledger(k, before, r) },
		func() error { return c.notes(cmd, r) },
		func() error { return c.waiting(k) },
		func() error { return c.output.after(before, r, c.turns) },
		func() error { return c.announced(before, r) },
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
	case session.Start, session.Submit, session.Record, session.Abort:
		asks = true
	case session.Recover, session.Touch, session.Ack, session.RunPhased, session.RunStreamed, session.RunFinished,
		session.GraceOver, session.Tick, session.Drain, session.Suspend:
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

// ledger follows the turns' lives (I5, I7, I8).
func (c *sessionCheck) ledger(k *SessionKit, before session.State, r Result) error {
	for _, record := range r.Ledger {
		var err error
		switch record := record.(type) {
		case *messages.TurnAdmitted:
			err = c.admitted(k, before, record.GetTurn())
		case *messages.RunStarted:
			err = c.taken(record)
		case *messages.RunEnded:
			for _, id := range record.GetTurnIds() {
				if err = c.ended(k, id, messages.Outcome(record.GetOutcome()).TurnState(), true); err != nil {
					break
				}
			}
		case *messages.TurnEnded:
			err = c.ended(k, record.GetTurnId(), messages.TurnState(record.GetState()), false)
		case *messages.SessionConfigured, *messages.RunSuspended, *messages.AbortRequested, *messages.OutputReserved,
			*messages.SessionAlive, *messages.FinalsAcked, *messages.LedgerCheckpoint:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *sessionCheck) admitted(k *SessionKit, before session.State, turn *messages.Turn) error {
	id := turn.GetTurnId()
	if c.turns[id] != nil {
		return fmt.Errorf("turn %s is admitted a second time", id)
	}
	c.turns[id] = &turnLife{turn: turn}
	c.open = append(c.open, id)
	if turn.GetIdempotencyKey() == "" {
		return nil
	}
	return c.keyed(k, before, turn)
}

// keyed: a key is admitted once while it is remembered, and the index remembers it (I8).
func (c *sessionCheck) keyed(k *SessionKit, before session.State, turn *messages.Turn) error {
	id, key := turn.GetTurnId(), turn.GetIdempotencyKey()
	if open, ok := before.TurnByKey(key); ok {
		return fmt.Errorf("I8: %s has the key of the open turn %s", id, open.GetTurnId())
	}
	if k.journal.keys[key].GetTurnId() != id {
		return fmt.Errorf("I8: the index does not know the key of %s", id)
	}
	earlier := c.byKey[key]
	c.byKey[key] = turn
	if earlier != nil && turn.GetAcceptedAt().AsTime().Before(earlier.GetAcceptedAt().AsTime().Add(k.cfg.IdempotencyWindow)) {
		return fmt.Errorf("I8: %s is admitted although %s has the same key", id, earlier.GetTurnId())
	}
	return nil
}

func (c *sessionCheck) taken(started *messages.RunStarted) error {
	for _, id := range started.GetTurnIds() {
		life := c.turns[id]
		if life == nil || life.ended != "" {
			return fmt.Errorf("run %s takes %s, which does not wait", started.GetRunId(), id)
		}
		if first := started.GetAttempt() == 1; first == life.taken {
			return fmt.Errorf("run %s takes %s at attempt %d", started.GetRunId(), id, started.GetAttempt())
		}
		if i := slices.Index(c.open, id); i > 0 {
			return fmt.Errorf("run %s takes %s before %v", started.GetRunId(), id, c.open[:i])
		}
		life.taken = true
	}
	return nil
}

// ended: exactly one end, which the index tells.
func (c *sessionCheck) ended(k *SessionKit, id string, state messages.TurnState, byRun bool) error {
	life := c.turns[id]
	switch {
	case life == nil:
		return fmt.Errorf("I7: turn %s ends, but was never admitted", id)
	case life.ended != "":
		return fmt.Errorf("I7: turn %s ends as %s, but has ended as %s", id, state, life.ended)
	case !state.Ended():
		return fmt.Errorf("I7: turn %s ends as %q", id, state)
	case life.taken != byRun:
		return fmt.Errorf("turn %s: taken by a run is %t, ended by one is %t", id, life.taken, byRun)
	}
	life.ended = state
	c.open = slices.DeleteFunc(c.open, func(o string) bool { return o == id })
	status := k.journal.turns[id]
	if status.GetState() != string(state) || status.GetRunId() != life.turn.GetRunId() ||
		status.GetIdempotencyKey() != life.turn.GetIdempotencyKey() ||
		status.GetSteeringEmitted() != (byRun && life.steering()) {
		return fmt.Errorf("I7: the index says of %s, which ended as %s: %v", id, state, status)
	}
	return nil
}

func (l *turnLife) steering() bool { return l.turn.GetMode() == string(messages.ChatModeSteering) }

// notes: one for each STEERING turn that a run took, in the append that ends it, and no other (I2).
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
		end, ok := record.(*messages.RunEnded)
		if !ok {
			continue
		}
		for _, id := range end.GetTurnIds() {
			if c.turns[id].steering() != noted[id] {
				return fmt.Errorf("I2: turn %s is %s and ends with a note %t", id, c.turns[id].turn.GetMode(), noted[id])
			}
			delete(noted, id)
		}
	}
	if len(noted) > 0 {
		return fmt.Errorf("I2: notes outside of the end of their run: %v", noted)
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
	for _, turn := range s.Ledger.Queue {
		open = append(open, turn.GetTurnId())
	}
	if !slices.Equal(open, c.open) {
		return fmt.Errorf("I7: open are %v, the state has %v", c.open, open)
	}
	if s.Ledger.Active == nil && len(open) > 0 && !s.Live.Draining {
		return fmt.Errorf("%v wait, but nothing runs", open)
	}
	if len(s.Ledger.Queue) > k.cfg.QueueLimit {
		return fmt.Errorf("%d turns wait, %d may", len(s.Ledger.Queue), k.cfg.QueueLimit)
	}
	for _, id := range open {
		status, ok := s.Turn(id)
		if !ok || messages.TurnState(status.GetState()).Ended() {
			return fmt.Errorf("I7: the state says of the open %s: %v", id, status)
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
