package openai_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
)

const (
	// serveVariable makes the test binary a server of streams that never end, so that its memory is not the client's.
	serveVariable = "CORREX_TEST_SERVE_STREAMS"

	concurrentStreams = 1000
	streamDeltas      = 10
	bytesPerStream    = 64 << 10
)

// serveStreams serves until its standard input ends; its first line of output is the base URL.
func serveStreams() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // a test's server
			w.Header().Set("Content-Type", "text/event-stream")
			for range streamDeltas {
				_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
	}()
	if _, err := fmt.Fprintf(os.Stdout, "http://%s/v1\n", listener.Addr()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestThousandStreamsFitTheirMemory holds so many streams open over real sockets and looks at what each costs: heap and
// stacks, of transport, library and guard together.
func TestThousandStreamsFitTheirMemory(t *testing.T) { //nolint:paralleltest // what others allocate would count
	if testing.Short() {
		t.Skip("opens a thousand sockets")
	}
	perStream := measureStreams(t, streamServer(t))
	t.Logf("%d bytes a stream", perStream)
	limit := bytesPerStream
	if raceDetector() {
		limit *= 2 // its stacks are larger
	}
	require.Less(t, perStream, limit)
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// BenchmarkConcurrentStreams reports the same.
func BenchmarkConcurrentStreams(b *testing.B) {
	url := streamServer(b)
	perStream := 0
	for b.Loop() {
		perStream = measureStreams(b, url)
	}
	b.ReportMetric(float64(perStream), "B/stream")
}

func measureStreams(tb testing.TB, url string) int {
	tb.Helper()
	provider, err := openai.New(openai.Config{BaseURL: url, Model: "m"})
	require.NoError(tb, err)
	defer provider.Close()
	before := inUse()
	ctx, cancel := context.WithCancelCause(tb.Context())
	var group errgroup.Group
	arrived := make(chan struct{}, concurrentStreams)
	for range concurrentStreams {
		group.Go(func() error {
			deltas := 0
			_, err := provider.Infer(ctx, ask(), func(event inference.Event) error {
				if _, ok := event.(inference.Delta); ok {
					if deltas++; deltas == streamDeltas {
						arrived <- struct{}{}
					}
				}
				return nil
			})
			if !errors.Is(err, errInterrupted) {
				return fmt.Errorf("the stream ended: %w", err)
			}
			return nil
		})
	}
	for range concurrentStreams {
		select {
		case <-arrived:
		case <-tb.Context().Done():
			require.Fail(tb, "the streams did not come")
		}
	}
	used := inUse() - before
	cancel(errInterrupted)
	require.NoError(tb, group.Wait())
	return used / concurrentStreams
}

// inUse is the memory in heap and stacks after a collection.
func inUse() int {
	var stats runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // far below the largest int
}

func streamServer(tb testing.TB) (url string) {
	tb.Helper()
	child := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0]) //nolint:gosec // this binary
	child.Env = append(os.Environ(), serveVariable+"=1")
	stdin, err := child.StdinPipe()
	require.NoError(tb, err)
	stdout, err := child.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, child.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, stdin.Close())
		require.NoError(tb, child.Wait())
	})
	return strings.TrimSpace(line)
}
