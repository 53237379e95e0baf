package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func TestHostileFramesCloseWithTheirCode(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.dial()
	big := bytes.Repeat([]byte("x"), 65537)
	for name, tt := range map[string]struct {
		kind websocket.MessageType
		data []byte
		code websocket.StatusCode
	}{
		"binary":         {websocket.MessageBinary, []byte(`{"type":"ping"}`), websocket.StatusUnsupportedData},
		"large binary":   {websocket.MessageBinary, bytes.Repeat(big, 10), websocket.StatusUnsupportedData},
		"invalid utf-8":  {websocket.MessageText, []byte("{\"type\":\"ping\",\"id\":\"\xff\"}"), websocket.StatusInvalidFramePayloadData},
		"too large":      {websocket.MessageText, big, websocket.StatusMessageTooBig},
		"much too large": {websocket.MessageText, bytes.Repeat(big, 20), websocket.StatusMessageTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.dial()
			c.t = t
			c.send("ping", "id", "before")
			require.NoError(t, c.ws.Write(t.Context(), tt.kind, tt.data))
			require.Equal(t, "before", c.expect("pong").text("id"), "what was asked before is answered")
			code, reason := c.closed()
			require.Equal(t, tt.code, code)
			require.NotEmpty(t, reason)
		})
	}
	other.goesOn(t)
}

func TestAFrameOfTheLargestSizeIsServed(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	data := `{"type":"ping","id":"max"` + strings.Repeat(" ", 65536-len(`{"type":"ping","id":"max"}`)) + "}"
	require.Len(t, data, 65536)
	c.sendRaw(data)
	require.Equal(t, "max", c.expect("pong").text("id"))
}

func TestFragmentsAreOneFrame(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	w, err := c.ws.Writer(t.Context(), websocket.MessageText)
	require.NoError(t, err)
	for _, part := range []string{`{"type":"pi`, ``, `ng","id":"`, "\xc3", "\xa9", `"}`} {
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Equal(t, "é", c.expect("pong").text("id"))

	w, err = c.ws.Writer(t.Context(), websocket.MessageText)
	require.NoError(t, err)
	for range 70 {
		_, err := w.Write(bytes.Repeat([]byte(" "), 1024))
		require.NoError(t, err)
	}
	code, _ := c.closed()
	require.Equal(t, websocket.StatusMessageTooBig, code, "the limit is for all fragments together")
}

func TestGarbageIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, input := range map[string]string{
		"bytes":           "\x00\x01\x02\xff\xfe\r\n\r\n",
		"no http":         "HELLO correx.v1\r\n\r\n",
		"header too long": "GET /v1/ws HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"tls":             "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	} {
		conn := rawDial(t, s)
		_, err := io.WriteString(conn, input)
		if err == nil {
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			_, err = io.ReadAll(conn)
		}
		_ = err // refused with an answer or a reset, either will do
		require.NoError(t, conn.Close(), name)
	}
	s.dial().goesOn(t)
}

// TestGarbageAfterTheUpgradeEndsTheConnection sends what is no WebSocket frame of a client.
func TestGarbageAfterTheUpgradeEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, input := range map[string]string{
		"unmasked":          "\x81\x02hi",
		"reserved bits":     "\xf1\x80\x00\x00\x00\x00",
		"unknown opcode":    "\x83\x80\x00\x00\x00\x00",
		"long ping":         "\x89\xfe\x01\x00\x00\x00\x00\x00" + strings.Repeat("x", 256),
		"fragmented ping":   "\x09\x80\x00\x00\x00\x00",
		"lone continuation": "\x80\x80\x00\x00\x00\x00",
		"http":              "GET / HTTP/1.1\r\n\r\n",
		"cut in the middle": "\x81\xff\x00",
		"bad close":         "\x88\x81\x00\x00\x00\x00x",
	} {
		conn := rawDial(t, s)
		upgradeRaw(t, conn)
		_, err := io.WriteString(conn, input)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err = io.ReadAll(conn)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		require.NoError(t, conn.Close())
	}
	s.dial().goesOn(t)
}

