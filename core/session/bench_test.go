package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// BenchmarkTurn decides a submission and its answer in a session with many finished turns, none of them acknowledged: the
// cost must not grow with the past (B50).
func BenchmarkTurn(b *testing.B) {
	for _, finished := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("finished=%d", finished), func(b *testing.B) {
			cfg := session.DefaultConfig()
			cfg.CheckpointEvery, cfg.MaxFinals = 1<<30, 1<<30
			s, now := session.New(messages.NewKey("s")), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			s = session.Decide(s, cfg, session.Recover{Epoch: 1}, now).Next
			for i := range finished {
				s = turn(s, cfg, fmt.Sprintf("turn_%d", i), now)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				turn(s, cfg, "turn_x", now)
			}
		})
	}
}

// BenchmarkTurnWithCheckpoints is what a turn costs in the long run, checkpoints and their finals included.
func BenchmarkTurnWithCheckpoints(b *testing.B) {
	cfg, now := session.DefaultConfig(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := session.Decide(session.New(messages.NewKey("s")), cfg, session.Recover{Epoch: 1}, now).Next
	b.ReportAllocs()
	for b.Loop() {
		s = turn(s, cfg, "turn_x", now)
	}
}

func turn(s session.State, cfg session.Config, id string, now time.Time) session.State {
	s = decideNow(s, cfg, session.Submit{Request: &messages.SubmitTurn{Text: "what is the stage?"}, TurnID: id}, now).Next
	return session.Decide(s, cfg, session.RunFinished{
		RunID: s.Ledger.Active.ID, Attempt: 1, Outcome: messages.OutcomeCompleted, Content: "build",
	}, now).Next
}

// BenchmarkDelta decides one streamed piece of a long answer.
func BenchmarkDelta(b *testing.B) {
	cfg, now := session.DefaultConfig(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := session.Decide(session.New(messages.NewKey("s")), cfg, session.Recover{Epoch: 1}, now).Next
	s = decideNow(s, cfg, session.Submit{Request: &messages.SubmitTurn{Text: "hello"}, TurnID: "turn_1"}, now).Next
	b.ReportAllocs()
	for b.Loop() {
		s = session.Decide(s, cfg, session.RunStreamed{RunID: "run_1", Attempt: 1, Text: "a few words "}, now).Next
	}
}

// BenchmarkReduce folds stored records, decoding included; run it with -benchtime=1000000x for a log of a million events.
func BenchmarkReduce(b *testing.B) {
	kit := testkit.NewSessionKit(b)
	kit.Run(session.Record{Events: []messages.Event{
		&messages.WorkflowStarted{WorkflowId: "w"}, &messages.StageStarted{StageId: "build"},
		&messages.StageCompleted{StageId: "build", Summary: "built 14 targets", NextStageId: "test"},
		&messages.StageFailed{StageId: "test", Reason: "3 tests are red"},
	}})
	for range 50 {
		kit.Submit("what is the stage?")
		kit.Answer("build")
		kit.Run(session.Ack{Seq: kit.State().Live.NextSeq})
	}
	for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
		b.Run(stream.String(), func(b *testing.B) {
			records, cfg := kit.Stored(stream), kit.Config()
			s := session.New(kit.State().Key)
			var err error
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				rec := records[i%len(records)]
				rec.Seq = uint64(i) + 1 //nolint:gosec // a counter
				if s, err = session.Reduce(s, cfg, rec); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// decideNow decides with a free run slot, as a process with little to do does.
func decideNow(s session.State, cfg session.Config, cmd session.Command, now time.Time) session.Decision {
	return session.DecideWith(s, cfg, cmd, now, func(session.AskSlot) bool { return true })
}
