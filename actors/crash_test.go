package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// step is one thing that clients of a scenario do. All have keys, so that they can be tried again, as clients do.
type step struct {
	text   string
	mode   messages.QueueMode
	steer  bool
	abort  messages.AbortScope
	drain  bool
	events int
	pause  time.Duration
}

// crashScenario is what clients do; with loops its runs have a boundary, else they are plain calls.
type crashScenario struct {
	loops bool
	steps []step
}

var crashScenarios = map[string]crashScenario{
	"idle":            {steps: []step{{text: "a"}, {pause: time.Hour}, {events: 1}, {pause: time.Hour}}},
	"one turn":        {steps: []step{{text: "a"}}},
	"steering":        {steps: []step{{text: "a", steer: true}, {pause: time.Minute}, {text: "b", steer: true}}},
	"queued":          {steps: []step{{text: "a"}, {text: "b", steer: true}, {text: "c"}}},
	"events between":  {steps: []step{{events: 3}, {text: "a"}, {events: 2}, {text: "b"}, {events: 1}}},
	"merged":          {steps: []step{{text: "a"}, {text: "b", mode: messages.QueueFollowup}, {text: "c", mode: messages.QueueFollowup}, {text: "d", mode: messages.QueueFollowup}}},
	"merged steering": {steps: []step{{text: "a"}, {text: "b", mode: messages.QueueFollowup, steer: true}, {text: "c", mode: messages.QueueFollowup, steer: true}}},
	"offered":         {steps: []step{{text: "a"}, {pause: time.Second}, {text: "b", mode: messages.QueueSteer, steer: true}, {text: "c", mode: messages.QueueSteerBacklog}}},
	"injected": {loops: true, steps: []step{
		{text: "a", steer: true},
		{pause: time.Second},
		{text: "b", mode: messages.QueueSteer, steer: true},
		{text: "c", mode: messages.QueueSteerBacklog},
		{pause: 5 * time.Second}, // they are put in
		{text: "d", mode: messages.QueueSteer},
		{pause: 20 * time.Second}, // the run ends before it is at another boundary
	}},
	"interrupted":      {steps: []step{{text: "a", steer: true}, {pause: time.Second}, {text: "b"}, {text: "c", mode: messages.QueueInterrupt}, {text: "d", mode: messages.QueueInterrupt}}},
	"aborted run":      {steps: []step{{text: "a", steer: true}, {text: "b"}, {pause: time.Second}, {abort: messages.AbortRun}, {text: "c"}}},
	"aborted session":  {steps: []step{{text: "a"}, {text: "b", steer: true}, {pause: time.Second}, {abort: messages.AbortSession}, {text: "c"}}},
	"stopping":         {steps: []step{{text: "a", steer: true}, {text: "b"}, {pause: time.Second}, {drain: true}, {text: "c"}}},
	"not acknowledged": {steps: []step{{text: "a"}, {pause: time.Minute}, {text: "b"}, {pause: time.Minute}}},
	"everything": {steps: []step{
		{events: 2},
		{text: "a"},
		{text: "b", mode: messages.QueueFollowup},
		{text: "c", mode: messages.QueueFollowup, steer: true},
		{pause: 700 * time.Millisecond},
		{text: "d", mode: messages.QueueSteer},
		{events: 1},
		{text: "e", mode: messages.QueueInterrupt},
		{pause: 10 * time.Second},
		{text: "f", mode: messages.QueueSteerBacklog, steer: true},
		{abort: messages.AbortRun},
		{text: "g"},
	}},
}

// TestCrashMatrix stops the process before and after every single append of each scenario in turn, starts it again, lets the clients
// try again what was not answered, and drives everything to its end (I2, I5, I6, I7, I8).
func TestCrashMatrix(t *testing.T) {
	for name, scenario := range crashScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.CrashEvery(t, scenario.play)
		})
	}
}

func (s crashScenario) play(t *testing.T, c *testkit.Crash) {
	t.Helper()
	model := testkit.NewProvider(t).Otherwise(testkit.Stream("so"), testkit.Delay(3*time.Second), testkit.Stream(" be it"))
	var change func(*session.Deps)
	if s.loops {
		change = func(d *session.Deps) { looping(d, nil) }
	}
	h := start(t, c.Journal(), model, change)
	acked := play(h, s.steps, nil)
	h.stop()
	calls := len(model.Calls())

	c.Restart(func() {
		h := start(t, c.Journal(), model, change)
		defer h.stop()
		h.activate()
		again := play(h, s.steps, acked)
		time.Sleep(10 * time.Minute)
		s.check(t, h, acked, again.turns)
		for _, call := range model.Calls()[calls:] {
			require.NotContains(t, acked.aborted, call.Request.RunID, "a run that a user stopped is called again (B19)")
		}
	})
}

