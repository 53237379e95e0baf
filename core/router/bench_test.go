package router

import (
	"testing"

	"github.com/correx/correx-actors/messages"
)

// The session's start waits for this: the whole log, folded (I1: no snapshot).
func BenchmarkReduceMillionMixedEvents(b *testing.B) {
	id := "deploy"
	mixed := []messages.Event{
		&messages.WorkflowStarted{}, &messages.StageStarted{StageId: "build"},
		&messages.StageCompleted{StageId: "build", Summary: "built 12 images in 3 minutes", NextStageId: "deploy"},
		&messages.ForeignEvent{Type: "tool_output"}, &messages.StageFailed{StageId: "deploy", Reason: "host 3 is down"},
		&messages.SteeringNoteAdded{Content: "try host 4", StageId: &id}, &messages.OrchestrationPaused{},
		&messages.OrchestrationResumed{}, &messages.StageStarted{StageId: "deploy"},
		&messages.StageCompleted{StageId: "deploy", Summary: "done"}, &messages.WorkflowCompleted{},
		&messages.UnknownEvent{Type: "later"},
	}
	const events = 1_000_000
	at, key := minute(1), messages.NewKey("s1")
	b.ReportAllocs()
	for b.Loop() {
		var s State
		for i := range uint64(events) {
			s = Reduce(s, mixed[i%uint64(len(mixed))], i+1, at, key)
		}
		if s.EventSequence != events {
			b.Fatal("not all were folded")
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkReduceRecords(b *testing.B) {
	e, err := messages.EncodeEvent(&messages.StageCompleted{StageId: "build", Summary: "built 12 images", NextStageId: "deploy"})
	if err != nil {
		b.Fatal(err)
	}
	r := messages.Record{Seq: 1, Type: e.GetType(), Version: e.GetVersion(), Payload: e.GetPayload(), Time: minute(1)}
	reduce := ReduceRecords(messages.NewKey("s1"))
	b.ReportAllocs()
	var s State
	for b.Loop() {
		s, _ = reduce(s, r)
	}
}

func BenchmarkNewest50OfManyStages(b *testing.B) {
	s := State{}
	for range 1_000_000 {
		s = reduceOne(s, &messages.StageCompleted{StageId: "build", Summary: "done"})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.L2.Newest(50)
	}
}

func BenchmarkFirstPageOfManyStages(b *testing.B) {
	s := State{}
	for range 1_000_000 {
		s = reduceOne(s, &messages.StageCompleted{StageId: "build", Summary: "done"})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.L2.Page(0, 50)
	}
}
