package coalesce_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/coalesce"
	"github.com/correx/correx-actors/core/media"
)

// due is an armed timer of the plain clock around a machine.
type due struct {
	at         time.Time
	generation uint64
}

// answerWalk drives an Answer and keeps what its twin knows: the whole text so far, and the pieces that came out, joined.
type answerWalk struct {
	cfg    coalesce.Config
	answer coalesce.Answer
	now    time.Time
	timers []due
	raw    string
	seen   string
	// oldest visible text that is not published since then; zero: none.
	waits time.Time
}

func (w *answerWalk) take(t *rapid.T, step coalesce.Step) {
	if step.Text != "" {
		require.Equal(t, len(w.seen), step.Offset, "pieces neither overlap nor leave a gap")
		w.seen += step.Text
		require.True(t, strings.HasPrefix(w.answer.Text(), w.seen))
	}
	require.Equal(t, w.seen, w.answer.Published())
	if w.seen == w.answer.Text() {
		w.waits = time.Time{}
	} else if w.waits.IsZero() {
		w.waits = w.now
	}
	if step.Timer.Generation != 0 {
		require.Positive(t, step.Timer.After)
		w.timers = append(w.timers, due{w.now.Add(step.Timer.After), step.Timer.Generation})
	}
}

// pass lets time go by, and timers fire when they are due.
func (w *answerWalk) pass(t *rapid.T, d time.Duration) {
	until := w.now.Add(d)
	for len(w.timers) > 0 && !w.timers[0].at.After(until) {
		w.now = w.timers[0].at
		generation := w.timers[0].generation
		w.timers = w.timers[1:]
		var step coalesce.Step
		w.answer, step = w.answer.Timer(w.cfg, generation, w.now)
		w.take(t, step)
	}
	w.now = until
	if !w.waits.IsZero() {
		require.Less(t, w.now.Sub(w.waits), w.cfg.Latency, "text waits longer than it may")
	}
	require.LessOrEqual(t, len(w.timers), 1, "one timer at a time")
}

// The twin of an answer is the concatenation of its pieces, without directives: whatever the cuts, the pauses and the thresholds.
func TestW28PublishedPiecesJoinedAreTheAnswer(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"word ", "é", "👩‍👩‍👧", "\n", "MEDIA:", "MED", " ", "\r\n", "x", "\xE2", "\x80\xA8", strings.Repeat("long ", 30)})
	rapid.Check(t, func(t *rapid.T) {
		w := &answerWalk{now: start, cfg: coalesce.Config{
			MinChars: rapid.SampledFrom([]int{0, 1, 20, 200}).Draw(t, "min_chars"),
			Idle:     800 * time.Millisecond, Latency: 3 * time.Second,
		}}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				var step coalesce.Step
				w.answer, step = w.answer.Flush()
				w.take(t, step)
				require.Equal(t, w.answer.Text(), w.seen)
			case 1, 2, 3:
				w.pass(t, time.Duration(rapid.IntRange(1, 2000).Draw(t, "pause"))*time.Millisecond)
			default:
				text := piece.Draw(t, "piece")
				w.raw += text
				var step coalesce.Step
				w.answer, step = w.answer.Delta(w.cfg, text, w.now)
				w.take(t, step)
			}
			require.Equal(t, w.answer.Published(), w.answer.Snapshot(1<<20))
		}
		_, final := w.answer.Final("")
		text, requests := media.Strip(w.raw)
		require.Equal(t, text, final.Text)
		require.Equal(t, requests, final.Requests)
		require.Equal(t, w.seen != "", final.Streamed)
		require.True(t, strings.HasPrefix(final.Text, w.seen), "what was published is the beginning of the final")
	})
}

// toolTwin keeps every action in a list and looks only at the newest state.
type toolTwin struct {
	order  []string
	newest map[string]coalesce.Action
}

func TestToolStatusIsTheNewestStateOfEachAction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := coalesce.DefaultConfig()
		cfg.ToolActions = rapid.SampledFrom([]int{2, 4, 50}).Draw(t, "limit")
		var tools coalesce.Tools
		twin := toolTwin{newest: make(map[string]coalesce.Action)}
		now := start
		var last *coalesce.Status
		var timers []due
		take := func(step coalesce.ToolStep) {
			if step.Timer.Generation != 0 {
				timers = append(timers, due{now.Add(step.Timer.After), step.Timer.Generation})
			}
			if step.Status == nil {
				return
			}
			require.NotEqual(t, last, step.Status, "an unchanged status is not published")
			require.LessOrEqual(t, len(step.Status.Actions), cfg.ToolActions)
			require.Equal(t, len(twin.order), len(step.Status.Actions)+step.Status.Omitted, "each is kept or counted")
			for _, a := range step.Status.Actions {
				want := twin.newest[a.ID]
				if step.Status.Final && want.Phase != coalesce.PhaseCompleted {
					want.Phase, want.Cut = coalesce.PhaseCompleted, true
				}
				require.Equal(t, want, a)
			}
			last = step.Status
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "pause")) * time.Millisecond)
			var step coalesce.ToolStep
			if len(timers) > 0 && !timers[0].at.After(now) {
				generation := timers[0].generation
				timers = timers[1:]
				tools, step = tools.Timer(cfg, generation, now)
				take(step)
			}
			a := coalesce.Action{
				ID: strconv.Itoa(rapid.IntRange(0, 7).Draw(t, "id")), Kind: coalesce.KindTool,
				Title: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "title"),
				Phase: rapid.SampledFrom([]coalesce.Phase{"started", "updated", "completed"}).Draw(t, "phase"),
			}
			a.OK = a.Phase == coalesce.PhaseCompleted && rapid.Bool().Draw(t, "ok")
			old, known := twin.newest[a.ID]
			switch {
			case !known:
				twin.order = append(twin.order, a.ID)
				twin.newest[a.ID] = a
			case cfg.ToolActions < 8 && a.Phase == coalesce.PhaseStarted:
				continue // one that made room and starts again is a new one: not of interest here
			case old.Phase != coalesce.PhaseCompleted || a.Phase != coalesce.PhaseUpdated:
				twin.newest[a.ID] = a
			}
			tools, step = tools.Action(cfg, a, now)
			take(step)
			require.LessOrEqual(t, len(timers), 1)
		}
		tools, step := tools.Final()
		take(step)
		require.Equal(t, len(twin.order) > 0, step.Status != nil, "one final, if there is anything to tell")
		_, step = tools.Final()
		require.Equal(t, coalesce.ToolStep{}, step)
	})
}
