package openai_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

// key is the one that the catalogue's error_secret quotes.
const key = "sk-proj-0123456789abcdefABCDEF"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		if err := serveStreams(); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serve starts a fake server and a provider for it.
func serve(t *testing.T, script ...llmserver.Answer) (*llmserver.Server, *openai.Provider) {
	t.Helper()
	server := llmserver.New(script...)
	url, stop, err := server.Start()
	require.NoError(t, err)
	provider, err := openai.New(openai.Config{BaseURL: url, APIKey: key, Model: llmserver.Model})
	require.NoError(t, err)
	t.Cleanup(func() {
		provider.Close()
		stop()
	})
	return server, provider
}

func ask() inference.Request {
	return inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{
		{Layer: contextpack.L0, Role: contextpack.RoleSystem, Content: "You are terse.", Kept: true},
		{Layer: contextpack.L1, Role: contextpack.RoleUser, Content: "hi", Kept: true},
	}}}
}

// heard is all that a call reported.
type heard struct {
	text                     strings.Builder
	connected, deltas, alive int
}

func (h *heard) report(event inference.Event) error {
	switch e := event.(type) {
	case inference.Connected:
		h.connected++
	case inference.Activity:
		h.alive++
	case inference.Delta:
		h.deltas++
		h.text.WriteString(e.Text)
	}
	return nil
}

func infer(ctx context.Context, provider inference.Provider, req inference.Request) (*heard, inference.Completion, error) {
	h := &heard{}
	completion, err := provider.Infer(ctx, req, h.report)
	return h, completion, err
}
