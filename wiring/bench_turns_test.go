package wiring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
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
// deltas without a delay: ours, and a bare floor of the same libraries in the same run. One iteration is one turn.
func BenchmarkDurableTurns(b *testing.B) {
	provider, stop, err := llmserver.New(llmserver.Answer{
		Deltas: slices.Repeat([]string{"word "}, 20), Usage: &llmserver.Usage{Input: 10, Output: 20},
	}).Start()
	require.NoError(b, err)
	b.Cleanup(stop)
	for _, sessions := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("floor/%d", sessions), func(b *testing.B) {
			url := startFloor(b, provider)
			turns(b, sessions, func(i int) (string, string) {
				return fmt.Sprintf("%s/?session=s%d", url, i), `{"text":"hello there, how is it going?"}`
			})
		})
		b.Run(fmt.Sprintf("ours/%d", sessions), func(b *testing.B) {
			url := startServer(b, provider)
			turns(b, sessions, func(i int) (string, string) {
				return url, fmt.Sprintf(`{"type":"chat_input","session_id":"s%d","text":"hello there, how is it going?"}`, i)
			})
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

// turns spreads b.N turns over the sessions, each on its own connection, and waits for the last frame of each.
func turns(b *testing.B, sessions int, dial func(i int) (url, frame string)) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conns := make([]*websocket.Conn, sessions)
	for i := range conns {
		url, frame := dial(i)
		conn, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // the library closes the body of an upgrade
		require.NoError(b, err)
		defer conn.CloseNow() //nolint:errcheck // the benchmark is over
		conns[i] = conn
		require.NoError(b, oneTurn(ctx, conn, frame)) // warm: the session is in memory, connections are up
	}
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	b.ResetTimer()
	var all sync.WaitGroup
	for i, conn := range conns {
		_, frame := dial(i)
		all.Go(func() {
			for range left {
				if err := oneTurn(ctx, conn, frame); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
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
