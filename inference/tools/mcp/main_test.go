package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/inference/tools"
	"github.com/correx/correx-actors/inference/tools/mcp"
)

// childMode makes the test binary a server over its standard streams.
const childMode = "CORREX_TEST_MCP_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "":
		goleak.VerifyTestMain(m)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		serveStdio()
		select {} // Its input has ended, and it stays.
	case "deaf":
		fmt.Fprintln(os.Stderr, "I listen to nobody")
		time.Sleep(time.Hour)
	default:
		serveStdio()
	}
}

func serveStdio() {
	peer := newPeer(0)
	sdk.AddTool(peer.server, &sdk.Tool{Name: "spawn"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		// It holds on to our output, and outlives us.
		grandchild := exec.CommandContext(context.WithoutCancel(ctx), "sleep", "3600")
		grandchild.Stdout, grandchild.Stderr = os.Stdout, os.Stderr
		if err := grandchild.Start(); err != nil {
			return nil, nil, err
		}
		return said(strconv.Itoa(grandchild.Process.Pid)), nil, nil
	})
	_ = peer.server.Run(context.Background(), &sdk.StdioTransport{})
}

// peer is a server made with the same SDK.
type peer struct {
	server *sdk.Server
	// running gets a value when slow begins, ended when its context has ended.
	running, ended chan struct{}
	// stopped ends slow whatever its context says.
	stopped chan struct{}
}

func said(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

type echoed struct {
	Text string `json:"text"`
}

func newPeer(page int) *peer {
	p := &peer{
		server:  sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, &sdk.ServerOptions{PageSize: page}),
		running: make(chan struct{}, 16), ended: make(chan struct{}, 16), stopped: make(chan struct{}),
	}
	sdk.AddTool(p.server, &sdk.Tool{Name: "echo", Description: "Says it back."},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, any, error) {
			return said(in.Text), nil, nil
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "files.read"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, errors.New("open /srv/secret/file: denied, api_key=abcdef123456")
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "picture"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{
				&sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 12)}, &sdk.TextContent{Text: "a cat"},
			}}, nil, nil
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "big"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return said(strings.Repeat("x", 1<<20)), nil, nil
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "env"},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, any, error) {
			return said(os.Getenv(in.Text)), nil, nil
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "pid"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return said(strconv.Itoa(os.Getpid())), nil, nil
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "exit"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			os.Exit(1)
			return nil, nil, nil
		})
	sdk.AddTool(p.server, &sdk.Tool{Name: "slow"}, p.slow)
	return p
}

// slow reports that it began, and ends with its context.
func (p *peer) slow(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
	_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Message: "begun", Progress: 1, Total: 2,
	})
	p.running <- struct{}{}
	select {
	case <-ctx.Done():
		p.ended <- struct{}{}
	case <-p.stopped:
	}
	return nil, nil, ctx.Err()
}

// stop ends the sessions whose client could not say goodbye: a server of the older protocol keeps them for ever.
func (p *peer) stop() {
	close(p.stopped)
	for session := range p.server.Sessions() {
		_ = session.Close()
	}
}

// open opens a source that is closed with the test.
func open(t *testing.T, server mcp.Server) *mcp.Source {
	t.Helper()
	source, err := mcp.Open(server, mcp.Config{MinPause: 5 * time.Millisecond, MaxPause: 50 * time.Millisecond, Grace: 300 * time.Millisecond},
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, source.Close(ctx))
	})
	return source
}

// ready waits for the first list of tools.
func ready(t *testing.T, source *mcp.Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, source.Ready(ctx))
}

func names(source *mcp.Source) []string {
	var list []string
	for _, tool := range source.Tools() {
		list = append(list, tool.Spec().Name)
	}
	return list
}

// run carries out one call of what the source offers now.
func run(ctx context.Context, t *testing.T, source *mcp.Source, name, arguments string, observe func(tools.Update)) tools.Answer {
	t.Helper()
	return <-begin(ctx, t, source, name, arguments, observe)
}

// begin does so on another goroutine.
func begin(
	ctx context.Context, t *testing.T, source *mcp.Source, name, arguments string, observe func(tools.Update),
) <-chan tools.Answer {
	t.Helper()
	registry, err := tools.NewRegistry(slog.New(slog.DiscardHandler), nil, source)
	require.NoError(t, err)
	ended := make(chan tools.Answer, 1)
	go func() {
		out := tools.NewExecutor(tools.Config{}, slog.New(slog.DiscardHandler)).Run(ctx, registry.Set(),
			[]tools.Call{{ID: "1", Name: name, Arguments: json.RawMessage(arguments)}}, tools.Hooks{Observe: observe})
		<-out.Exited
		ended <- out.Answers[0]
	}()
	return ended
}

// eventually waits for what a server does in its own time.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 5*time.Millisecond)
}

func closeNow(t *testing.T, source *mcp.Source) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, source.Close(ctx))
}
