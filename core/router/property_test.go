package router

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/messages"
)

func drawEvent(t *rapid.T) messages.Event {
	stage := rapid.SampledFrom([]string{"plan", "build", "test", "deploy", ""})
	text := rapid.SampledFrom([]string{"", " ", "fine", "ünïcödé"})
	switch rapid.IntRange(0, 11).Draw(t, "event") {
	case 0:
		return &messages.WorkflowStarted{}
	case 1:
		return &messages.WorkflowCompleted{}
	case 2:
		return &messages.WorkflowFailed{}
	case 3:
		return &messages.OrchestrationPaused{}
	case 4:
		return &messages.OrchestrationResumed{}
	case 5:
		return &messages.StageStarted{StageId: stage.Draw(t, "stage")}
	case 6:
		return &messages.StageFailed{StageId: stage.Draw(t, "stage"), Reason: text.Draw(t, "reason")}
	case 7:
		return &messages.StageCancelled{StageId: stage.Draw(t, "stage"), Reason: text.Draw(t, "reason")}
	case 8:
		note := &messages.SteeringNoteAdded{Content: text.Draw(t, "note"), TurnId: "turn_1"}
		if id := stage.Draw(t, "stage"); id != "" {
			note.StageId = &id
		}
		if rapid.Bool().Draw(t, "dated") {
			note.CreatedAt = timestamppb.New(minute(99))
		}
		return note
	case 9:
		return &messages.ForeignEvent{Type: "theirs", Json: []byte(`{"type":"theirs"}`)}
	case 10:
		return &messages.UnknownEvent{Type: "stage_completed", Version: 7, Payload: []byte("?")}
	}
	return &messages.StageCompleted{StageId: stage.Draw(t, "stage"), Summary: text.Draw(t, "summary"), NextStageId: stage.Draw(t, "next")}
}

func fold(s State, events []messages.Event) State {
	for _, e := range events {
		s = reduceOne(s, e)
	}
	return s
}

// twin is the reducer in its plainest form: slices that are copied whole.
type twin struct {
	status WorkflowStatus
	stage  string
	ended  []string
	notes  []string
}

func (w *twin) fold(events []messages.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case *messages.WorkflowStarted, *messages.OrchestrationResumed:
			w.status = StatusRunning
		case *messages.WorkflowCompleted:
			w.status = StatusCompleted
		case *messages.WorkflowFailed:
			w.status = StatusFailed
		case *messages.OrchestrationPaused:
			w.status = StatusPaused
		case *messages.StageStarted:
			w.stage = e.GetStageId()
		case *messages.StageCompleted:
			w.ended = append(w.ended, e.GetStageId()+" SUCCESS")
			w.stage = e.GetStageId()
			if e.GetNextStageId() != "" {
				w.stage = e.GetNextStageId()
			}
		case *messages.StageFailed:
			w.ended = append(w.ended, e.GetStageId()+" FAILURE")
		case *messages.StageCancelled:
			w.ended = append(w.ended, e.GetStageId()+" CANCELLED")
		case *messages.SteeringNoteAdded:
			stage := e.GetStageId()
			if stage == "" {
				stage = w.stage
			}
			w.notes = append(w.notes, stage+": "+e.GetContent())
		case *messages.ForeignEvent, *messages.UnknownEvent:
		}
	}
}

func (w *twin) requireSame(t require.TestingT, s State) {
	require.Equal(t, w.status, s.WorkflowStatus())
	require.Equal(t, w.stage, s.CurrentStageID)
	var ended, notes []string
	for _, e := range s.L2.All() {
		require.NotEmpty(t, e.Summary)
		ended = append(ended, e.StageID+" "+string(e.Outcome))
	}
	for _, n := range s.Notes.All() {
		notes = append(notes, n.StageID+": "+n.Content)
	}
	require.Equal(t, w.ended, ended)
	require.Equal(t, w.notes, notes)
}

