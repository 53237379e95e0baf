package wiring_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/wiring"
)

// patient is a provider that never answers: what is measured is admission alone.
type patient struct{}

// Name implements inference.Provider.
func (patient) Name() string { return "patient" }

// Infer implements inference.Provider.
func (patient) Infer(ctx context.Context, _ inference.Request, _ func(inference.Event) error) (inference.Completion, error) {
	<-ctx.Done()
	return inference.Completion{}, inference.Canceled(ctx, "patient")
}

// quick is a provider that answers at once.
type quick struct{ patient }

// Infer implements inference.Provider.
func (quick) Infer(_ context.Context, _ inference.Request, report func(inference.Event) error) (inference.Completion, error) {
	return inference.Completion{FinishReason: inference.FinishStop}, report(inference.Delta{Text: "it goes as it should"})
}

func startWith(b *testing.B, provider inference.Provider, change func(*wiring.Config)) (*actors.Client, func()) {
	b.Helper()
	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.DataDir, cfg.Log.Level = "127.0.0.1:0", b.TempDir(), "error"
	cfg.Drain.Timeout = time.Millisecond
	if change != nil {
		change(&cfg)
	}
	var client *actors.Client
	app := fx.New(wiring.Module(cfg), fx.NopLogger, fx.Populate(&client),
		fx.Decorate(func(inference.Provider) inference.Provider { return provider }))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(b, app.Start(ctx))
	return client, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b, app.Stop(ctx))
	}
}

// BenchmarkAdmission submits turns to 256 sessions at once, each after the acknowledgment of the one before, while a run is active in
// each; against a bare group commit of records of the same size. One iteration is 50 turns a session.
func BenchmarkAdmission(b *testing.B) {
	const sessions, turns = 256, 50
	client, stop := startWith(b, patient{}, func(c *wiring.Config) { c.Queue.Limit, c.Runs.MaxConcurrent = 1<<20, 2*sessions })
	defer stop()
	bare := startCommitter(b)
	turn := &messages.SubmitTurn{Text: "hello there, how is it going?"}
	record, err := proto.Marshal(&messages.TurnAdmitted{Turn: &messages.Turn{
		TurnId: messages.NewTurnID(), RunId: messages.RunIDOf(messages.NewTurnID()), Text: turn.GetText(), Mode: "CHAT",
		QueueMode: "collect", ContentHash: make([]byte, 32),
	}})
	require.NoError(b, err)
	var bareTime, oursTime time.Duration
	for n := range b.N {
		bareTime += all(b, sessions, turns, func(i int) error {
			bare.append(fmt.Sprintf("s%d", i), append(make([]byte, 60), record...)) // a record's header is about so long
			return nil
		})
		oursTime += all(b, sessions, turns, func(i int) error {
			_, err := client.Submit(context.Background(), messages.NewKey(messages.SessionID(fmt.Sprintf("s%d-%d", n, i))), turn)
			return err
		})
	}
	total := float64(b.N * sessions * turns)
	b.ReportMetric(total/oursTime.Seconds(), "turns/s")
	b.ReportMetric(total/bareTime.Seconds(), "bare-records/s")
	b.ReportMetric(bareTime.Seconds()/oursTime.Seconds(), "ratio")
}

// all does something a number of times in each session, one after the other, all sessions at once.
func all(b *testing.B, sessions, times int, do func(session int) error) time.Duration {
	b.Helper()
	begin := time.Now()
	var group sync.WaitGroup
	for i := range sessions {
		group.Go(func() {
			for range times {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(begin)
}

// BenchmarkHistoryHeap reports the live heap that an idle session with a default history of twelve short entries adds: with its
// answers acknowledged, and with all six still kept for redelivery. A first crowd, which is not counted, makes the tables of the
// process as large as they get.
func BenchmarkHistoryHeap(b *testing.B) {
	const sessions, turns = 2000, 6
	client, stop := startWith(b, quick{}, nil)
	defer stop()
	ctx := context.Background()
	crowd := func(name string) {
		key := func(i int) messages.Key { return messages.NewKey(messages.SessionID(fmt.Sprintf("%s-%d", name, i))) }
		all(b, sessions, turns, func(i int) error {
			_, err := client.Submit(ctx, key(i), &messages.SubmitTurn{Text: "how is it going?"})
			return err
		})
		for i := range sessions {
			require.Eventually(b, func() bool {
				state, err := client.State(ctx, key(i))
				return err == nil && len(state.GetConversationHistory()) == 2*turns
			}, time.Minute, time.Millisecond)
		}
		time.Sleep(65 * time.Second) // real time: the kept output goes after a minute
	}
	crowd("first")
	for n := range b.N {
		before := liveHeap()
		crowd(fmt.Sprintf("s%d", n))
		kept := liveHeap()
		for i := range sessions {
			key := messages.NewKey(messages.SessionID(fmt.Sprintf("s%d-%d", n, i)))
			client.Ack(key, 1<<20)
			_, err := client.State(ctx, key) // behind the acknowledgment
			require.NoError(b, err)
		}
		time.Sleep(time.Second) // real time: acknowledgments are appended
		b.ReportMetric(float64(liveHeap()-before)/sessions, "B/session")
		b.ReportMetric(float64(kept-before)/sessions, "B/session-unacknowledged")
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
