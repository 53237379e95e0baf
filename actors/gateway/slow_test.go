package gateway_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

// smallBuffers is a listener whose connections hold little in the network.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetWriteBuffer(32 << 10)
}

func (l smallBuffers) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetReadBuffer(128 << 10)
}

// TestAPausedSocketIsBounded is B94: one client stops reading while far more is sent than its outbox and the network hold.
// Its connection ends, with 1013 if it reads again in time; it has no hole in what it got, and disturbs nobody.
func TestAPausedSocketIsBounded(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	network := smallBuffers{listener}
	s := start(t, func(set *settings) {
		set.listener, set.dial = network, network.dial
		set.gateway.OutboxBytes = 512 << 10
	})
	for range 8 {
		s.model.Call(testkit.Stream(strings.Repeat("x", 128<<10)))
	}
	paused, well := s.dial(), s.dial()
	paused.send("subscribe", "session_id", "s1")
	paused.expect("subscribed")
	var want []frame
	for range 8 {
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