// I1: replay(a+b) = replay(b, from replay(a)), from any prefix, and forks of one state do not disturb each other or it.
func TestReplayFromAnyPrefixIsTheSameAndForksAreApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 60)
		a, b, c := events.Draw(t, "a"), events.Draw(t, "b"), events.Draw(t, "c")
		base := fold(State{}, a)
		baseBefore, baseText := base, printState(base)

		left, right := base, base
		for i := range max(len(b), len(c)) {
			if i < len(b) {
				left = reduceOne(left, b[i])
			}
			if i < len(c) {
				right = reduceOne(right, c[i])
			}
		}

		require.True(t, left.Equal(fold(State{}, slices.Concat(a, b))))
		require.True(t, right.Equal(fold(State{}, slices.Concat(a, c))))
		require.Equal(t, baseBefore, base)
		require.Equal(t, baseText, printState(base))
		for _, branch := range [][]messages.Event{b, c} {
			w := twin{status: StatusIdle}
			w.fold(a)
			w.fold(branch)
			w.requireSame(t, fold(base, branch))
		}
	})
}

// I1: what the router has no rule for changes the sequence only, wherever it stands in the log.
func TestUnknownEventsChangeNothingButTheSequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := fold(State{}, rapid.SliceOfN(rapid.Custom(drawEvent), 0, 30).Draw(t, "log"))
		e := rapid.SampledFrom([]messages.Event{
			&messages.UnknownEvent{Type: "workflow_failed", Version: 2}, &messages.ForeignEvent{Type: "stage_started"},
		}).Draw(t, "event")
		after := reduceOne(before, e)
		require.Equal(t, before.EventSequence+1, after.EventSequence)
		after.EventSequence = before.EventSequence
		require.Equal(t, before, after, "not even a list was rebuilt")
	})
}

// No steering note is ever lost: each is in Notes once, and among the notes of exactly its own stage, or of all stages if it has none.
func TestNotesAreNeverLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 80).Draw(t, "log")
		state := fold(State{}, log)
		var written []uint64
		for i, e := range log {
			if _, ok := e.(*messages.SteeringNoteAdded); ok {
				written = append(written, uint64(i+1)) //nolint:gosec // small
			}
		}
		var kept []uint64
		for _, n := range state.Notes.All() {
			kept = append(kept, n.Sequence)
			require.Contains(t, state.NotesFor(n.StageID), n)
			require.Equal(t, n.StageID == "", slices.Contains(state.NotesFor("no such stage"), n))
		}
		require.Equal(t, written, kept)
		for _, stage := range []string{"plan", "build", "test", "deploy", ""} {
			require.True(t, slices.IsSortedFunc(state.NotesFor(stage), func(a, b SteeringNote) int {
				return int(a.Sequence) - int(b.Sequence) //nolint:gosec // small
			}))
		}
	})
}

// A List is a slice that only grows, read from any place.
func TestListIsASliceThatOnlyGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l List[int]
		n := rapid.IntRange(0, 300).Draw(t, "length")
		want := make([]int, n)
		for i := range want {
			want[i] = i
			l = l.with(i)
		}
		require.Equal(t, n, l.Len())
		require.Equal(t, want, l.All())
		after := rapid.IntRange(-2, n+2).Draw(t, "after")
		limit := rapid.IntRange(-2, n+2).Draw(t, "limit")
		from := min(max(after, 0), n)
		require.Equal(t, want[from:min(from+max(limit, 0), n)], l.Page(after, limit))
		require.Equal(t, want[n-min(max(limit, 0), n):], l.Newest(limit))
		backward := slices.Collect(l.Backward())
		slices.Reverse(backward)
		require.Equal(t, want, append([]int{}, backward...))
		for first := range l.Backward() {
			require.Equal(t, n-1, first)
			break
		}
	})
}

func TestGoingToAPlaceOfALongListIsQuick(t *testing.T) {
	t.Parallel()
	var l List[int]
	const length = 1 << 16
	for i := range length {
		l = l.with(i)
	}
	for _, number := range []int{1, 2, length / 3, length - 1, length} {
		steps := 0
		for n := l.newest; n.number > number; steps++ {
			if n.jump.len() >= number {
				n = n.jump
			} else {
				n = n.older
			}
		}
		require.LessOrEqual(t, steps, 3*16, "to entry %d", number)
	}
}
