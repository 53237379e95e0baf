package mcp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/inference/tools/mcp"
)

// serve serves p over HTTP until the test ends.
func serve(t *testing.T, p *peer) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler(p))
	t.Cleanup(func() {
		p.stop()
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func handler(p *peer) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return p.server },
		&sdk.StreamableHTTPOptions{PropagateRequestCancellation: true})
}

func TestToolsOfAServerAreOfferedUnderItsName(t *testing.T) {
	t.Parallel()
	p := newPeer(3)
	source := open(t, mcp.Server{Name: "peer", URL: serve(t, p).URL})
	ready(t, source)
	require.Equal(t, []string{
		"peer__big", "peer__echo", "peer__env", "peer__exit", "peer__files_read_601e4eb6", "peer__picture", "peer__pid", "peer__slow",
	}, names(source), "all pages, in order")
	require.Equal(t, mcp.Status{Connected: true, Tools: 8}, source.Status())

	require.Equal(t, "hello", run(t.Context(), t, source, "peer__echo", `{"text":"hello"}`, nil).Text)
	require.Equal(t, "[image image/png, 12 bytes, not shown]\na cat", run(t.Context(), t, source, "peer__picture", `{}`, nil).Text)
	big := run(t.Context(), t, source, "peer__big", `{}`, nil)
	require.True(t, big.Cut)
	require.Len(t, big.Text, tools.ResultLimit)

	invalid := run(t.Context(), t, source, "peer__echo", `{}`, nil)
	require.Equal(t, tools.ErrorInvalidArguments, invalid.Failure.Type)
	require.Equal(t, []string{"text: is required"}, invalid.Failure.ValidationErrors)

	denied := run(t.Context(), t, source, "peer__files_read_601e4eb6", `{}`, nil)
	require.Equal(t, "open [path]: denied, [redacted]", denied.Failure.Message)
	require.Contains(t, denied.Text, "/srv/secret/file", "the model is told what the tool said")
}

func TestCancelReachesTheServer(t *testing.T) {
	t.Parallel()
	p := newPeer(0)
	source := open(t, mcp.Server{Name: "peer", URL: serve(t, p).URL})
	ready(t, source)
	ctx, cancel := context.WithCancel(t.Context())
	var seen []tools.Update
	answer := run(ctx, t, source, "peer__slow", `{}`, func(u tools.Update) {
		seen = append(seen, u)
		if u.Phase == tools.PhaseUpdated {
			cancel()
		}
	})
	require.Equal(t, tools.ErrorCancelled, answer.Failure.Type)
	require.Len(t, seen, 3)
	require.Equal(t, tools.Progress{Message: "begun", Done: 1, Total: 2}, seen[1].Progress)
	<-p.ended
	require.Equal(t, "on", run(t.Context(), t, source, "peer__echo", `{"text":"on"}`, nil).Text, "the connection stays")
}

func TestChangedListIsTakenOver(t *testing.T) {
	t.Parallel()
	p := newPeer(0)
	source := open(t, mcp.Server{Name: "peer", URL: serve(t, p).URL})
	ready(t, source)
	p.server.RemoveTools("big", "env", "exit", "files.read", "picture", "pid")
	eventually(t, func() bool { return len(source.Tools()) == 2 })
	sdk.AddTool(p.server, &sdk.Tool{Name: "added"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return said("new"), nil, nil
	})
	eventually(t, func() bool { return len(source.Tools()) == 3 })
	require.Equal(t, "new", run(t.Context(), t, source, "peer__added", `{}`, nil).Text)
}

func TestServerThatComesBackIsConnectedAgain(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	p, next := newPeer(0), newPeer(0)
	t.Cleanup(p.stop)
	t.Cleanup(next.stop)
	server := &http.Server{Handler: handler(p), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	source := open(t, mcp.Server{Name: "peer", URL: "http://" + address})
	ready(t, source)
	ended := begin(t.Context(), t, source, "peer__slow", `{}`, nil)
	<-p.running
	require.NoError(t, server.Close())
	cut := <-ended
	require.Equal(t, tools.ErrorUnavailable, cut.Failure.Type)
	require.Contains(t, cut.Text, "effects are unknown")

	eventually(t, func() bool { return !source.Status().Connected })
	require.Len(t, source.Tools(), 8, "they stay offered")
	away := run(t.Context(), t, source, "peer__echo", `{"text":"a"}`, nil)
	require.Equal(t, tools.ErrorUnavailable, away.Failure.Type)
	require.Contains(t, away.Text, "the server peer is away: ")

	listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	again := &http.Server{Handler: handler(next), ReadHeaderTimeout: time.Minute}
	go func() { _ = again.Serve(listener) }()
	t.Cleanup(func() { _ = again.Close() })
	eventually(t, func() bool { return source.Status().Connected })
	require.Equal(t, "back", run(t.Context(), t, source, "peer__echo", `{"text":"back"}`, nil).Text)
}

func TestServerThatSaysTooMuchIsLeft(t *testing.T) {
	t.Parallel()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := make([]byte, 64<<10)
		for range 1 << 10 {
			if _, err := w.Write(chunk); err != nil || r.Context().Err() != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	source := open(t, mcp.Server{Name: "peer", URL: endless.URL})
	eventually(t, func() bool { return source.Status().Reason != "it is being connected" })
	require.False(t, source.Status().Connected)
}

func TestServersThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]mcp.Server{
		"no name":         {Command: "x"},
		"double":          {Name: "a__b", Command: "x"},
		"trailing":        {Name: "a_", Command: "x"},
		"long":            {Name: "abcdefghijklmnopqrstuvwxy", Command: "x"},
		"neither":         {Name: "a"},
		"both":            {Name: "a", Command: "x", URL: "http://localhost"},
		"no http":         {Name: "a", URL: "file:///x"},
		"args with a url": {Name: "a", URL: "http://localhost", Args: []string{"x"}},
	} {
		require.Error(t, server.Validate(), name)
	}
	require.NoError(t, mcp.Server{Name: "my-server_2", URL: "https://example.com/mcp"}.Validate())
}
