package doctor

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// tap stands below the driver and notes what the wire says of the newest request. Safe for concurrent use; with requests at
// the same time it notes the one that started last.
type tap struct {
	next http.RoundTripper

	mu     sync.Mutex
	newest *flow
}

// flow is one response as it came.
type flow struct {
	// Started is when the request went out; first and last are its first and last read of the body.
	started, first, last time.Time
	// reads of the body, silence the longest wait between two.
	reads   int
	silence time.Duration
	// comments are lines that begin with a colon; carriage: lines end with CR.
	comments int
	carriage bool

	lineStart bool
}

// RoundTrip implements http.RoundTripper.
func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	f := &flow{started: time.Now(), lineStart: true}
	t.mu.Lock()
	t.newest = f
	t.mu.Unlock()
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &watched{ReadCloser: resp.Body, tap: t, flow: f}
	return resp, nil
}

// CloseIdleConnections lets the driver close what is below.
func (t *tap) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// flow gives what is known of the newest request.
func (t *tap) flow() flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest == nil {
		return flow{}
	}
	return *t.newest
}

type watched struct {
	io.ReadCloser
	tap  *tap
	flow *flow
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.tap.mu.Lock()
		w.flow.note(p[:n], time.Now())
		w.tap.mu.Unlock()
	}
	return n, err
}

func (f *flow) note(b []byte, now time.Time) {
	if f.reads == 0 {
		f.first = now
	} else {
		f.silence = max(f.silence, now.Sub(f.last))
	}
	f.reads++
	f.last = now
	for _, c := range b {
		if f.lineStart && c == ':' {
			f.comments++
		}
		f.carriage = f.carriage || c == '\r'
		f.lineStart = c == '\n' || c == '\r'
	}
}
