package router

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/correx/correx-actors/messages"
)

func reduceOne(s State, e messages.Event) State {
	return Reduce(s, e, s.EventSequence+1, minute(s.EventSequence+1), messages.NewKey("s1"))
}

// L2 keeps at most 2,000 characters, cut between two runes; the event keeps all.
func TestLongSummaryIsCutOnARuneBorder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"just fits":        {strings.Repeat("a", MaxSummary), strings.Repeat("a", MaxSummary)},
		"one too long":     {strings.Repeat("a", MaxSummary) + "b", strings.Repeat("a", MaxSummary)},
		"wide just fits":   {strings.Repeat("語", MaxSummary), strings.Repeat("語", MaxSummary)},
		"wide one too far": {strings.Repeat("語", MaxSummary+1), strings.Repeat("語", MaxSummary)},
		"mixed":            {"x" + strings.Repeat("🚀", MaxSummary), "x" + strings.Repeat("🚀", MaxSummary-1)},
		"no UTF-8":         {strings.Repeat("\xff", MaxSummary+5), strings.Repeat("\xff", MaxSummary)},
	} {
		for _, e := range []messages.Event{
			&messages.StageCompleted{StageId: "s", Summary: c.text},
			&messages.StageFailed{StageId: "s", Reason: c.text},
			&messages.StageCancelled{StageId: "s", Reason: c.text},
		} {
			state := reduceOne(State{}, e)
			require.Equal(t, c.want, state.L2.Newest(1)[0].Summary, "%s: %T", name, e)
		}
	}
}

func TestSentenceOfALongStageIDIsCutToo(t *testing.T) {
	t.Parallel()
	state := reduceOne(State{}, &messages.StageFailed{StageId: strings.Repeat("s", 9000)})
	require.Equal(t, MaxSummary, utf8.RuneCountInString(state.L2.Newest(1)[0].Summary))
	require.Empty(t, state.CurrentStageID)
	require.Len(t, state.L2.Newest(1)[0].StageID, 9000, "an id is never cut: it would be another one")
}

// I1, I13: the reducer refuses nothing, not even what no journal can hold.
func TestReduceIsTotal(t *testing.T) {
	t.Parallel()
	before := reduceOne(State{}, &messages.WorkflowStarted{})
	for _, e := range []messages.Event{
		nil, (*messages.UnknownEvent)(nil), (*messages.ForeignEvent)(nil), &messages.UnknownEvent{}, &messages.ForeignEvent{},
	} {
		after := reduceOne(before, e)
		after.EventSequence = before.EventSequence
		require.Equal(t, before, after, "%T", e)
	}
	for _, e := range []messages.Event{
		(*messages.WorkflowStarted)(nil), (*messages.WorkflowCompleted)(nil), (*messages.WorkflowFailed)(nil),
		(*messages.OrchestrationPaused)(nil), (*messages.OrchestrationResumed)(nil), (*messages.StageStarted)(nil),
		(*messages.StageCompleted)(nil), (*messages.StageFailed)(nil), (*messages.StageCancelled)(nil),
		(*messages.SteeringNoteAdded)(nil),
		&messages.SteeringNoteAdded{CreatedAt: &timestamppb.Timestamp{Seconds: -1 << 63, Nanos: 1 << 30}},
	} {
		require.Equal(t, uint64(2), reduceOne(before, e).EventSequence, "%T", e)
	}
	require.Equal(t, "A stage failed.", reduceOne(before, &messages.StageFailed{}).L2.Newest(1)[0].Summary)
}

func TestReduceRecordsGivesBackTheErrorOfADamagedPayload(t *testing.T) {
	t.Parallel()
	state := reduceOne(State{}, &messages.WorkflowStarted{})
	damaged := messages.Record{Seq: 2, Type: "stage_started", Version: 1, Payload: []byte{0xff}}
	after, err := ReduceRecords(messages.NewKey("s1"))(state, damaged)
	require.Error(t, err)
	require.Equal(t, state, after)
}

func TestEqualComparesContent(t *testing.T) {
	t.Parallel()
	build := func(zone *time.Location, events ...messages.Event) State {
		var s State
		for i, e := range events {
			seq := uint64(i + 1) //nolint:gosec // small
			s = Reduce(s, e, seq, minute(seq).In(zone), messages.NewKey("s1"))
		}
		return s
	}
	stage := &messages.StageCompleted{StageId: "a", Summary: "x"}
	note := &messages.SteeringNoteAdded{Content: "n"}
	one := build(time.UTC, stage, note)
	require.True(t, one.Equal(build(time.FixedZone("", 3600), stage, note)), "the same instants")
	require.True(t, State{}.Equal(State{status: StatusIdle}))
	for name, other := range map[string]State{
		"shorter":       build(time.UTC, stage),
		"other summary": build(time.UTC, &messages.StageCompleted{StageId: "a", Summary: "y"}, note),
		"other note":    build(time.UTC, stage, &messages.SteeringNoteAdded{Content: "m"}),
		"other outcome": build(time.UTC, &messages.StageFailed{StageId: "a", Reason: "x"}, note),
	} {
		require.False(t, one.Equal(other), name)
	}
	later := one
	later.L2 = List[L2Entry]{}.with(L2Entry{StageID: "a", Summary: "x", Outcome: OutcomeSuccess, Timestamp: minute(9)})
	require.False(t, one.Equal(later), "other time")
}

func TestEnumsAreClosed(t *testing.T) {
	t.Parallel()
	for _, status := range []WorkflowStatus{StatusIdle, StatusRunning, StatusPaused, StatusCompleted, StatusFailed} {
		require.True(t, status.Valid())
	}
	for _, outcome := range []StageOutcome{OutcomeSuccess, OutcomeFailure, OutcomeCancelled} {
		require.True(t, outcome.Valid())
		require.NotEqual(t, "A stage ended.", OutcomeSentence("", outcome))
	}
	require.False(t, WorkflowStatus("").Valid())
	require.False(t, StageOutcome("success").Valid())
	require.Equal(t, "A stage ended.", OutcomeSentence("", "?"))
}
