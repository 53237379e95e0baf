package router

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
)

// Each file of testdata/reducer shows one rule of the reducer, each of testdata/projection one of the projection: commands
// with events as JSON lines, and the state that they lead to.
func TestReducerRules(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/reducer", runScenario)
}

// The projection rebuilds a state from a log; see TestReducerRules.
func TestProjectionRules(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/projection", runScenario)
}

func runScenario(t *testing.T, path string) {
	t.Helper()
	s := scenario{key: messages.NewKey("s1")}
	datadriven.RunTest(t, path, s.run)
}

// scenario is a session's log and the state that it was folded into.
type scenario struct {
	key   messages.Key
	log   []messages.Record
	state State
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "reduce":
		return s.reduce(t, d.Input)
	case "state":
		return printState(s.state)
	case "replay":
		return s.replay(t, d)
	case "notes":
		var stage string
		d.MaybeScanArgs(t, "stage", &stage)
		return printNotes(s.state.NotesFor(stage))
	case "newest":
		var n int
		d.ScanArgs(t, "n", &n)
		return printEntries(s.state.L2.Newest(n))
	case "page":
		var after, limit int
		d.ScanArgs(t, "after", &after)
		d.ScanArgs(t, "limit", &limit)
		return printEntries(s.state.L2.Page(after, limit))
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return ""
}

// reduce records the events of the input, one JSON object a line, a minute apart, and folds them.
func (s *scenario) reduce(t *testing.T, input string) string {
	t.Helper()
	for line := range strings.Lines(input) {
		e, err := messages.EventFromJSON([]byte(line))
		require.NoError(t, err, line)
		encoded, err := messages.EncodeEvent(e)
		require.NoError(t, err, line)
		r := messages.Record{
			Stream: messages.StreamEvents, Seq: s.state.EventSequence + 1, Type: encoded.GetType(),
			Version: encoded.GetVersion(), Payload: encoded.GetPayload(),
		}
		r.Time = minute(r.Seq)
		s.log = append(s.log, r)
		s.state = Reduce(s.state, e, r.Seq, r.Time, s.key)
	}
	return printState(s.state)
}

// replay folds the log, or its first records, as recovery does and says whether that gave the same as folding each event when it came.
func (s *scenario) replay(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	first := len(s.log)
	d.MaybeScanArgs(t, "first", &first)
	state := foldRecords(t, s.key, State{}, s.log[:first])
	text := printState(state)
	if first == len(s.log) {
		require.True(t, state.Equal(s.state), text)
		text += "the same as before\n"
	}
	return text
}

func foldRecords(t require.TestingT, key messages.Key, state State, log []messages.Record) State {
	reduce := ReduceRecords(key)
	for _, r := range log {
		next, err := reduce(state, r)
		require.NoError(t, err)
		state = next
	}
	return state
}

// minute is the time of the event with a sequence.
func minute(seq uint64) time.Time {
	return time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Minute) //nolint:gosec // small
}

func printState(s State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "session=%q status=%s stage=%q sequence=%d\n", s.SessionID, s.WorkflowStatus(), s.CurrentStageID, s.EventSequence)
	if s.L2.Len() > 0 {
		b.WriteString("L2:\n" + printEntries(s.L2.All()))
	}
	if s.Notes.Len() > 0 {
		b.WriteString("notes:\n" + printNotes(s.Notes.All()))
	}
	return b.String()
}

func printEntries(entries []L2Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "  %s %s %q at %s\n", e.StageID, e.Outcome, e.Summary, e.Timestamp.Format(time.RFC3339Nano))
	}
	return b.String()
}

func printNotes(notes []SteeringNote) string {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&b, "  #%d %q for stage %q of %s in %s at %s\n",
			n.Sequence, n.Content, n.StageID, n.TurnID, n.SessionID, n.CreatedAt.Format(time.RFC3339Nano))
	}
	return b.String()
}
