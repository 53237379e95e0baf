package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/correx/correx-actors/inference/tools"
)

const (
	// olderProtocol is the newest version of the protocol that begins with an initialize request.
	olderProtocol = "2025-11-25"
	// maxMessage bounds one message of a server.
	maxMessage = 4 << 20
	// maxTools bounds what a server offers.
	maxTools = 256
)

// connection is one session with a server.
type connection struct {
	session *sdk.ClientSession
	// process is nil for a server that is spoken to over HTTP, and http for a command.
	process *process
	http    *boundTransport

	// ctx ends with the connection, and ends its calls.
	ctx    context.Context
	cancel context.CancelFunc
	// changed says that the tools are to be listed again, lost is closed when the session or the process has ended.
	changed chan struct{}
	lost    chan struct{}

	tokens   atomic.Uint64
	mu       sync.Mutex
	progress map[string]func(tools.Progress)
}

// connect starts the server if it is a command, and does the handshake.
func (s *Source) connect(ctx context.Context, older bool) (*connection, error) {
	c := &connection{changed: make(chan struct{}, 1), lost: make(chan struct{}), progress: make(map[string]func(tools.Progress))}
	// Detached: the connection ends by close, which needs it to say goodbye.
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	client := sdk.NewClient(&sdk.Implementation{Name: "correx-actors", Version: "1"}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler),
		// None: a server may not ask for our files, our models or our users.
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.again() },
		ProgressNotificationHandler: c.progressed,
	})
	transport, err := c.transport(s)
	if err != nil {
		c.cancel()
		return nil, err
	}
	options := &sdk.ClientSessionOptions{}
	if older {
		options.ProtocolVersion = olderProtocol
	}
	limited, cancel := context.WithTimeout(ctx, s.config.Connect)
	defer cancel()
	if c.session, err = client.Connect(limited, transport, options); err != nil {
		c.close(s.config.Grace)
		return nil, fmt.Errorf("connect: %w", err)
	}
	go c.watch()
	return c, nil
}

func (c *connection) transport(s *Source) (sdk.Transport, error) {
	if s.server.URL != "" {
		c.http = newBoundTransport()
		return &sdk.StreamableClientTransport{
			Endpoint: s.server.URL, HTTPClient: &http.Client{Transport: c.http}, MaxRetries: 1, MaxEventSize: maxMessage,
		}, nil
	}
	var err error
	if c.process, err = startProcess(s.server, s.log); err != nil {
		return nil, err
	}
	return &sdk.IOTransport{Reader: c.process.stdout, Writer: c.process.stdin, MaxLineLength: maxMessage}, nil
}

// watch closes lost when the server is gone. A process that has ended may have children that keep its streams open.
func (c *connection) watch() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.session.Wait() // Why it ended says nothing that a reader of the log could use.
	}()
	var exited <-chan struct{}
	if c.process != nil {
		exited = c.process.exited
	}
	select {
	case <-ended:
	case <-exited:
	}
	close(c.lost)
}

// again has the tools listed again, which also shows whether the server is still there.
func (c *connection) again() {
	select {
	case c.changed <- struct{}{}:
	default: // It is to be done already.
	}
}

// close ends the calls, says goodbye, and makes sure that nothing stays behind: no process, no request, no goroutine.
func (c *connection) close(grace time.Duration) {
	c.cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if c.session != nil {
			_ = c.session.Close() // The server may be gone.
		}
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C: // It does not read what it is told.
	}
	if c.process != nil {
		c.process.stop(grace)
	}
	if c.http != nil {
		c.http.close()
	}
	<-gone
}

// list gives what the server offers, all pages of it. Their number is bounded too: a page may be empty, and name itself as the next.
func (c *connection) list(ctx context.Context) ([]*sdk.Tool, error) {
	var offers []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for range maxTools {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		offers = append(offers, page.Tools...)
		if len(offers) > maxTools {
			break
		}
		if params.Cursor = page.NextCursor; params.Cursor == "" {
			return offers, nil
		}
	}
	return nil, fmt.Errorf("there are more than %d of them", maxTools)
}

// call carries out a call. It ends with ctx and with the connection.
func (c *connection) call(ctx context.Context, params *sdk.CallToolParams, report func(tools.Progress)) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	token := strconv.FormatUint(c.tokens.Add(1), 10)
	params.SetProgressToken(token)
	c.mu.Lock()
	c.progress[token] = report
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.progress, token)
	}()
	result, err := c.session.CallTool(ctx, params)
	var said *jsonrpc.Error
	if err != nil && ctx.Err() == nil && !errors.As(err, &said) {
		c.again() // The server did not answer: is it there?
	}
	return result, err
}

// progressed passes on what a server says of a call that is going on.
func (c *connection) progressed(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	c.mu.Lock()
	report := c.progress[token]
	c.mu.Unlock()
	if report != nil {
		report(tools.Progress{Message: req.Params.Message, Done: req.Params.Progress, Total: req.Params.Total})
	}
}
