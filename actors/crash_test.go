package actors_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
)

// dying is the journal as a process sees it that dies at an append: it is stored or not, its writer is never told, and nothing
// is stored after it.
type dying struct {
	persistence.Journal
	// stored says whether the last append still reaches the disk.
	stored bool

	mu   sync.Mutex
	left int
}

func (d *dying) Append(key messages.Key, expect persistence.Expect, batch persistence.Batch, done func(persistence.Appended, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	switch {
	case d.left > 0:
		d.Journal.Append(key, expect, batch, done)
	case d.left == 0 && d.stored:
		d.Journal.Append(key, expect, batch, func(persistence.Appended, error) {})
	}
}

func (d *dying) dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left <= 0
}

// step is one thing that clients of a scenario do. All have keys, so that they can be tried again, as clients do.
type step struct {
	text   string
	mode   messages.QueueMode
	steer  bool
	abort  messages.AbortScope
	events int
	pause  time.Duration
}

var crashScenarios = map[string][]step{
	"one turn":        {{text: "a"}},
	"steering":        {{text: "a", steer: true}, {pause: time.Minute}, {text: "b", steer: true}},
	"queued":          {{text: "a"}, {text: "b", steer: true}, {text: "c"}},
	"events between":  {{events: 3}, {text: "a"}, {events: 2}, {text: "b"}, {events: 1}},
	"merged":          {{text: "a"}, {text: "b", mode: messages.QueueFollowup}, {text: "c", mode: messages.QueueFollowup}, {text: "d", mode: messages.QueueFollowup}},
	"merged steering": {{text: "a"}, {text: "b", mode: messages.QueueFollowup, steer: true}, {text: "c", mode: messages.QueueFollowup, steer: true}},
	"offered":         {{text: "a"}, {pause: time.Second}, {text: "b", mode: messages.QueueSteer, steer: true}, {text: "c", mode: messages.QueueSteerBacklog}},
	"interrupted":     {{text: "a", steer: true}, {pause: time.Second}, {text: "b"}, {text: "c", mode: messages.QueueInterrupt}, {text: "d", mode: messages.QueueInterrupt}},
	"aborted run":     {{text: "a", steer: true}, {text: "b"}, {pause: time.Second}, {abort: messages.AbortRun}, {text: "c"}},
	"aborted session": {{text: "a"}, {text: "b", steer: true}, {pause: time.Second}, {abort: messages.AbortSession}, {text: "c"}},
	"everything": {
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
	},
}

// TestCrashMatrix stops the process before and after every single append of each scenario in turn, starts it again, lets the clients
// try again what was not answered, and drives everything to its end (I2, I5, I6, I7, I8).
func TestCrashMatrix(t *testing.T) {
	for name, steps := range crashScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stored := range []bool{true, false} {
				for n := 1; crashAt(t, steps, n, stored); n++ {
					require.Less(t, n, 1000)
				}
			}
		})
	}
}

// crashAt plays the scenario with a crash at append n; false if it has fewer appends.
func crashAt(t *testing.T, steps []step, n int, stored bool) (crashed bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := testkit.NewFaultyJournal(memory.New(memory.Config{}))
		model := testkit.NewProvider(t).Otherwise(testkit.Stream("so"), testkit.Delay(3*time.Second), testkit.Stream(" be it"))
		first := &dying{Journal: inner, left: n, stored: stored}
		h := start(t, inner, model, func(d *session.Deps) { d.Journal = first })
		acked := play(h, steps, nil)
		crashed = first.dead()
		h.stop()
		calls := len(model.Calls())

		h = start(t, inner, model, nil)
		h.activate()
		defer func() {
			h.stop()
			require.NoError(t, inner.Close())
		}()
		again := play(h, steps, acked)
		time.Sleep(10 * time.Minute)
		when := fmt.Sprintf("crash at append %d, stored %t", n, stored)
		checkCrash(t, h, steps, acked.turns, again.turns, when)
		for _, call := range model.Calls()[calls:] {
			require.NotContains(t, acked.aborted, call.Request.RunID, "%s: a run that a user stopped is called again (B19)", when)
		}
	})
	return crashed
}

// acknowledged is what clients were told: their turns by key, and the runs that their aborts ended.
type acknowledged struct {
	turns   map[string]*messages.TurnAccepted
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
		case s.events > 0 && done == nil:
			events := make([]messages.Event, s.events)
			for k := range events {
				events[k] = &messages.StageCompleted{StageId: fmt.Sprintf("%d-%d", i, k)}
			}
			_, _ = h.client.Record(ctx, key, nil, events...)
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

func checkCrash(t *testing.T, h *host, steps []step, acked, again map[string]*messages.TurnAccepted, when string) {
	t.Helper()
	state := h.state()
	require.Nil(t, state.GetActiveRun(), when)
	require.Empty(t, state.GetQueue(), when)
	require.Empty(t, state.GetPendingSteers(), when)
	noted := make(map[string]int)
	for _, text := range h.notes() {
		noted[text]++
	}
	for _, s := range steps {
		if s.text == "" {
			continue
		}
		require.NotNil(t, again[s.text], "%s: turn %s is not accepted", when, s.text)
		if before := acked[s.text]; before != nil { // I6, I8: what was acknowledged is there, and is the same turn
			require.Equal(t, before.GetTurnId(), again[s.text].GetTurnId(), "%s: turn %s", when, s.text)
			require.Equal(t, "duplicate", again[s.text].GetDisposition(), "%s: turn %s", when, s.text)
		}
		status, err := h.client.TurnByKey(t.Context(), key, s.text)
		require.NoError(t, err, when)
		end := messages.TurnState(status.GetState())
		require.True(t, end.Ended(), "%s: turn %s is %s (I7)", when, s.text, end)
		taken := end != messages.TurnWithdrawn && end != messages.TurnExpired && (end != messages.TurnCancelled || status.GetOutcome() != "")
		want := 0
		if s.steer && taken {
			want = 1
		}
		require.Equal(t, want, noted[s.text], "%s: notes of turn %s, which is %s (I2)", when, s.text, end)
		if end == messages.TurnAnswered || end == messages.TurnMerged && status.GetOutcome() == "completed" {
			require.Equal(t, "so be it", status.GetContent(), when)
		}
	}
	checkFinals(t, h, when)
}

// checkFinals: one router_response for each run, and none twice.
func checkFinals(t *testing.T, h *host, when string) {
	t.Helper()
	sub := h.subscribe(0)
	defer sub.Close()
	runs := make(map[string]int)
	for _, item := range h.items(sub) {
		if intent, ok := item.(*messages.DeliveryIntent); ok && intent.GetRouterResponse() != nil {
			runs[intent.GetRouterResponse().GetRunId()]++
		}
	}
	for run, n := range runs {
		require.Equal(t, 1, n, "%s: run %s has %d finals", when, run, n)
	}
}
