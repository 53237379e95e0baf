package client

import (
	"context"
	"slices"
	"time"

	"github.com/correx/correx-actors/messages/protocol"
)

// tracker follows the turns of a Talk from their acceptance to their end.
type tracker struct {
	byID map[string]*trackedTurn
	// order of acceptance.
	order []string
}

type trackedTurn struct {
	input *protocol.ChatInput
	// started: a run took it, so a RouterResponse comes.
	started bool
	// steered is the run that the turn steers, whose RouterResponse does not name the turn; "" = none.
	steered string
}

func newTracker() tracker { return tracker{byID: make(map[string]*trackedTurn)} }

// turnPrefix begins the ids of questions that a Talk asks for itself.
const turnPrefix = "turn:"

// Ends of turns.
var turnEnds = []string{
	"answered", "failed", "cancelled", "interrupted", "incomplete", "merged", "steered", "withdrawn", "expired",
}

func ended(state string) bool { return slices.Contains(turnEnds, state) }

// received handles one frame of the server.
func (t *Talk) received(ctx context.Context, conn *Conn, frame protocol.ServerFrame) error {
	if item, ok := frame.(protocol.OutputItem); ok {
		_, seq := item.Place()
		if t.seq != nil && seq <= *t.seq {
			return nil // seen before the connection was lost
		}
		t.seq = &seq
		return t.item(ctx, frame)
	}
	switch f := any(frame).(type) { // all others are only passed on
	case *protocol.TurnAccepted:
		return t.accepted(ctx, conn, f)
	case *protocol.Turn:
		if id := turnPrefix + f.TurnID; f.ID == id {
			return t.found(ctx, f)
		}
	case *protocol.Error:
		return t.refused(ctx, f)
	case *protocol.Resync:
		t.seq = &f.UpToSeq
		if err := t.tell(ctx, &Arrived{Frame: f}); err != nil {
			return err
		}
		return t.askTurns(ctx, conn)
	case *protocol.SessionEvent:
		if t.event != nil && f.Sequence <= *t.event {
			return nil
		}
		t.event = &f.Sequence
	}
	t.done(answerID(frame))
	return t.tell(ctx, &Arrived{Frame: frame})
}

// done takes a request off the list; nil if it is none of ours.
func (t *Talk) done(id string) *request {
	for i, r := range t.pending {
		if id != "" && r.id == id {
			t.pending = slices.Delete(t.pending, i, i+1)
			return r
		}
	}
	return nil
}

func (t *Talk) accepted(ctx context.Context, conn *Conn, f *protocol.TurnAccepted) error {
	r := t.done(f.ID)
	if r == nil {
		return t.tell(ctx, &Arrived{Frame: f})
	}
	input, _ := r.frame.(*protocol.ChatInput)
	if _, known := t.turns.byID[f.TurnID]; known {
		return nil // sent twice
	}
	t.down = time.Time{}
	t.turns.byID[f.TurnID] = &trackedTurn{input: input}
	t.turns.order = append(t.turns.order, f.TurnID)
	if err := t.tell(ctx, &Accepted{Input: input, Turn: f}); err != nil {
		return err
	}
	if f.Disposition == "duplicate" {
		// Its output may lie before this subscription.
		return conn.Send(ctx, &protocol.GetTurn{ID: turnPrefix + f.TurnID, SessionID: t.session, TurnID: f.TurnID})
	}
	return nil
}

