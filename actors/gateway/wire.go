package gateway

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// corkBytes is how much is written in one system call.
const corkBytes = 32 << 10

// wire is the network connection below a WebSocket. It ends a peer that is silent, or takes nothing, for too long. While it
// is corked it holds back what is written, so that several frames leave in one system call.
type wire struct {
	net.Conn
	silence time.Duration

	mu     sync.Mutex
	corked bool
	held   []byte
}

// Read implements net.Conn. The time runs only while somebody reads: a peer that we do not read from is not silent.
func (w *wire) Read(p []byte) (int, error) {
	if err := w.SetReadDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	return w.Conn.Read(p)
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.corked {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	return w.write(p)
}

// write needs mu. A slow peer is given the time for each part anew.
func (w *wire) write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := w.SetWriteDeadline(time.Now().Add(w.silence)); err != nil {
			return n, err
		}
		m, err := w.Conn.Write(p[n:min(len(p), n+corkBytes)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (w *wire) cork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked = true
}

// uncork sends what was held back.
func (w *wire) uncork() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked = false
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.write(w.held)
	if w.held = w.held[:0]; cap(w.held) > corkBytes {
		w.held = nil
	}
	return err
}

// upgrade puts a wire under the connection that a WebSocket handshake takes over, and keeps the handshake's own error texts
// from the client, who gets an envelope.
type upgrade struct {
	http.ResponseWriter
	silence time.Duration
	wire    *wire
	// refused is the status with which the handshake was refused.
	refused int
}

// WriteHeader implements http.ResponseWriter.
func (u *upgrade) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		u.refused = status
		return
	}
	u.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (u *upgrade) Write(p []byte) (int, error) {
	if u.refused != 0 {
		return len(p), nil
	}
	return u.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker.
func (u *upgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	u.wire = &wire{Conn: conn, silence: u.silence}
	rw.Writer.Reset(u.wire)
	return u.wire, rw, nil
}
