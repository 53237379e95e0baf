package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/queue"
	"github.com/correx/correx-actors/messages"
)

// twin is the table of queue modes, written down once more as dumbly as possible: no entry, no placement, only a list of what
// waits in which a part says that it goes with the one before it.
type twin struct {
	list    []waits
	offered []*messages.Turn
}

type waits struct {
	turn *messages.Turn
	// with: it runs with the one before it.
	with     bool
	followup bool
	// joined is when a followup joined its entry last.
	joined *time.Time
}

func (w *twin) String() string {
	var b strings.Builder
	for _, x := range w.list {
		sep := " "
		if x.with {
			sep = "+"
		}
		b.WriteString(sep + x.turn.GetTurnId())
	}
	return strings.TrimPrefix(b.String(), " ") + " | " + names(w.offered)
}

// layout prints a queue as the twin prints itself.
func layout(q queue.Queue) string {
	var entries []string
	for _, e := range q.Waiting {
		entries = append(entries, names(e.Turns))
	}
	return strings.Join(entries, " ") + " | " + names(q.Offered)
}

func (w *twin) submit(turn *messages.Turn, mode messages.QueueMode, now time.Time, run queue.Activity, limit int) bool {
	promoted := mode == messages.QueueFollowup && turn.GetTaskResult()
	offers := run.Steerable && (mode == messages.QueueSteer || mode == messages.QueueSteerBacklog || promoted)
	if len(w.list) >= limit || offers && len(w.offered) >= limit {
		return false
	}
	switch {
	case offers:
		w.offered = append(w.offered, turn)
	case mode == messages.QueueInterrupt:
		w.list = append([]waits{{turn: turn}}, w.list...)
	case mode == messages.QueueFollowup, mode == messages.QueueSteer:
		w.followup(turn, now)
	default:
		w.list = append(w.list, waits{turn: turn})
	}
	return true
}

func (w *twin) followup(turn *messages.Turn, now time.Time) {
	with := false
	joined := new(time.Time)
	if n := len(w.list); n > 0 {
		tail := w.list[n-1]
		with = tail.followup && now.Sub(*tail.joined) <= window &&
			key(tail.turn) == key(turn) && !turn.GetTaskResult() && !tail.turn.GetTaskResult()
		if with { // the parts of an entry share when one joined last
			joined = tail.joined
		}
	}
	*joined = now
	w.list = append(w.list, waits{turn: turn, with: with, followup: true, joined: joined})
}

// key is what merged turns have in common.
func key(t *messages.Turn) string {
	return t.GetSender() + "/" + t.GetMode() + "/" + t.GetResume().GetEngine() + "/" + t.GetResume().GetToken()
}

func (w *twin) remove(id string) {
	is := func(t *messages.Turn) bool { return t.GetTurnId() == id }
	w.offered = slices.DeleteFunc(slices.Clone(w.offered), is)
	if i := slices.IndexFunc(w.list, func(x waits) bool { return is(x.turn) }); i >= 0 {
		if i+1 < len(w.list) && !w.list[i].with {
			w.list[i+1].with = false // it leads now, or did before
		}
		w.list = slices.Delete(w.list, i, i+1)
	}
}

func (w *twin) fallBack(id string, now time.Time) {
	for _, turn := range w.offered {
		if turn.GetTurnId() != id {
			continue
		}
		w.remove(id)
		if turn.GetQueueMode() == "steer" {
			w.followup(turn, now)
			return
		}
		w.list = append(w.list, waits{turn: turn})
		return
	}
}

// start takes the first of the list and what goes with it.
func (w *twin) start() []*messages.Turn {
	var taken []*messages.Turn
	for len(w.list) > 0 && (taken == nil || w.list[0].with) {
		taken, w.list = append(taken, w.list[0].turn), w.list[1:]
	}
	return taken
}

const window = 500 * time.Millisecond

// The queue is its twin, whatever comes in whatever order: the order of runs, what is merged, what is refused. Each turn starts,
// steers or is taken out at most once, nothing is lost, and old values of the queue stay as they were.
func TestQueueIsItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(rt, "limit")
		s, w := newShell(queue.Config{MergeWindow: window, Limit: limit}), &twin{}
		left := make(map[string]bool) // admitted and still there
		old := make(map[string]queue.Queue)
		for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			s.now = s.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 100, 250, 500, 501}).Draw(rt, "ms")) * time.Millisecond)
			step(rt, s, w, left, i)
			require.Equal(rt, w.String(), layout(s.q))
			requireSound(rt, s, left)
			old[layout(s.q)] = s.q
			for want, q := range old {
				require.Equal(rt, want, layout(q), "an old value changed")
			}
		}
	})
}

