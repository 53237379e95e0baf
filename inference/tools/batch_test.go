package tools

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBatchRules runs the scenario files. Their commands: batch (a new one; its arguments are the names of the calls), refuse,
// next (until it waits, asks or is done), recorded, passed, finished, cancel, and answers.
func TestBatchRules(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/batch", func(t *testing.T, path string) {
		var b *batch
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd == "batch" {
				b = batchOf(t, d)
				return ""
			}
			return perform(t, b, d)
		})
	})
}

func batchOf(t *testing.T, d *datadriven.TestData) *batch {
	t.Helper()
	parallel := 8
	d.MaybeScanArgs(t, "parallel", &parallel)
	if d.HasArg("sequential") {
		parallel = 1
	}
	var calls []Call
	for _, id := range strings.Fields(d.Input) {
		calls = append(calls, Call{ID: id, Name: "tool"})
	}
	return newBatch(calls, parallel)
}

func perform(t *testing.T, b *batch, d *datadriven.TestData) string {
	t.Helper()
	at := func() int {
		for i, call := range b.calls {
			if call.ID == d.CmdArgs[0].Key {
				return i
			}
		}
		d.Fatalf(t, "no such call")
		return 0
	}
	switch d.Cmd {
	case "next":
		return moves(b)
	case "refuse":
		b.refuse(at(), failed(b.calls[at()], &Failure{Type: ErrorUnknownTool}))
	case "recorded":
		b.recorded(!d.HasArg("not"))
	case "passed":
		b.passed(d.HasArg("spoke"))
	case "finished":
		if !b.finished(at(), answered(b.calls[at()], Result{Text: "result of " + b.calls[at()].ID})) {
			return "late"
		}
	case "cancel":
		b.cancel()
	case "answers":
		var lines []string
		for i, a := range b.answers {
			require.Equal(t, b.calls[i], a.Call)
			lines = append(lines, a.Call.ID+": "+a.Text)
		}
		return strings.Join(lines, "\n")
	default:
		d.Fatalf(t, "unknown command")
	}
	return ""
}

// moves asks for what is next until that needs an answer from outside.
func moves(b *batch) string {
	var told []string
	for {
		switch m := b.next().(type) {
		case launch:
			var ids []string
			for _, i := range m.calls {
				ids = append(ids, b.calls[i].ID)
			}
			return strings.Join(append(told, "record "+strings.Join(ids, " ")), "\n")
		case start:
			told = append(told, "start "+b.calls[m.call].ID)
		case boundary:
			return strings.Join(append(told, "boundary"), "\n")
		case wait:
			return strings.Join(append(told, "wait"), "\n")
		case done:
			return strings.Join(append(told, "done"), "\n")
		}
	}
}

// walk is a batch in the hands of a random environment.
type walk struct {
	b       *batch
	running []int
	started map[int]bool
	// over: the user spoke or the run was cancelled, or the start was not recorded.
	over, recorded bool
}

func TestBatchKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "calls")
		var calls []Call
		for i := range n {
			// Two calls may have one id: the pairing is by place.
			calls = append(calls, Call{ID: strconv.Itoa(i / 2), Name: fmt.Sprintf("tool%d", i)})
		}
		w := &walk{b: newBatch(calls, rapid.IntRange(1, 4).Draw(t, "parallel")), started: make(map[int]bool)}
		for i := range n {
			if rapid.IntRange(0, 5).Draw(t, "refused") == 0 {
				w.b.refuse(i, failed(calls[i], &Failure{Type: ErrorUnknownTool}))
			}
		}
		for steps := 0; w.step(t); steps++ {
			require.Less(t, steps, 1000, "the batch does not end")
		}
		require.Len(t, w.b.answers, n)
		for i, a := range w.b.answers {
			require.Equal(t, calls[i], a.Call, "answer %d is of another call", i)
			require.NotEmpty(t, a.Text)
			require.Equal(t, !w.started[i], a.Failure != nil, "a call that started has its own answer, another one says why not")
		}
	})
}

func (w *walk) step(t *rapid.T) bool {
	if !w.over && rapid.IntRange(0, 9).Draw(t, "cancel") == 0 {
		w.b.cancel()
		w.over = true
	}
	switch m := w.b.next().(type) {
	case launch:
		require.False(t, w.over || w.recorded)
		w.recorded = rapid.IntRange(0, 5).Draw(t, "recorded") > 0
		w.over = !w.recorded
		w.b.recorded(w.recorded)
	case start:
		require.True(t, w.recorded, "started before it was recorded")
		require.False(t, w.over, "started after the user spoke, or a cancel")
		require.False(t, w.started[m.call], "started twice")
		w.started[m.call] = true
		w.running = append(w.running, m.call)
		require.LessOrEqual(t, len(w.running), w.b.parallel)
	case boundary:
		require.Empty(t, w.running, "a boundary while calls run")
		require.False(t, w.over, "a boundary after the end")
		w.over = rapid.IntRange(0, 3).Draw(t, "spoke") == 0
		w.b.passed(w.over)
	case wait:
		require.NotEmpty(t, w.running, "waits for nothing")
		at := rapid.IntRange(0, len(w.running)-1).Draw(t, "ends")
		i := w.running[at]
		w.running = append(w.running[:at], w.running[at+1:]...)
		require.True(t, w.b.finished(i, answered(w.b.calls[i], Result{Text: "result"})))
		require.False(t, w.b.finished(i, answered(w.b.calls[i], Result{Text: "late"})))
	case done:
		require.Empty(t, w.running)
		return false
	}
	return true
}
