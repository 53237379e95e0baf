package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// server is a whole process behind a gateway.
type server struct {
	t       *testing.T
	sys     *kernel.System
	dir     *directory.Directory
	journal *testkit.FaultyJournal
	model   *testkit.ScriptedProvider
	gateway *gateway.Gateway
	http    *http.Client
	url     string
}

type settings struct {
	gateway  gateway.Config
	session  session.Deps
	journal  persistence.Journal // that the gateway sees
	listener net.Listener
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
}

// serve starts a server; it is stopped with the test.
func serve(t *testing.T, change ...func(*settings)) *server {
	t.Helper()
	s := &server{
		t: t, sys: kernel.New(kernel.Config{}), journal: testkit.NewFaultyJournal(memory.New(memory.Config{})),
		model: testkit.NewProvider(t),
	}
	s.model.Otherwise(testkit.Stream("Hello", " there"))
	set := settings{gateway: gateway.DefaultConfig(), session: s.deps(), journal: s.journal}
	set.gateway.Listen, set.gateway.Version, set.gateway.Node = "127.0.0.1:0", "v0.0.1", "n1"
	for _, c := range change {
		c(&set)
	}
	var err error
	s.dir, err = directory.Start(s.sys, set.session)
	require.NoError(t, err)
	s.gateway, err = gateway.New(set.gateway, gateway.Deps{
		Kernel: s.sys, Directory: s.dir, Journal: set.journal, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	if set.listener != nil {
		s.gateway.Serve(set.listener)
		s.url = "http://localhost"
	} else {
		require.NoError(t, s.gateway.Start(t.Context()))
		s.url = "http://" + s.gateway.Addr().String()
	}
	s.http = &http.Client{Transport: &http.Transport{DialContext: set.dial}}
	return s
}

func (s *server) deps() session.Deps {
	log := slog.New(slog.DiscardHandler)
	return session.Deps{
		Kernel: s.sys, Journal: s.journal, Owner: persistence.Owner{Node: "n1"}, Core: core.DefaultConfig(),
		Runner: runner.Deps{
			Kernel: s.sys, Router: testkit.Route(s.model),
			Counter: func(string) contextpack.TokenCounter { return contextpack.BytesCounter{} },
			Limits:  runner.DefaultLimits(), Log: log,
		},
		Output: session.OutputConfig{Keep: session.DefaultKeep, KeepBytes: session.DefaultKeepBytes},
		Idle:   session.DefaultIdle, UnknownFor: session.DefaultUnknownFor, Log: log,
	}
}

// start is serve with the stop at the end of the test.
func start(t *testing.T, change ...func(*settings)) *server {
	t.Helper()
	s := serve(t, change...)
	t.Cleanup(s.stop)
	return s
}

func (s *server) stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.http.CloseIdleConnections()
	require.NoError(s.t, s.gateway.Stop(ctx))
	require.NoError(s.t, s.dir.Stop(ctx))
	require.NoError(s.t, s.sys.Shutdown(ctx))
	require.NoError(s.t, s.journal.Close())
}

// frame is a frame as JSON says it.
type frame map[string]any

func (f frame) kind() string { return f.text("type") }

func (f frame) text(name string) string {
	s, _ := f[name].(string)
	return s
}

func (f frame) number(name string) uint64 {
	n, _ := f[name].(float64)
	return uint64(n)
}

// client is a WebSocket client.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

// dial connects and takes the hello.
func (s *server) dial() *client {
	s.t.Helper()
	c := s.connect(s.t.Context())
	hello := c.next()
	require.Equal(s.t, "hello", hello.kind())
	return c
}

func (s *server) connect(ctx context.Context) *client {
	s.t.Helper()
	ws, _, err := websocket.Dial(ctx, s.url+"/v1/ws", &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient: s.http, Subprotocols: []string{"correx.v1"},
	})
	require.NoError(s.t, err)
	ws.SetReadLimit(-1)
	c := &client{t: s.t, ws: ws}
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	return c
}

// send sends one frame; the arguments are names and values.
func (c *client) send(kind string, fields ...any) {
	c.t.Helper()
	f := frame{"type": kind}
	for i := 0; i < len(fields); i += 2 {
		f[fields[i].(string)] = fields[i+1]
	}
	data, err := json.Marshal(f)
	require.NoError(c.t, err)
	c.sendRaw(string(data))
}

func (c *client) sendRaw(data string) {
	c.t.Helper()
	require.NoError(c.t, c.ws.Write(context.Background(), websocket.MessageText, []byte(data)))
}

func (c *client) next() frame {
	c.t.Helper()
	f, err := c.read()
	require.NoError(c.t, err)
	return f
}

func (c *client) read() (frame, error) { return c.readFor(patience) }

func (c *client) readFor(d time.Duration) (frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	_, data, err := c.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	f := frame{}
	return f, json.Unmarshal(data, &f)
}

// expect takes the next frame, which must be of this type.
func (c *client) expect(kind string) frame {
	c.t.Helper()
	f := c.next()
	require.Equal(c.t, kind, f.kind(), "%v", f)
	return f
}

// until takes frames up to the first of a type.
func (c *client) until(kind string) (last frame, all []frame) {
	c.t.Helper()
	for {
		f := c.next()
		all = append(all, f)
		if f.kind() == kind {
			return f, all
		}
	}
}

// ask sends a frame and takes frames up to the answer of that id.
func (c *client) ask(kind string, fields ...any) frame {
	c.t.Helper()
	c.send(kind, append(fields, "id", "ask")...)
	for {
		if f := c.next(); f.text("id") == "ask" {
			return f
		}
	}
}

// refused is ask with a refusal as the answer; the connection must stay open.
func (c *client) refused(code, kind string, fields ...any) frame {
	c.t.Helper()
	f := c.ask(kind, fields...)
	require.Equal(c.t, "error", f.kind(), "%v", f)
	require.Equal(c.t, code, f.text("code"), f.text("message"))
	require.Equal(c.t, "pong", c.ask("ping").kind())
	return f
}

// closed reads until the server closes and gives the code.
func (c *client) closed() (websocket.StatusCode, string) {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			var closed websocket.CloseError
			require.ErrorAs(c.t, err, &closed, "want a close frame")
			return closed.Code, closed.Reason
		}
	}
}

// call makes an HTTP request and decodes its JSON answer.
func (s *server) call(method, path, body string, headers ...string) (int, frame, http.Header) {
	s.t.Helper()
	resp := s.request(s.t.Context(), method, path, body, headers...)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	f := frame{}
	if method != http.MethodHead {
		require.Equal(s.t, "application/json", resp.Header.Get("Content-Type"), "%s", data)
		require.NoError(s.t, json.Unmarshal(bytes.TrimSpace(data), &f), "%s", data)
	}
	return resp.StatusCode, f, resp.Header
}

func (s *server) request(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	return resp
}

// code gives the code of an error envelope.
func (f frame) code() string {
	e, _ := f["error"].(map[string]any)
	return frame(e).text("code")
}