func step(rt *rapid.T, s *shell, w *twin, left map[string]bool, i int) {
	id := fmt.Sprintf("t%d", rapid.IntRange(max(0, i-8), i).Draw(rt, "id"))
	switch rapid.SampledFrom([]string{"submit", "submit", "submit", "submit", "remove", "refuse", "inject", "finish"}).Draw(rt, "do") {
	case "submit":
		turn, mode := draw(rt, fmt.Sprintf("t%d", i))
		run := s.activity()
		want := w.submit(turn, mode, s.now, run, s.cfg.Limit)
		p, got := s.submit(turn, mode)
		require.Equal(rt, want, got, "%s %s", turn, mode)
		require.Equal(rt, mode == messages.QueueInterrupt && run.Stoppable, p.Interrupts)
		require.NotEmpty(rt, p.Reason)
		left[turn.GetTurnId()] = got
		if got && !run.Busy {
			require.Equal(rt, []*messages.Turn{turn}, w.start())
		}
	case "remove":
		s.q = s.q.Remove(id)
		w.remove(id)
		if !slices.ContainsFunc(s.active, func(t *messages.Turn) bool { return t.GetTurnId() == id }) {
			left[id] = false
		}
	case "refuse":
		s.refuse(id)
		w.fallBack(id, s.now)
	case "inject":
		if slices.ContainsFunc(s.q.Offered, func(t *messages.Turn) bool { return t.GetTurnId() == id }) {
			left[id] = false
			w.remove(id)
		}
		s.inject(id)
	case "finish":
		for _, turn := range s.active {
			left[turn.GetTurnId()] = false
		}
		if s.finish() == nil {
			return
		}
		for _, turn := range slices.Clone(w.offered) {
			w.fallBack(turn.GetTurnId(), s.now)
		}
		require.Equal(rt, names(w.start()), names(s.active))
	}
}

func draw(rt *rapid.T, id string) (*messages.Turn, messages.QueueMode) {
	turn := &messages.Turn{
		TurnId: id, Sender: rapid.SampledFrom([]string{"", "", "", "ann"}).Draw(rt, "sender"),
		Mode:       rapid.SampledFrom([]string{"CHAT", "CHAT", "STEERING"}).Draw(rt, "mode"),
		TaskResult: rapid.IntRange(0, 9).Draw(rt, "task") == 0,
	}
	if rapid.IntRange(0, 5).Draw(rt, "resume") == 0 {
		turn.Resume = &messages.ResumeToken{Engine: "e", Token: rapid.SampledFrom([]string{"", "x"}).Draw(rt, "token")}
	}
	return turn, rapid.SampledFrom([]messages.QueueMode{
		messages.QueueCollect, messages.QueueFollowup, messages.QueueFollowup, messages.QueueFollowup, messages.QueueSteer,
		messages.QueueSteerBacklog, messages.QueueInterrupt,
	}).Draw(rt, "queue mode")
}

// requireSound: every turn that is not over is in exactly one place, merged parts have all in common, and the queue counts right.
func requireSound(rt *rapid.T, s *shell, left map[string]bool) {
	places := make(map[string]int)
	for _, turn := range slices.Concat(s.active, s.q.Turns()) {
		places[turn.GetTurnId()]++
	}
	for id, there := range left {
		want := 0
		if there {
			want = 1
		}
		require.Equal(rt, want, places[id], "turn %s in %s", id, s.state())
	}
	parts := 0
	for i, e := range s.q.Waiting {
		require.NotEmpty(rt, e.Turns)
		require.Equal(rt, parts, s.q.Before(i))
		parts += len(e.Turns)
		for _, turn := range e.Turns {
			require.Equal(rt, key(e.Lead()), key(turn))
			require.True(rt, len(e.Turns) == 1 || queue.Family(turn) == messages.QueueFollowup && !turn.GetTaskResult())
		}
	}
	require.Equal(rt, parts, s.q.Len())
	require.Equal(rt, parts+len(s.q.Offered) == 0, s.q.Empty())
	require.LessOrEqual(rt, parts, 2*s.cfg.Limit, "waiting ones and offers that fell back: both are bounded")
	require.False(rt, s.active == nil && parts > 0, "something waits, but nothing runs")
}
