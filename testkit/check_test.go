package testkit

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// Every promise that the kit watches can be seen broken: a good result is spoiled, and the check must say so.
func TestSessionKitSeesEachBrokenPromise(t *testing.T) {
	t.Parallel()
	publish := func(r *Result, seq uint64, intent messages.Intent) {
		r.Effects = append(r.Effects, session.Publish{Seq: seq, Intent: intent})
	}
	response := func(run string) *messages.RouterResponse {
		return &messages.RouterResponse{RunId: run, TurnIds: []string{"turn_1"}}
	}
	for want, spoil := range map[string]func(r *Result){
		"the reply to a session.RunFinished":   func(r *Result) { r.Reply = &messages.Aborted{} },
		"I7: turn turn_9 ends, but was never":  func(r *Result) { add(r, &messages.TurnEnded{TurnId: "turn_9", State: "cancelled"}) },
		"I7: turn turn_1 ends as answered, bu": func(r *Result) { add(r, r.Ledger[0]) },
		"I7: turn turn_2 ends as \"queued\"":   func(r *Result) { add(r, &messages.TurnEnded{TurnId: "turn_2", State: "queued"}) },
		"turn turn_2: taken by a run is true":  func(r *Result) { add(r, &messages.TurnEnded{TurnId: "turn_2", State: "cancelled"}) },
		"is admitted a second time":            func(r *Result) { add(r, &messages.TurnAdmitted{Turn: &messages.Turn{TurnId: "turn_2"}}) },
		"run run_9 takes turn_9, which does n": func(r *Result) { add(r, &messages.RunStarted{RunId: "run_9", TurnIds: []string{"turn_9"}}) },
		"takes turn_2 at attempt 1":            func(r *Result) { add(r, r.Ledger[1]) },
		"I2: a session.RunFinished writes":     func(r *Result) { r.Events = append(r.Events, &messages.StageStarted{}) },
		"I2: note":                             func(r *Result) { r.Events = append(r.Events, &messages.SteeringNoteAdded{TurnId: "turn_2"}) },
		"I2: turn turn_1 is STEERING and ends": func(r *Result) { r.Events = nil },
		"I11: item 1 comes after item 5":       func(r *Result) { r.Effects[1] = session.Publish{Seq: 1, Intent: &messages.Notice{}} },
		"I11: item 7 comes after item 5":       func(r *Result) { r.Effects[1] = session.Publish{Seq: 7, Intent: &messages.Notice{}} },
		"but only 7 are reserved":              func(r *Result) { r.State.Ledger.OutputReserved = 7 },
		"I11: item 12 was published, the next": func(r *Result) { r.State.Live.NextSeq = 99 },
		"phase of run_1 goes from dispatched ": func(r *Result) { r.Effects = slices.Delete(r.Effects, 1, 2); number(r) },
		"the response of run_1 comes in phase": func(r *Result) { r.Effects = slices.Delete(r.Effects, 4, 5); number(r) },
		"comes before the state of turn_1":     func(r *Result) { r.Effects = slices.Delete(r.Effects, 3, 4); number(r) },
		"I9: run_2 wants a slot before the fi": func(r *Result) { r.Effects = slices.Delete(r.Effects, 5, 6); number(r) },
		"I9: an item of run_1 after its last ": func(r *Result) { publish(r, 13, response("run_1")) },
		"I9: the response of run_2 comes in p": func(r *Result) { publish(r, 13, response("run_2")) },
		"I9: response 10": func(r *Result) {
			r.Ledger[0] = &messages.RunEnded{RunId: "run_1", TurnIds: []string{"turn_1"}, Outcome: "completed", Content: "1"}
		},
		"I7: turn_state":                      func(r *Result) { publish(r, 13, &messages.TurnStateChanged{TurnId: "turn_1", State: "answered"}) },
		"finalize":                            func(r *Result) { publish(r, 13, &messages.StreamFinalize{RunId: "run_2"}) },
		"delta":                               func(r *Result) { publish(r, 13, &messages.StreamDelta{RunId: "run_2", Attempt: 1, Text: "x"}) },
		"attempt 2 of run_2 begins with":      func(r *Result) { publish(r, 13, &messages.RunPhaseChanged{RunId: "run_2", Attempt: 3}) },
		"attempt 1 of run_9 is canceled":      func(r *Result) { r.Effects = append(r.Effects, session.CancelRun{RunID: "run_9", Attempt: 1}) },
		"an effect is for attempt 7 of run_2": func(r *Result) { r.Effects = append(r.Effects, session.AckRunner{RunID: "run_2", Attempt: 7}) },
		"events are announced up to 0":        func(r *Result) { r.Effects = slices.Delete(r.Effects, 0, 1) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			k := NewSessionKit(t)
			k.Submit("one", func(r *messages.SubmitTurn) { r.Mode = "STEERING" })
			k.Submit("two")
			twin := cloneCheck(k.check)
			before := k.state
			cmd := session.RunFinished{RunID: "run_1", Attempt: 1, Outcome: messages.OutcomeCompleted, Content: "1"}
			r := k.Run(cmd)
			r.Effects, r.Ledger = slices.Clone(r.Effects), slices.Clone(r.Ledger)
			spoil(&r)
			require.ErrorContains(t, twin.after(k, cmd, before, r), want)
		})
	}
}

func add(r *Result, record messages.LedgerRecord) { r.Ledger = append(r.Ledger, record) }

// number gives the items new numbers, without a hole.
func number(r *Result) {
	seq := uint64(5)
	for i, effect := range r.Effects {
		if p, ok := effect.(session.Publish); ok {
			seq++
			p.Seq = seq
			r.Effects[i] = p
		}
	}
}

func cloneCheck(c *sessionCheck) *sessionCheck {
	twin := newSessionCheck()
	for id, life := range c.turns {
		copied := *life
		twin.turns[id] = &copied
	}
	twin.queue = c.queue.clone(twin.turns)
	for key, turn := range c.byKey {
		twin.byKey[key] = turn
	}
	twin.output.last, twin.output.fresh, twin.output.running = c.output.last, c.output.fresh, c.output.running
	for id, run := range c.output.runs {
		copied := *run
		twin.output.runs[id] = &copied
	}
	for id := range c.output.announced {
		twin.output.announced[id] = true
	}
	return twin
}
