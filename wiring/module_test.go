package wiring_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/fx/fxtest"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
	"github.com/correx/correx-actors/wiring"
)

func config() wiring.Config {
	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.Journal.Driver, cfg.Provider = "127.0.0.1:0", wiring.DriverMemory, wiring.ProviderOffline
	return cfg
}

// quiet replaces what would write to standard error.
func quiet() fx.Option {
	return fx.Decorate(func() *slog.Logger { return slog.New(slog.DiscardHandler) })
}

// answeredBy lets a scripted provider answer.
func answeredBy(p *testkit.ScriptedProvider) fx.Option {
	return fx.Decorate(func() inference.Provider { return p })
}

// keptIn lets a journal outlive the app.
func keptIn(j persistence.Journal) fx.Option {
	return fx.Decorate(func() persistence.Journal { return j })
}

func TestGraphIsComplete(t *testing.T) {
	t.Parallel()
	for _, cfg := range []wiring.Config{config(), func() wiring.Config {
		c := config()
		c.Journal.Driver, c.DataDir, c.Provider, c.OpenAI.APIKey = wiring.DriverBolt, t.TempDir(), wiring.ProviderOpenAI, "k"
		return c
	}()} {
		require.NoError(t, fx.ValidateApp(wiring.Module(cfg), fx.NopLogger))
		require.NoError(t, fx.ValidateApp(wiring.Options(cfg), fx.NopLogger))
	}
}

func TestModuleRefusesABadConfiguration(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Queue.Limit = 0
	var fault *wiring.SettingError
	require.ErrorAs(t, fx.New(wiring.Module(cfg), fx.NopLogger).Err(), &fault)
	require.Equal(t, "queue.limit", fault.Key)
}

func TestAnswersInProcessAndOverTheSocket(t *testing.T) {
	t.Parallel()
	var client *actors.Client
	var edge *gateway.Gateway
	provider := testkit.NewProvider(t, testkit.Script(testkit.Stream("all ", "is well")), testkit.Script(testkit.Stream("still so")))
	app := fxtest.New(t, wiring.Module(config()), fx.NopLogger, quiet(), answeredBy(provider), fx.Populate(&client, &edge))
	app.RequireStart()
	defer app.RequireStop()

	key := messages.NewKey("s1")
	output, err := client.Subscribe(t.Context(), key, actors.SubscribeOptions{})
	require.NoError(t, err)
	defer output.Close()
	_, err = client.Submit(t.Context(), key, &messages.SubmitTurn{Text: "how is it going?"})
	require.NoError(t, err)
	require.Equal(t, "all is well", answer(t, output))

	socket := dial(t, edge.Addr())
	socket.send(&protocol.ChatInput{SessionID: "s1", Text: "and now?"})
	require.Equal(t, "still so", expect[*protocol.RouterResponse](socket).Content)
}

// answer reads up to the next answer.
func answer(t *testing.T, output *actors.Subscription) string {
	t.Helper()
	for item, err := range output.Items(t.Context()) {
		require.NoError(t, err)
		if intent, ok := item.(*messages.DeliveryIntent); ok && intent.GetRouterResponse() != nil {
			return intent.GetRouterResponse().GetContent()
		}
	}
	return ""
}

// socket is a client's connection.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
}

func dial(t *testing.T, addr net.Addr) *socket {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), "ws://"+addr.String()+"/v1/ws", nil) //nolint:bodyclose // websocket closes it
	require.NoError(t, err)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return &socket{t: t, ws: ws}
}

func (s *socket) send(f protocol.ClientFrame) {
	s.t.Helper()
	b, err := protocol.EncodeClient(f)
	require.NoError(s.t, err)
	require.NoError(s.t, s.ws.Write(s.t.Context(), websocket.MessageText, b))
}

// expect reads up to the next frame of a type.
func expect[F protocol.ServerFrame](s *socket) F {
	s.t.Helper()
	for {
		_, b, err := s.ws.Read(s.t.Context())
		require.NoError(s.t, err)
		frame, err := protocol.DecodeServer(b)
		require.NoError(s.t, err)
		if f, ok := frame.(F); ok {
			return f
		}
	}
}

