package mcp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
)

// errTooLong ends a body that exceeds maxMessage.
var errTooLong = errors.New("the message of the server is too long")

// boundTransport makes the requests of one connection: they all end with it, and no message is longer than maxMessage.
type boundTransport struct {
	ctx    context.Context
	cancel context.CancelFunc
	under  *http.Transport
}

func newBoundTransport() *boundTransport {
	t := &boundTransport{under: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	unlink := context.AfterFunc(t.ctx, cancel)
	end := func() {
		unlink()
		cancel()
	}
	res, err := t.under.RoundTrip(req.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	body := &boundBody{ReadCloser: res.Body, end: end, left: maxMessage}
	// A stream has no end; the length of its events is bounded by who reads it.
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	body.stream = kind == "text/event-stream"
	res.Body = body
	return res, nil
}

func (t *boundTransport) close() {
	t.cancel()
	t.under.CloseIdleConnections()
}

// boundBody is a body of bounded length that holds on to its request's context until it is closed.
type boundBody struct {
	io.ReadCloser
	end    func()
	stream bool
	left   int
}

// Read implements io.Reader.
func (b *boundBody) Read(p []byte) (int, error) {
	if b.stream {
		return b.ReadCloser.Read(p)
	}
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Close implements io.Closer.
func (b *boundBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
