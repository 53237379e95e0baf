package wiring_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"golang.org/x/sync/errgroup"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/wiring"
)

// BenchmarkIdleSessions records 100,000 sessions with 20 events each and reports the anonymous resident memory above that of an
// empty server: while all are in memory, and after all were passivated. Run each with -benchtime=1x in a process of its own.
func BenchmarkIdleSessions(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("RssAnon is read from Linux's /proc")
	}
	const sessions, events = 100_000, 20
	for name, idle := range map[string]time.Duration{"active": time.Hour, "passivated": 2 * time.Second} {
		b.Run(name, func(b *testing.B) {
			server := startIdle(b, b.TempDir(), idle)
			defer server.stop()
			empty := rssAnon(b)
			for range b.N {
				begin := time.Now()
				eachSession(b, sessions, func(ctx context.Context, key messages.Key) error {
					batch := make([]messages.Event, events)
					for i := range batch {
						batch[i] = &messages.StageCompleted{StageId: "stage-" + strconv.Itoa(i), Summary: "went as it should"}
					}
					_, err := server.client.Record(ctx, key, nil, batch...)
					return err
				})
				b.ReportMetric(sessions/time.Since(begin).Seconds(), "sessions/s")
				for name == "passivated" {
					active, err := server.dir.Active(context.Background())
					require.NoError(b, err)
					if len(active) == 0 {
						break
					}
					time.Sleep(100 * time.Millisecond) // real time: the server has no other clock here
				}
				b.ReportMetric(float64(rssAnon(b)-empty)/(1<<20), "MiB")
			}
		})
	}
}

// BenchmarkActivation rebuilds 10,000 passivated sessions of 20 events each from the journal.
func BenchmarkActivation(b *testing.B) {
	const sessions, events = 10_000, 20
	data := b.TempDir()
	first := startIdle(b, data, time.Hour)
	eachSession(b, sessions, func(ctx context.Context, key messages.Key) error {
		batch := make([]messages.Event, events)
		for i := range batch {
			batch[i] = &messages.StageCompleted{StageId: "stage-" + strconv.Itoa(i), Summary: "went as it should"}
		}
		_, err := first.client.Record(ctx, key, nil, batch...)
		return err
	})
	first.stop()
	for b.Loop() {
		server := startIdle(b, data, time.Hour)
		begin := time.Now()
		eachSession(b, sessions, func(ctx context.Context, key messages.Key) error {
			_, err := server.client.State(ctx, key)
			return err
		})
		b.ReportMetric(sessions/time.Since(begin).Seconds(), "activations/s")
		server.stop()
	}
}

type idleServer struct {
	client *actors.Client
	dir    *directory.Directory
	stop   func()
}

func startIdle(b *testing.B, data string, idle time.Duration) idleServer {
	b.Helper()
	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.DataDir, cfg.Session.Idle = "127.0.0.1:0", data, idle
	cfg.Log.Level = "error"
	var s idleServer
	app := fx.New(wiring.Module(cfg), fx.NopLogger, fx.Populate(&s.client, &s.dir))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(b, app.Start(ctx))
	s.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b, app.Stop(ctx))
	}
	return s
}

func eachSession(b *testing.B, n int, do func(context.Context, messages.Key) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(256)
	for i := range n {
		group.Go(func() error { return do(ctx, messages.NewKey(messages.SessionID(fmt.Sprintf("session-%06d", i)))) })
	}
	require.NoError(b, group.Wait())
}

// rssAnon is the process's anonymous resident memory after a forced collection, in bytes.
func rssAnon(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	debug.FreeOSMemory() // what the first collection's finalizers and pools let go
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			require.NoError(b, err)
			return kib << 10
		}
	}
	b.Fatal("no RssAnon")
	return 0
}
