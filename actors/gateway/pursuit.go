package gateway

import (
	"slices"

	"github.com/correx/correx-actors/messages"
)

// pursuit finds the items of one turn among those of its session. The run that answers it may be another turn's: that of the
// turn it joined, or the one that took it in.
type pursuit struct {
	turn messages.TurnID
	// run that answers the turn, as far as is known.
	run messages.RunID
}

// meeting is what an item is to a turn.
type meeting string

const (
	// meetsOther: it is not about the turn.
	meetsOther meeting = "other"
	// meetsOwn: it is about the turn or the run that answers it.
	meetsOwn meeting = "own"
	// meetsEnd: it is the turn's end, which a run may or may not have taken; if one has, its final is on the way. Ask for the turn.
	meetsEnd meeting = "end"
	// meetsLast: it is the final of the turn's run.
	meetsLast meeting = "last"
)

// meets says what an item is to the turn, and learns from it which run answers the turn.
func (p *pursuit) meets(m *messages.DeliveryIntent) meeting {
	switch body := m.GetBody().(type) {
	case *messages.DeliveryIntent_RouterResponse:
		if body.RouterResponse.GetRunId() == p.run || slices.Contains(body.RouterResponse.GetTurnIds(), p.turn) {
			return meetsLast
		}
		return meetsOther
	case *messages.DeliveryIntent_TurnState:
		if body.TurnState.GetTurnId() != p.turn {
			return meetsOther
		}
		return p.moved(body.TurnState)
	case *messages.DeliveryIntent_RunPhase:
		if slices.Contains(body.RunPhase.GetTurnIds(), p.turn) {
			p.run = body.RunPhase.GetRunId()
		}
	}
	if run := runOf(m); run != "" && run == p.run {
		return meetsOwn
	}
	return meetsOther
}

// moved: the turn has its end. A canceled or failed one may or may not have had a run.
func (p *pursuit) moved(m *messages.TurnStateChanged) meeting {
	switch messages.TurnState(m.GetState()) {
	case messages.TurnMerged:
		p.run = messages.RunIDOf(m.GetMergedInto())
	case messages.TurnSteered:
		p.run = m.GetSteeredInto()
	case messages.TurnCancelled, messages.TurnWithdrawn, messages.TurnExpired, messages.TurnFailed: // failed also without a run: no slot came
		return meetsEnd
	case messages.TurnQueued, messages.TurnOffered, messages.TurnRunning, // no ends
		messages.TurnAnswered, messages.TurnInterrupted, messages.TurnIncomplete: // of a run
	}
	return meetsOwn
}

// runOf is the run that an item is about; a turn's state is about the turn.
func runOf(m *messages.DeliveryIntent) messages.RunID {
	switch body := m.GetBody().(type) {
	case *messages.DeliveryIntent_RunPhase:
		return body.RunPhase.GetRunId()
	case *messages.DeliveryIntent_StreamDelta:
		return body.StreamDelta.GetRunId()
	case *messages.DeliveryIntent_StreamSnapshot:
		return body.StreamSnapshot.GetRunId()
	case *messages.DeliveryIntent_StreamFinalize:
		return body.StreamFinalize.GetRunId()
	case *messages.DeliveryIntent_RouterResponse:
		return body.RouterResponse.GetRunId()
	case *messages.DeliveryIntent_ToolStatus:
		return body.ToolStatus.GetRunId()
	case *messages.DeliveryIntent_WatchdogPrompt:
		return body.WatchdogPrompt.GetRunId()
	case *messages.DeliveryIntent_Notice:
		return body.Notice.GetRunId()
	}
	return ""
}

// settled says whether nothing more is to come of a turn: it has its end, and so has the run that took it.
func settled(t *messages.TurnStatus) bool {
	state := messages.TurnState(t.GetState())
	taken := state == messages.TurnMerged || state == messages.TurnSteered
	return state.Ended() && (!taken || messages.Outcome(t.GetOutcome()).Valid())
}