func rawDial(t *testing.T, s *server) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.gateway.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func upgradeRaw(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	_, err := io.WriteString(conn, "GET /v1/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	return r
}

func TestSubprotocols(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, tt := range []struct {
		offered  []string
		accepted string
		status   int
	}{
		{nil, "", http.StatusSwitchingProtocols},
		{[]string{"correx.v1"}, "correx.v1", http.StatusSwitchingProtocols},
		{[]string{"chat", "correx.v1"}, "correx.v1", http.StatusSwitchingProtocols},
		{[]string{"chat"}, "", http.StatusBadRequest},
		{[]string{"correx.v2", "CORREX.V1"}, "", http.StatusBadRequest},
	} {
		ws, resp, err := websocket.Dial(t.Context(), s.url+"/v1/ws", &websocket.DialOptions{ //nolint:bodyclose // replaced by the library
			HTTPClient: s.http, Subprotocols: tt.offered,
		})
		require.Equal(t, tt.status, resp.StatusCode, tt.offered)
		if tt.status != http.StatusSwitchingProtocols {
			require.Error(t, err)
			body, _ := io.ReadAll(resp.Body)
			require.Contains(t, string(body), `{"error":{"code":"invalid_field"`)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tt.accepted, ws.Subprotocol())
		c := &client{t: t, ws: ws}
		require.Equal(t, "correx.v1", c.expect("hello").text("protocol"))
		require.NoError(t, ws.Close(websocket.StatusNormalClosure, ""))
	}
}

func TestOnlyUpgradesAreServedAsSockets(t *testing.T) {
	t.Parallel()
	s := start(t)
	status, body, header := s.call(http.MethodGet, "/v1/ws", "")
	require.Equal(t, http.StatusUpgradeRequired, status)
	require.Equal(t, "bad_frame", body.code())
	require.Equal(t, "websocket", header.Get("Upgrade"))
	status, body, _ = s.call(http.MethodGet, "/v1/ws", "",
		"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "12", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, "bad_frame", body.code())
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	s := start(t, func(set *settings) { set.gateway.Origins = []string{"https://chat.example.com", "http://[::1]:3000"} })
	addr := s.gateway.Addr().String()
	for _, tt := range []struct {
		host, origin string
		ok           bool
	}{
		{"", "", true},
		{"", "http://" + addr, true},
		{"localhost:7711", "http://localhost:7711", true},
		{"", "https://chat.example.com", true},
		{"", "http://[::1]:3000", true},
		{"chat.example.com", "https://chat.example.com", true},
		{"", "http://chat.example.com", false},
		{"", "https://chat.example.com.evil.test", false},
		{"", "https://evil.test", false},
		{"", "null", false},
		{"", "http://" + addr + "/path", false},
		{"evil.test", "http://evil.test", false}, // DNS rebinding: the attacker's page is of the same origin
		{"evil.test", "", false},
	} {
		header := http.Header{}
		if tt.origin != "" {
			header.Set("Origin", tt.origin)
		}
		ws, resp, err := websocket.Dial(t.Context(), s.url+"/v1/ws", &websocket.DialOptions{ //nolint:bodyclose // replaced by the library
			HTTPClient: s.http, Host: tt.host, HTTPHeader: header,
		})
		post := []string{"Host", addr}
		if tt.host != "" {
			post[1] = tt.host
		}
		if tt.origin != "" {
			post = append(post, "Origin", tt.origin)
		}
		status, body, _ := s.call(http.MethodPost, "/v1/sessions/s1/turns", `{"text":"hi"}`, post...)
		if tt.ok {
			require.NoError(t, err, "%v", tt)
			require.NoError(t, ws.CloseNow())
			require.Equal(t, http.StatusAccepted, status, "%v", tt)
			continue
		}
		require.Equal(t, http.StatusForbidden, resp.StatusCode, "%v", tt)
		require.Equal(t, http.StatusForbidden, status, "%v", tt)
		require.Equal(t, "forbidden", body.code())
	}
	status, body, _ := s.call(http.MethodPost, "/v1/sessions/s1/abort", "", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, "forbidden", body.code())
}
