package testkit

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// ledger follows the turns' lives (I5, I7, I8).
func (c *sessionCheck) ledger(k *SessionKit, before session.State, r Result) error {
	for _, record := range r.Ledger {
		var err error
		switch record := record.(type) {
		case *messages.TurnAdmitted:
			err = c.admitted(k, before, record)
		case *messages.TurnReturned:
			err = c.queue.giveBack(record, k.cfg)
		case *messages.TurnInjected:
			err = c.injected(k, record)
		case *messages.RunStarted:
			err = c.taken(record)
		case *messages.RunEnded:
			err = c.runEnded(k, record)
		case *messages.TurnEnded:
			if err = c.ended(k, record.GetTurnId(), messages.TurnState(record.GetState()), nil); err == nil {
				c.queue.remove(record.GetTurnId())
			}
		case *messages.AbortRequested:
			err = c.queue.stop(record)
		case *messages.SlotAwaited, *messages.ToolsLaunched, *messages.SessionConfigured, *messages.RunSuspended, *messages.OutputReserved,
			*messages.SessionAlive, *messages.FinalsAcked, *messages.LedgerCheckpoint:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *sessionCheck) admitted(k *SessionKit, before session.State, r *messages.TurnAdmitted) error {
	id := r.GetTurn().GetTurnId()
	if c.turns[id] != nil {
		return fmt.Errorf("turn %s is admitted a second time", id)
	}
	life := &turnLife{turn: r.GetTurn()}
	c.turns[id] = life
	cfg := k.cfg
	if before.Live.Settling {
		cfg.MergeWindow = max(cfg.MergeWindow, cfg.Settle)
	}
	if err := c.queue.admit(life, r, cfg); err != nil {
		return err
	}
	if r.GetTurn().GetIdempotencyKey() == "" {
		return nil
	}
	return c.keyed(k, before, r.GetTurn())
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
		if life == nil || life.ended != "" && !life.taken {
			return fmt.Errorf("run %s takes %s, which does not wait", started.GetRunId(), id)
		}
		if first := started.GetAttempt() == 1; first == life.taken {
			return fmt.Errorf("run %s takes %s at attempt %d", started.GetRunId(), id, started.GetAttempt())
		}
	}
	if err := c.queue.start(started); err != nil {
		return err
	}
	for i, id := range started.GetTurnIds() {
		life := c.turns[id]
		life.taken = true
		if i > 0 { // its end; get_turn gives the answer of the run when it has one
			life.ended = messages.TurnMerged
		}
	}
	return nil
}

// runEnded: the first of a run's turns ends, the merged ones and those that steered it get its answer.
func (c *sessionCheck) runEnded(k *SessionKit, r *messages.RunEnded) error {
	for i, id := range r.GetTurnIds() {
		if i > 0 && c.turns[id] != nil && c.turns[id].ended == messages.TurnMerged {
			if err := c.indexed(k, c.turns[id], r); err != nil {
				return err
			}
			continue
		}
		if err := c.ended(k, id, messages.Outcome(r.GetOutcome()).TurnState(), r); err != nil {
			return err
		}
	}
	for _, life := range c.turns {
		if life.injected == r.GetRunId() {
			if err := c.indexed(k, life, r); err != nil {
				return err
			}
		}
	}
	return c.queue.end(r)
}

// injected: an offered turn steers the active run, and never falls back after that.
func (c *sessionCheck) injected(k *SessionKit, r *messages.TurnInjected) error {
	life, err := c.queue.takeOffer(r.GetTurnId())
	if err != nil {
		return err
	}
	if c.queue.run == "" || c.queue.run != r.GetRunId() || c.queue.stopped {
		return fmt.Errorf("turn %s steers %s, active is %q, stopped: %t", r.GetTurnId(), r.GetRunId(), c.queue.run, c.queue.stopped)
	}
	life.ended, life.injected = messages.TurnSteered, r.GetRunId()
	return c.indexed(k, life, &messages.RunEnded{RunId: r.GetRunId()})
}

// ended: exactly one end, which the index tells. by is the end of the run that took the turn; nil = none did.
func (c *sessionCheck) ended(k *SessionKit, id string, state messages.TurnState, by *messages.RunEnded) error {
	life := c.turns[id]
	switch {
	case life == nil:
		return fmt.Errorf("I7: turn %s ends, but was never admitted", id)
	case life.ended != "":
		return fmt.Errorf("I7: turn %s ends as %s, but has ended as %s", id, state, life.ended)
	case !state.Ended():
		return fmt.Errorf("I7: turn %s ends as %q", id, state)
	case life.taken != (by != nil):
		return fmt.Errorf("turn %s: taken by a run is %t, ended by one is %t", id, life.taken, by != nil)
	}
	life.ended = state
	return c.indexed(k, life, by)
}

// indexed: whoever asks for an ended turn is told its end and the answer of the run that took it.
func (c *sessionCheck) indexed(k *SessionKit, life *turnLife, by *messages.RunEnded) error {
	want := &messages.TurnStatus{
		TurnId: life.turn.GetTurnId(), State: string(life.ended), RunId: life.turn.GetRunId(),
		IdempotencyKey: life.turn.GetIdempotencyKey(), ContentHash: life.turn.GetContentHash(),
		Content: by.GetContent(), Outcome: by.GetOutcome(), SteeringEmitted: by != nil && life.steering(),
	}
	if by != nil {
		want.RunId = by.GetRunId()
	}
	switch {
	case life.injected != "":
		want.SteeredInto = life.injected
	case life.ended == messages.TurnMerged:
		want.MergedInto = by.GetTurnIds()[0]
	}
	got := k.journal.turns[want.GetTurnId()]
	if want.Reason = got.GetReason(); !proto.Equal(got, want) {
		return fmt.Errorf("I7: the index says of %s, which ended as %s: %v, not %v", want.GetTurnId(), life.ended, got, want)
	}
	return nil
}

func (l *turnLife) steering() bool { return l.turn.GetMode() == string(messages.ChatModeSteering) }
