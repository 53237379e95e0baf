package main

import (
	"slices"
	"strings"

	"github.com/correx/correx-actors/messages/protocol"
)

// verdict is what the last server says of all that was acknowledged.
type verdict struct {
	*chaos
	l *line
	// ends of the turns, by id; notes in the event logs, by turn; answers that name a turn, by turn.
	ends    map[string]*protocol.Turn
	notes   map[string][]string
	answers map[string][]string
}

// chaosEnds are the ends that a turn may have here: nothing waits for long, and the runs of this build take no offers.
var chaosEnds = []string{"answered", "failed", "cancelled", "interrupted", "merged", "withdrawn"}

// verify asks the last server for everything that was acknowledged.
func (c *chaos) verify() {
	c.t.Helper()
	v := &verdict{
		chaos: c, l: &line{c: c}, ends: make(map[string]*protocol.Turn), notes: make(map[string][]string),
		answers: make(map[string][]string),
	}
	defer v.l.drop()
	for i := range chaosSessions {
		v.verifyLog(chaosSession(i))
	}
	known := true
	for _, final := range c.finals {
		for _, id := range final.TurnIDs {
			v.answers[id] = append(v.answers[id], final.RunID)
			if c.turns[id] == nil {
				c.fault("I7: run %s answers turn %s, which nobody was promised", final.RunID, id)
				known = false
			}
		}
	}
	for id, turn := range c.turns {
		v.ends[id] = v.end(turn)
		known = known && v.ends[id] != nil
	}
	if !known {
		return // the rest would be noise
	}
	for id, turn := range c.turns {
		v.verifyTurn(turn, v.ends[id])
		c.happened("ends " + v.ends[id].State)
	}
	v.verifyRefused()
	v.verifyAborts()
	for i := range chaosSessions {
		v.verifyOutput(chaosSession(i))
		v.verifyOrder(chaosSession(i))
		v.verifyHistory(chaosSession(i))
		v.verifyRedelivery(chaosSession(i))
	}
}

// end asks for a turn by id and by key, which must tell the same: an end, and the one that was told before if any was (I7).
func (v *verdict) end(turn *chaosTurn) *protocol.Turn {
	byID, refused, _ := v.l.ask(&protocol.GetTurn{SessionID: turn.session, TurnID: turn.id})
	byKey, _, _ := v.l.ask(&protocol.GetTurn{SessionID: turn.session, IdempotencyKey: turn.key})
	end, ok := byID.(*protocol.Turn)
	same, found := byKey.(*protocol.Turn)
	if !ok || !found {
		v.fault("I7: turn %+v: %s, %v, by its key: %s", turn, shown(byID), refused, shown(byKey))
		return nil
	}
	if end.ID, same.ID = "", ""; *end != *same {
		v.fault("I7: turn %s is by its key %s", shown(end), shown(same))
	}
	if !slices.Contains(chaosEnds, end.State) {
		v.fault("I7: turn %+v has not ended as it must: %s", turn, shown(end))
	}
	for _, told := range turn.told {
		if told != end.State && !slices.Contains([]string{"queued", "offered", "running"}, told) {
			v.fault("I7: turn %+v was told to have ended as %s, and is %s", turn, told, shown(end))
		}
	}
	return end
}

// verifyTurn compares a turn's end with what else speaks of it: its run's final, its notes, who joined it and who stopped it.
func (v *verdict) verifyTurn(turn *chaosTurn, end *protocol.Turn) {
	taken, final := end.Outcome != "", v.finals[end.RunID]
	switch {
	case len(v.answers[turn.id]) > 1:
		v.fault("I7: turn %s is answered by %v", shown(end), v.answers[turn.id])
	case taken != (final != nil):
		v.fault("I9: turn %s has the final %s", shown(end), shown(final))
	case taken && (final.Content != end.Content || final.Outcome != end.Outcome || !slices.Equal(v.answers[turn.id], []string{end.RunID})):
		v.fault("I9: turn %s has another final %s", shown(end), shown(final))
	case taken && final.SteeringEmitted != (turn.mode == protocol.ModeSteering):
		v.fault("I2: turn %+v has the final %s", turn, shown(final))
	case !taken && (end.Content != "" || len(v.answers[turn.id]) > 0):
		v.fault("I9: turn %s, which no run took, is answered by %v", shown(end), v.answers[turn.id])
	default:
		v.verifyState(turn, end, final)
	}
	notes := 0
	if taken && turn.mode == protocol.ModeSteering {
		notes = 1
	}
	if got := v.notes[turn.id]; len(got) != notes || notes == 1 && got[0] != turn.text {
		v.fault("I2: turn %+v (%s) has the notes %q", turn, shown(end), got)
	}
}