// closed reads up to the end and gives its code.
func (s *socket) closed() websocket.StatusCode {
	s.t.Helper()
	for {
		if _, _, err := s.ws.Read(s.t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// hooks records the stop hooks in the order in which fx carries them out.
type hooks struct {
	mu      sync.Mutex
	stopped []string
}

func (h *hooks) LogEvent(e fxevent.Event) {
	if e, ok := e.(*fxevent.OnStopExecuting); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		name := strings.TrimPrefix(e.FunctionName, "github.com/correx/correx-actors/")
		h.stopped = append(h.stopped, strings.TrimSuffix(name, "-fm()"))
	}
}

func TestPartsStopInReverseOfTheirNeed(t *testing.T) {
	t.Parallel()
	var record hooks
	cfg := config()
	cfg.Journal.Driver, cfg.DataDir = wiring.DriverBolt, t.TempDir()
	app := fx.New(wiring.Module(cfg), quiet(), fx.WithLogger(func() fxevent.Logger { return &record }))
	require.NoError(t, app.Start(t.Context()))
	require.NoError(t, app.Stop(context.WithoutCancel(t.Context())))
	require.Equal(t, []string{
		"wiring.serve.func2()", // drains: see TestStopDrainsBeforeItCloses
		"actors/gateway.(*Gateway).Stop",
		"actors/directory.(*Directory).Stop",
		"wiring.MCP.toolServers.func2()", // calls of tools have ended with their sessions
		"actors/kernel.(*System).Shutdown",
		"wiring.newJournal.func1()",
	}, record.stopped)
}

// TestStopDrainsBeforeItCloses watches an orderly stop from outside: a running answer is finished and delivered, new turns are
// refused meanwhile, and only then the sockets close with 1001.
func TestStopDrainsBeforeItCloses(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	provider := testkit.NewProvider(t, testkit.Script(testkit.Stream("half"), testkit.WaitFor(release), testkit.Stream(" and whole")))
	var edge *gateway.Gateway
	app := fxtest.New(t, wiring.Module(config()), fx.NopLogger, quiet(), answeredBy(provider), fx.Populate(&edge))
	app.RequireStart()
	chat := dial(t, edge.Addr())
	chat.send(&protocol.ChatInput{SessionID: "s1", Text: "a long one"})
	expect[*protocol.StreamDelta](chat)

	stopped := make(chan error, 1)
	go func() { stopped <- app.Stop(context.WithoutCancel(t.Context())) }()
	require.Eventually(t, func() bool { return readiness(t, edge.Addr()) == http.StatusServiceUnavailable }, 5*time.Second, time.Millisecond)
	late := dial(t, edge.Addr())
	late.send(&protocol.ChatInput{SessionID: "s2", Text: "too late"})
	require.Equal(t, protocol.CodeDraining, expect[*protocol.Error](late).Code)
	select {
	case err := <-stopped:
		require.Failf(t, "stopped while an answer was running", "%v", err)
	default:
	}

	close(release)
	require.Equal(t, "half and whole", expect[*protocol.RouterResponse](chat).Content)
	require.Equal(t, websocket.StatusGoingAway, chat.closed())
	require.NoError(t, <-stopped)
}

func readiness(t *testing.T, addr net.Addr) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+"/readyz", http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// TestOpenWorkGoesOnAfterAStart stops a server whose drain budget ends before the answer, and starts another one over the
// same journal: the answer comes although nobody asks for the session (I7).
func TestOpenWorkGoesOnAfterAStart(t *testing.T) {
	t.Parallel()
	kept := memory.New(memory.Config{})
	cfg := config()
	cfg.Drain.Timeout = 0
	const sessions = 70 // more than one batch
	cfg.Runs.MaxConcurrent = sessions

	var client *actors.Client
	hanging := testkit.NewProvider(t).Otherwise(testkit.HangUntilCancel())
	first := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), keptIn(kept), answeredBy(hanging), fx.Populate(&client))
	first.RequireStart()
	for i := range sessions {
		_, err := client.Submit(t.Context(), session(i), &messages.SubmitTurn{Text: "are you there?"})
		require.NoError(t, err)
	}
	hanging.ExpectCalls(sessions)
	first.RequireStop()

	answering := testkit.NewProvider(t).Otherwise(testkit.Stream("yes"))
	second := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), keptIn(kept), answeredBy(answering), fx.Populate(&client))
	second.RequireStart()
	defer second.RequireStop()
	answering.ExpectCalls(sessions)
	for i := range sessions {
		require.Eventually(t, func() bool {
			state, err := client.State(t.Context(), session(i))
			return err == nil && len(state.GetConversationHistory()) == 2 && state.GetConversationHistory()[1].GetContent() == "yes"
		}, 10*time.Second, time.Millisecond)
	}
}

func session(i int) messages.Key {
	return messages.NewKey(messages.SessionID("s" + string(rune('A'+i/10)) + string(rune('0'+i%10))))
}

func TestStartErrorsNameThePart(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Journal.Driver, cfg.DataDir, cfg.Log.Level = wiring.DriverBolt, t.TempDir(), "error"
	holder, err := wiring.NewServer(cfg, quiet())
	require.NoError(t, err)
	require.NoError(t, holder.Start(t.Context()))
	defer func() { require.NoError(t, holder.Stop(context.WithoutCancel(t.Context()))) }()

	_, err = wiring.NewServer(cfg, quiet())
	require.ErrorIs(t, err, persistence.ErrLocked)
	require.ErrorContains(t, err, "start the journal: another server uses the data folder "+cfg.DataDir)

	taken := config()
	taken.Listen = holder.Addr().String()
	second, err := wiring.NewServer(taken, quiet())
	require.NoError(t, err)
	err = second.Start(t.Context())
	var part *wiring.StartError
	require.ErrorAs(t, err, &part)
	require.ErrorContains(t, err, "start the gateway: ")
	require.ErrorContains(t, err, taken.Listen)

	cfg.DataDir = filepath.Join(cfg.DataDir, "journal.db", "x")
	_, err = wiring.NewServer(cfg, quiet())
	require.ErrorContains(t, err, "start the journal: make the data folder: ")
}

func TestQueueSettingsReachTheSessions(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{
		"collect": {"started", "queued", "queued"}, "followup": {"started", "queued", "merged"},
		"steer": {"started", "steering", "steering"}, "interrupt": {"started", "queued", "queued"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg := config()
			cfg.Queue.Mode, cfg.Queue.MergeWindow, cfg.Interrupt.Grace = mode, time.Hour, time.Minute
			var client *actors.Client
			provider := testkit.NewProvider(t, testkit.Script(testkit.HangUntilCancel())).Otherwise(testkit.Stream("ok"))
			app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), answeredBy(provider), fx.Populate(&client))
			app.RequireStart()
			defer app.RequireStop()
			var got []string
			for _, text := range []string{"a", "b", "c"} {
				accepted, err := client.Submit(t.Context(), messages.NewKey("s1"), &messages.SubmitTurn{Text: text})
				require.NoError(t, err)
				got = append(got, accepted.GetDisposition())
			}
			require.Equal(t, want, got)
			_, err := client.Abort(t.Context(), messages.NewKey("s1"), &messages.Abort{Scope: string(messages.AbortSession)})
			require.NoError(t, err)
		})
	}
}
