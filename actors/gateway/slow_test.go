package gateway_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

// TestAPausedSocketIsBounded is B94: one client stops reading while far more is sent than its outbox and the network hold.
// Its connection ends, with 1013 if it reads again in time; it has no hole in what it got, and disturbs nobody.
func TestAPausedSocketIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.gateway.OutboxBytes = 3 << 19 })
	for range 5 {
		s.model.Call(testkit.Stream(strings.Repeat("x", 1<<19)))
	}
	paused := s.dialSmall()
	well := s.dial()
	paused.send("subscribe", "session_id", "s1")
	paused.expect("subscribed")
	var want []frame
	for range 5 {
		well.send("chat_input", "session_id", "s1", "text", "hi")
		well.expect("turn_accepted")
		_, items := well.until("router_response")
		want = append(want, items...)
	}
	requireNumbered(t, want)
	var got []frame
	for {
		f, err := paused.read()
		if err != nil {
			if code := websocket.CloseStatus(err); code >= 0 {
				require.Equal(t, websocket.StatusTryAgainLater, code)
			}
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			break
		}
		got = append(got, f)
	}
	require.Less(t, len(got), len(want))
	require.Equal(t, want[:len(got)], got)
	well.goesOn(t)
}

// dialSmall connects with a small buffer in the network.
func (s *server) dialSmall() *client {
	s.t.Helper()
	ws, _, err := websocket.Dial(s.t.Context(), s.url+"/v1/ws", &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return conn, conn.(*net.TCPConn).SetReadBuffer(512 << 10)
			},
		}},
	})
	require.NoError(s.t, err)
	ws.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	c := &client{t: s.t, ws: ws}
	require.Equal(s.t, "hello", c.next().kind())
	return c
}
