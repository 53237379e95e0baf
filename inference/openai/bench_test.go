package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

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

// BenchmarkStream compares 10,000 small deltas through the bare library and through the provider, in packets of 4 KiB.
func BenchmarkStream(b *testing.B) {
	client := &http.Client{Transport: doer{contentType: "text/event-stream", body: benchBody(), piece: 4 << 10}}
	b.Run("bare", func(b *testing.B) {
		config := library.DefaultConfig("key")
		config.HTTPClient = client
		bare := library.NewClientWithConfig(config)
		b.ReportAllocs()
		for b.Loop() {
			require.Equal(b, 5*benchDeltas, benchBare(b, bare)) // " tokN"
		}
	})
	b.Run("guarded", func(b *testing.B) {
		provider, err := New(Config{HTTPClient: client, Model: "fake-1"})
		require.NoError(b, err)
		request := inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{{Role: contextpack.RoleUser, Content: "hi", Kept: true}}}}
		b.ReportAllocs()
		for b.Loop() {
			length := 0
			_, err := provider.Infer(context.Background(), request, func(event inference.Event) error {
				if delta, ok := event.(inference.Delta); ok {
					length += len(delta.Text)
				}
				return nil
			})
			require.NoError(b, err)
			require.Equal(b, 5*benchDeltas, length)
		}
	})
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
