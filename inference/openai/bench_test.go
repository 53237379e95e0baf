package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	library "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

const benchDeltas = 10_000

func benchBody() []byte {
	var body strings.Builder
	for i := range benchDeltas {
		fmt.Fprintf(&body, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fake-1","system_fingerprint":"fp_1",`+
			`"choices":[{"index":0,"delta":{"content":" tok%d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", i%10)
	}
	body.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	return []byte(body.String())
}

// BenchmarkStream compares 10,000 small deltas through the bare library and through the provider, in packets of 4 KiB. The
// two take turns, so that what else the machine does falls on both.
func BenchmarkStream(b *testing.B) {
	client := &http.Client{Transport: doer{contentType: "text/event-stream", body: benchBody(), piece: 4 << 10}}
	config := library.DefaultConfig("key")
	config.HTTPClient = client
	bare := library.NewClientWithConfig(config)
	provider, err := New(Config{HTTPClient: client, Model: "fake-1"})
	require.NoError(b, err)
	var floor, guarded cost
	for b.Loop() {
		floor.add(func() { require.Equal(b, 5*benchDeltas, benchBare(b, bare)) }) // " tokN"
		guarded.add(func() { require.Equal(b, 5*benchDeltas, benchGuarded(b, provider)) })
	}
	n := float64(b.N) * benchDeltas
	b.ReportMetric(guarded.fastest()/floor.fastest(), "ratio")
	b.ReportMetric(floor.fastest()/benchDeltas, "bare-ns/delta")
	b.ReportMetric(guarded.fastest()/benchDeltas, "ns/delta")
	b.ReportMetric(float64(floor.allocs)/n, "bare-allocs/delta")
	b.ReportMetric(float64(guarded.allocs)/n, "allocs/delta")
}

// cost of what was done so far.
type cost struct {
	took   []time.Duration
	allocs uint64
}

// fastest in nanoseconds: what the machine does besides only ever adds.
func (c *cost) fastest() float64 { return float64(slices.Min(c.took)) }

func (c *cost) add(do func()) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	started := time.Now()
	do()
	c.took = append(c.took, time.Since(started))
	runtime.ReadMemStats(&after)
	c.allocs += after.Mallocs - before.Mallocs
}

func benchGuarded(b *testing.B, provider *Provider) int {
	b.Helper()
	request := inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{{Role: contextpack.RoleUser, Content: "hi", Kept: true}}}}
	length := 0
	_, err := provider.Infer(context.Background(), request, func(event inference.Event) error {
		if delta, ok := event.(inference.Delta); ok {
			length += len(delta.Text)
		}
		return nil
	})
	require.NoError(b, err)
	return length
}

func benchBare(b *testing.B, bare *library.Client) int {
	b.Helper()
	stream, err := bare.CreateChatCompletionStream(context.Background(), library.ChatCompletionRequest{
		Model: "fake-1", Messages: []library.ChatCompletionMessage{{Role: "user", Content: "hi"}},
		StreamOptions: &library.StreamOptions{IncludeUsage: true},
	})
	require.NoError(b, err)
	defer func() { _ = stream.Close() }()
	length := 0
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return length
		}
		require.NoError(b, err)
		if len(response.Choices) > 0 {
			length += len(response.Choices[0].Delta.Content)
		}
	}
}
