package wiring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/correx/correx-actors/actors/gateway"
	"github.com/correx/correx-actors/testkit/llmserver"
	"github.com/correx/correx-actors/wiring"
)

// BenchmarkDurableTurns runs durable turns in a closed loop over WebSockets, against a provider on localhost that streams 20
// deltas without a delay: ours, and a bare floor of the same libraries in the same run. One iteration is one turn of each.
func BenchmarkDurableTurns(b *testing.B) {
	provider, stop, err := llmserver.New(llmserver.Answer{
		Deltas: slices.Repeat([]string{"word "}, 20), Usage: &llmserver.Usage{Input: 10, Output: 20},
	}).Start()
	require.NoError(b, err)
	b.Cleanup(stop)
	for _, sessions := range []int{1, 16, 64} {
		b.Run(strconv.Itoa(sessions), func(b *testing.B) {
			floor := connect(b, sessions, startFloor(b, provider), func(int) string {
				return `{"text":"hello there, how is it going?"}`
			})
			ours := connect(b, sessions, startServer(b, provider), func(i int) string {
				return fmt.Sprintf(`{"type":"chat_input","session_id":"s%d","text":"hello there, how is it going?"}`, i)
			})
			// In turns, so that a machine that is slower for a while is slower for both.
			const rounds = 8
			var floorTime, oursTime time.Duration
			b.ResetTimer()
			for range rounds {
				floorTime += floor.run(b, max(b.N/rounds, 1))
				oursTime += ours.run(b, max(b.N/rounds, 1))
			}
			n := float64(rounds * max(b.N/rounds, 1))
			b.ReportMetric(n/floorTime.Seconds(), "floor-turns/s")
			b.ReportMetric(n/oursTime.Seconds(), "turns/s")
			b.ReportMetric(floorTime.Seconds()/oursTime.Seconds(), "ratio")
		})
	}
}

// startServer runs the whole product and gives its WebSocket URL.
func startServer(b *testing.B, provider string) string {
	b.Helper()
	cfg := wiring.DefaultConfig()
	cfg.Listen, cfg.DataDir = "127.0.0.1:0", b.TempDir()
	cfg.Provider, cfg.OpenAI.BaseURL, cfg.OpenAI.Model = "openai", wiring.URL(provider), llmserver.Model
	cfg.Log.Level = "error"
	var addr net.Addr
	app := fx.New(wiring.Module(cfg), fx.NopLogger, fx.Invoke(func(lc fx.Lifecycle, g *gateway.Gateway) {
		lc.Append(fx.StartHook(func() { addr = g.Addr() }))
	}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(b, app.Start(ctx))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b, app.Stop(ctx))
	})
	return "ws://" + addr.String() + "/v1/ws"
}

// load is a number of connections, each with a session of its own and a turn to send.
type load struct {
	ctx    context.Context //nolint:containedctx // it spans the rounds of one benchmark
	conns  []*websocket.Conn
	frames []string
}

func connect(b *testing.B, sessions int, url string, frame func(i int) string) *load {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	l := &load{ctx: ctx}
	for i := range sessions {
		conn, _, err := websocket.Dial(ctx, fmt.Sprintf("%s?session=s%d", url, i), nil) //nolint:bodyclose // the library closes the body of an upgrade
		require.NoError(b, err)
		b.Cleanup(func() { _ = conn.CloseNow() })
		l.conns, l.frames = append(l.conns, conn), append(l.frames, frame(i))
		require.NoError(b, oneTurn(ctx, conn, l.frames[i])) // warm: the session is in memory, connections are up
	}
	return l
}

// run spreads n turns over the sessions, in a closed loop each, and gives how long they took.
func (l *load) run(b *testing.B, n int) time.Duration {
	b.Helper()
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	close(left)
	begin := time.Now()
	var all sync.WaitGroup
	for i, conn := range l.conns {
		all.Go(func() {
			for range left {
				if err := oneTurn(l.ctx, conn, l.frames[i]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

func oneTurn(ctx context.Context, conn *websocket.Conn, frame string) error {
	if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
		return err
	}
	for {
		_, in, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		switch text := string(in[:min(len(in), 64)]); {
		case strings.Contains(text, `"router_response"`):
			return nil
		case strings.Contains(text, `"error"`):
			var e struct{ Code, Message string }
			_ = json.Unmarshal(in, &e)
			return fmt.Errorf("%s: %s", e.Code, e.Message)
		}
	}
}
