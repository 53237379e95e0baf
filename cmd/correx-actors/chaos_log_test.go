package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages/protocol"
)

// chaosEvent is what the fold of a log needs of an event.
type chaosEvent struct {
	Type        string
	StageID     string `json:"stage_id"`
	NextStageID string `json:"next_stage_id"`
	Summary     string
	Reason      string
	Content     string
	TurnID      string `json:"turn_id"`
}

// verifyLog: no acknowledged event is lost or doubled, no number is left out, the state is the fold (I1), and the router wrote
// nothing but notes of turns (I2).
func (v *verdict) verifyLog(session string) {
	log := v.log(session, 0)
	times := make(map[string]int)
	events := make([]chaosEvent, len(log))
	for i, stored := range log {
		if stored.Sequence != uint64(i)+1 {
			v.fault("I1: event %d of %s has number %d", i+1, session, stored.Sequence)
		}
		require.NoError(v.t, json.Unmarshal(stored.Event, &events[i]))
		times[string(stored.Event)]++
		if id := events[i].TurnID; events[i].Type == "steering_note_added" {
			v.notes[id] = append(v.notes[id], events[i].Content)
			if turn := v.turns[id]; turn == nil || turn.session != session {
				v.fault("I2: event %d of %s is of no turn there: %s", i+1, session, stored.Event)
			}
		}
	}
	for seq, event := range v.marks[session] {
		if seq > uint64(len(log)) || string(log[seq-1].Event) != event {
			v.fault("I6: event %d of %s was acknowledged and is lost: %s", seq, session, event)
		}
		if strings.HasPrefix(event, `{"type":"mark"`) && times[event] != 1 {
			v.fault("I6: %s is %d times in %s", event, times[event], session)
		}
	}
	state, err := v.client.Session(v.t.Context(), session)
	require.NoError(v.t, err)
	v.verifyFold(state, events)
}

func (v *verdict) verifyFold(state *protocol.State, events []chaosEvent) {
	status, stage := "IDLE", ""
	var stages []string
	for _, event := range events {
		switch event.Type {
		case "workflow_started", "orchestration_resumed":
			status = "RUNNING"
		case "orchestration_paused":
			status = "PAUSED"
		case "workflow_completed":
			status = "COMPLETED"
		case "stage_started":
			stage = event.StageID
		case "stage_completed":
			stage = event.NextStageID
			stages = append(stages, event.StageID+" SUCCESS "+event.Summary)
		case "stage_failed":
			stages = append(stages, event.StageID+" FAILURE "+event.Reason)
		case "stage_cancelled":
			stages = append(stages, event.StageID+" CANCELLED "+event.Reason)
		}
	}
	got := make([]string, len(state.L2Memory))
	for i, s := range state.L2Memory {
		got[i] = s.StageID + " " + s.Outcome + " " + s.Summary
	}
	if state.WorkflowStatus != status || state.CurrentStageID != stage || state.EventSequence != uint64(len(events)) ||
		state.L2Total != uint64(len(stages)) || !slices.Equal(got, stages[max(0, len(stages)-len(got)):]) {
		v.fault("I1: the state of %s is not the fold of its %d events: %s, want %s %s %d",
			state.SessionID, len(events), shown(state), status, stage, len(stages))
	}
}
