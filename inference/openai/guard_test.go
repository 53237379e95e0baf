package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

// doer answers each request with a body, in pieces of so many bytes.
type doer struct {
	contentType string
	body        []byte
	piece       int
	err         error
}

// RoundTrip implements http.RoundTripper.
func (d doer) RoundTrip(req *http.Request) (*http.Response, error) {
	if d.err != nil {
		return nil, d.err
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {d.contentType}},
		Body:       io.NopCloser(&pieces{rest: d.body, piece: d.piece}),
		Request:    req,
	}, nil
}

type pieces struct {
	rest  []byte
	piece int
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(max(p.piece, 1), len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// guarded gives what the library reads of a body, and the error at its end.
func guarded(d doer, config Config) (string, error) {
	config.HTTPClient = &http.Client{Transport: d}
	g := &guard{config: config.withFallbacks(), alive: func() error { return nil }, answer: chatDocument}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://fake.invalid", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := g.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	lines, err := io.ReadAll(resp.Body)
	return string(lines), err
}

func TestGuardGivesCanonicalLines(t *testing.T) {
	t.Parallel()
	body := "\ufeff: hi\r\nid: 1\r\ndata: {\"a\":\rdata: 1}\r\n\r\n:\n\nevent: x\ndata:{\"b\":2}\n\ndata: [DONE]\n\n"
	for piece := 1; piece < len(body); piece++ {
		lines, err := guarded(doer{contentType: "text/event-stream", body: []byte(body), piece: piece}, Config{})
		require.NoError(t, err)
		require.Equal(t, "data: {\"a\": 1}\ndata: {\"b\":2}\ndata: [DONE]\n", lines, piece)
	}
}

func TestGuardBoundsEventsAndStreams(t *testing.T) {
	t.Parallel()
	event := "data: {\"a\":1}\n\n"
	limits := Config{MaxEventBytes: len(event) - 1, MaxBodyBytes: 10 * int64(len(event))}
	for _, piece := range []int{1, 7, 1 << 20} {
		_, err := guarded(doer{contentType: "text/event-stream", body: []byte(event), piece: piece}, limits)
		require.ErrorIs(t, err, errEventTooBig)
	}
	limits.MaxEventBytes++
	for _, piece := range []int{1, 7, 1 << 20} {
		lines, err := guarded(doer{contentType: "text/event-stream", body: []byte(strings.Repeat(event, 11)), piece: piece}, limits)
		require.ErrorIs(t, err, errBodyTooBig)
		require.Equal(t, strings.Repeat("data: {\"a\":1}\n", 10), lines)
	}
	// Comments and blank lines are no part of an event, however many there are.
	limits = Config{MaxEventBytes: 64}
	lines, err := guarded(doer{contentType: "text/event-stream", body: []byte(strings.Repeat(": alive\n", 1000) + event), piece: 50}, limits)
	require.NoError(t, err)
	require.Equal(t, "data: {\"a\":1}\n", lines)
	// A document is bounded as an event is.
	document := `{"choices":[` + strings.Repeat(" ", 100) + `]}`
	_, err = guarded(doer{contentType: "application/json", body: []byte(document), piece: 50}, limits)
	require.Equal(t, inference.KindProvider, inference.KindOf(err))
}

func TestConnectTimeoutIsATimeout(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	_, err := guarded(doer{err: dial}, Config{})
	require.Equal(t, inference.KindTimeout, inference.KindOf(err))
	_, err = guarded(doer{err: errors.New("no route with " + "secret-key-0123")}, Config{APIKey: "secret-key-0123"})
	require.Equal(t, inference.KindUnavailable, inference.KindOf(err))
	require.NotContains(t, err.Error(), "secret-key")
}

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "NaN": 0, "1e300": maxRetryAfter, "soon": 0,
		"Mon, 01 Jan 2001 00:00:00 GMT": 0, "Fri, 01 Jan 2199 00:00:00 GMT": maxRetryAfter,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}), value)
	}
}

func TestNamesThatServersGiveAreClean(t *testing.T) {
	t.Parallel()
	const secret = "plain0key1of2no3shape"
	body := `data: {"model":"\u001b[31mevil ` + secret + `","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"\u001b[2J\nreason ` + secret + `"}]}` + "\n\n"
	provider, err := New(Config{Model: "m", APIKey: secret, HTTPClient: &http.Client{Transport: doer{contentType: "text/event-stream", body: []byte(body), piece: 99}}})
	require.NoError(t, err)
	seen, err := provider.Inspect(t.Context(), Trial{User: "hi"}, func(inference.Event) error { return nil })
	require.NoError(t, err)
	require.Equal(t, "[31mevil [redacted]", seen.Model)
	require.Equal(t, "[2J reason [redacted]", seen.FinishReason)
	require.Equal(t, "[redacted]", Config{APIKey: secret}.requestID(http.Header{"X-Request-Id": {secret}}))
}

func TestBaseURLHasNoQuery(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://a.invalid/v1?key=secret", "https://a.invalid/v1?", "https://a.invalid/v1#x"} {
		_, err := New(Config{BaseURL: base})
		require.Equal(t, inference.KindConfig, inference.KindOf(err), base)
		require.NotContains(t, err.Error(), "secret")
	}
}