// acknowledged is what clients were told: their turns by key, how many events, and the runs that their aborts ended.
type acknowledged struct {
	turns   map[string]*messages.TurnAccepted
	events  int
	aborted []string
}

// play does the steps and gives what was acknowledged. With done it is the second time: turns are tried again under
// their keys, events are recorded once more only if they had not been acknowledged, and nothing is aborted twice.
func play(h *host, steps []step, done *acknowledged) *acknowledged {
	acked := &acknowledged{turns: make(map[string]*messages.TurnAccepted)}
	for i, s := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		switch {
		case s.pause > 0 && done == nil:
			time.Sleep(s.pause)
		case s.drain && done == nil:
			_ = h.dir.Drain(ctx, ctx)
		case s.events > 0 && done == nil:
			events := make([]messages.Event, s.events)
			for k := range events {
				events[k] = &messages.StageCompleted{StageId: fmt.Sprintf("%d-%d", i, k)}
			}
			if _, err := h.client.Record(ctx, key, nil, events...); err == nil {
				acked.events += len(events)
			}
		case s.abort != "" && done == nil:
			if aborted, err := h.client.Abort(ctx, key, &messages.Abort{Scope: string(s.abort)}); err == nil {
				acked.aborted = append(acked.aborted, aborted.GetRunIds()...)
			}
		case s.text != "":
			request := turn(s.text, keyed(s.text), mode(s.mode))
			if s.steer {
				steering(request)
			}
			if accepted, err := h.client.Submit(ctx, key, request); err == nil {
				acked.turns[s.text] = accepted
			}
		}
		cancel()
	}
	return acked
}

func (s crashScenario) check(t *testing.T, h *host, acked *acknowledged, again map[string]*messages.TurnAccepted) {
	t.Helper()
	state := h.state()
	require.Nil(t, state.GetActiveRun())
	require.Empty(t, state.GetQueue())
	require.Empty(t, state.GetPendingSteers())
	require.GreaterOrEqual(t, state.GetEventSequence(), uint64(acked.events+len(h.notes())), "acknowledged events are there (I6)") //nolint:gosec // small
	noted := make(map[string]int)
	for _, text := range h.notes() {
		noted[text]++
	}
	finals := finalsOf(t, h)
	for _, step := range s.steps {
		if step.text == "" {
			continue
		}
		require.NotNil(t, again[step.text], "turn %s is not accepted", step.text)
		if before := acked.turns[step.text]; before != nil { // I6, I8: what was acknowledged is there, and is the same turn
			require.Equal(t, before.GetTurnId(), again[step.text].GetTurnId(), "turn %s", step.text)
			require.Equal(t, "duplicate", again[step.text].GetDisposition(), "turn %s", step.text)
		}
		status, err := h.client.TurnByKey(t.Context(), key, step.text)
		require.NoError(t, err)
		end := messages.TurnState(status.GetState())
		require.True(t, end.Ended(), "turn %s is %s (I7)", step.text, end)
		taken := end != messages.TurnWithdrawn && end != messages.TurnExpired && (end != messages.TurnCancelled || status.GetOutcome() != "")
		want := 0
		if step.steer && taken {
			want = 1
		}
		require.Equal(t, want, noted[step.text], "notes of turn %s, which is %s (I2)", step.text, end)
		if end == messages.TurnAnswered || end == messages.TurnMerged && status.GetOutcome() == "completed" {
			s.checkAnswer(t, status.GetContent())
			require.Equal(t, 1, finals[status.GetRunId()], "nobody acknowledged the final of turn %s", step.text)
		}
	}
	for run, n := range finals {
		require.Equal(t, 1, n, "run %s has %d finals", run, n)
	}
}

func (s crashScenario) checkAnswer(t *testing.T, content string) {
	t.Helper()
	if !s.loops {
		require.Equal(t, "so be it", content)
		return
	}
	require.Contains(t, content, "heard")
	for _, step := range s.steps { // never dropped, never put in twice
		require.LessOrEqual(t, strings.Count(content+" ", " "+step.text+" "), 1, content)
	}
}

// finalsOf counts the answers of each run that the next subscriber gets.
func finalsOf(t *testing.T, h *host) map[string]int {
	t.Helper()
	sub := h.subscribe(0)
	defer sub.Close()
	runs := make(map[string]int)
	for _, item := range h.items(sub) {
		if intent, ok := item.(*messages.DeliveryIntent); ok && intent.GetRouterResponse() != nil {
			runs[intent.GetRouterResponse().GetRunId()]++
		}
	}
	return runs
}