// refused handles an error frame. What can be cured by waiting is sent again.
func (t *Talk) refused(ctx context.Context, f *protocol.Error) error {
	if f.ID == subscribeID {
		return f
	}
	if id, ok := t.isTurnQuestion(f.ID); ok {
		return t.settle(ctx, &Settled{TurnID: id, State: "failed", Reason: f.Error()})
	}
	for _, r := range t.pending {
		if r.id != f.ID || f.ID == "" {
			continue
		}
		_, isInput := r.frame.(*protocol.ChatInput)
		if isInput && (f.Code == protocol.CodeDraining || f.Code == protocol.CodeUnavailable) {
			t.hold(r)
			if t.down.IsZero() {
				t.down = time.Now()
				return t.tell(ctx, &Lost{Err: f})
			}
			return nil
		}
		t.done(f.ID)
		return t.tell(ctx, &Refused{Request: r.frame, Err: f})
	}
	return t.tell(ctx, &Arrived{Frame: f})
}

func (t *Talk) isTurnQuestion(id string) (turnID string, ok bool) {
	for _, turn := range t.turns.order {
		if id == turnPrefix+turn {
			return turn, true
		}
	}
	return "", false
}

// item handles an output item, after which turns may have ended.
func (t *Talk) item(ctx context.Context, frame protocol.ServerFrame) error {
	if err := t.tell(ctx, &Arrived{Frame: frame}); err != nil {
		return err
	}
	switch f := any(frame).(type) { // no other ends a turn
	case *protocol.RunPhase:
		if f.Phase == "dispatched" || f.Phase == "starting_engine" || f.Phase == "streaming" {
			for _, id := range f.TurnIDs {
				if turn := t.turns.byID[id]; turn != nil {
					turn.started = true
				}
			}
		}
	case *protocol.TurnState:
		turn := t.turns.byID[f.TurnID]
		switch {
		case turn == nil || turn.started || !ended(f.State) || f.State == "merged":
		case f.State == "steered":
			turn.steered = f.SteeredInto
		default:
			return t.settle(ctx, &Settled{TurnID: f.TurnID, State: f.State, Reason: f.Reason})
		}
	case *protocol.RouterResponse:
		for _, id := range append(slices.Clone(f.TurnIDs), t.turns.steering(f.RunID)...) {
			if err := t.settle(ctx, &Settled{TurnID: id, State: stateOf(f.Outcome), Response: f}); err != nil {
				return err
			}
		}
	}
	return nil
}

// steering lists the turns that steer a run, in the order of their acceptance.
func (t *tracker) steering(run string) (ids []string) {
	for _, id := range t.order {
		if run != "" && t.byID[id].steered == run {
			ids = append(ids, id)
		}
	}
	return ids
}

// stateOf is the end of the turns of a run.
func stateOf(outcome string) string {
	if outcome == "completed" {
		return "answered"
	}
	return outcome
}

// found takes the server's word on a turn whose end may have been missed. All output that came before the word is here already.
func (t *Talk) found(ctx context.Context, f *protocol.Turn) error {
	if !ended(f.State) {
		return nil
	}
	settled := &Settled{TurnID: f.TurnID, State: f.State, Reason: f.Reason, Turn: f}
	if f.State == "merged" || f.State == "steered" { // another turn's run took it
		if turn := t.turns.byID[f.TurnID]; turn != nil && f.Outcome == "" {
			turn.steered = f.SteeredInto // the run goes on, and its RouterResponse comes
			return nil
		}
		settled.State = stateOf(f.Outcome)
	}
	return t.settle(ctx, settled)
}

func (t *Talk) settle(ctx context.Context, s *Settled) error {
	turn := t.turns.byID[s.TurnID]
	if turn == nil {
		return nil
	}
	delete(t.turns.byID, s.TurnID)
	t.turns.order = slices.DeleteFunc(t.turns.order, func(id string) bool { return id == s.TurnID })
	s.Input = turn.input
	return t.tell(ctx, s)
}

// askTurns asks for the turns that have no end yet, since it may be among the items that are not kept any more.
func (t *Talk) askTurns(ctx context.Context, conn *Conn) error {
	for _, id := range t.turns.order {
		if err := conn.Send(ctx, &protocol.GetTurn{ID: turnPrefix + id, SessionID: t.session, TurnID: id}); err != nil {
			return err
		}
	}
	return nil
}