// verifyState: the end is one that something led to.
func (v *verdict) verifyState(turn *chaosTurn, end *protocol.Turn, final *protocol.RouterResponse) {
	taken := final != nil
	ok := true
	switch end.State {
	case "answered":
		ok = taken && end.Outcome == "completed"
	case "failed": // a run that crashes too often, or that waits for its slot too long, started or not
		ok = !taken && end.Reason == "slot_timeout" ||
			taken && end.Outcome == "failed" && final.Error != nil && slices.Contains([]string{"crash_loop", "slot_timeout"}, final.Error.Code)
	case "cancelled":
		ok = (!taken || end.Outcome == "cancelled") && v.stopped(turn, end.Reason)
	case "interrupted":
		ok = taken && end.Outcome == "interrupted" && end.Reason == "interrupted" && v.interrupted(turn)
	case "merged":
		ok = taken && v.joined(turn, end, final)
	case "withdrawn":
		ok = !taken && turn.withdrawn
	}
	if !ok || taken && end.State != "merged" && (final.TurnIDs[0] != turn.id || end.RunID != chaosRunOf(turn.id)) {
		v.fault("I7: turn %+v: nothing led to its end %s with the final %s", turn, shown(end), shown(final))
	}
	if turn.withdrawn && end.State != "withdrawn" {
		v.fault("I6: turn %+v was taken back, and is %s", turn, shown(end))
	}
}

// stopped: the reason is that of an abort that could stop this turn and was not over when it was sent.
func (v *verdict) stopped(turn *chaosTurn, reason string) bool {
	a := v.aborts[reason]
	return a != nil && a.frame.SessionID == turn.session && a.acked > turn.sent &&
		(a.frame.TurnID == "" || a.frame.TurnID == turn.id) && (a.frame.RunID == "" || a.frame.RunID == chaosRunOf(turn.id))
}

// interrupted: another turn of the session came to do it.
func (v *verdict) interrupted(turn *chaosTurn) bool {
	for _, other := range v.turns {
		if other != turn && other.session == turn.session && other.queueMode == "interrupt" {
			return true
		}
	}
	return false
}

// joined: the turn that leads is of the same sender and the same kind, and its run answered both.
func (v *verdict) joined(turn *chaosTurn, end *protocol.Turn, final *protocol.RouterResponse) bool {
	lead := v.turns[end.MergedInto]
	joins := func(mode string) bool { return mode == "followup" || mode == "steer" }
	return lead != nil && lead != turn && lead.session == turn.session && lead.sender == turn.sender && lead.mode == turn.mode &&
		joins(lead.queueMode) && joins(turn.queueMode) && final.TurnIDs[0] == lead.id && v.ends[lead.id].State != "merged" &&
		v.ends[lead.id].Content == end.Content
}

// verifyRefused: what was refused was never admitted.
func (v *verdict) verifyRefused() {
	for _, turn := range v.refused {
		answer, refused, _ := v.l.ask(&protocol.GetTurn{SessionID: turn.session, IdempotencyKey: turn.key})
		if refused == nil || refused.Code != "unknown_turn" {
			v.fault("turn %+v was refused, and is %s, %v", turn, shown(answer), refused)
		}
	}
}

// verifyAborts: what an abort named as stopped was not answered any more, whoever was first to stop it.
func (v *verdict) verifyAborts() {
	for _, a := range v.aborts {
		for _, id := range a.turns {
			turn, end := v.turns[id], v.ends[id]
			stopped := func(s string) bool { return s == "cancelled" || s == "interrupted" }
			if turn == nil || turn.session != a.frame.SessionID || !stopped(end.State) && (end.State != "merged" || !stopped(end.Outcome)) {
				v.fault("I6: abort %s stopped turn %s: %+v, %s", shown(a.frame), id, turn, shown(end))
			}
		}
	}
}

// runOf is the run that a turn leads.
func chaosRunOf(turnID string) string { return "run_" + strings.TrimPrefix(turnID, "turn_") }
