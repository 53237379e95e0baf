package gateway

import (
	"net"
	"net/http"
)

// Stats is who is connected.
type Stats struct {
	// WebSockets that are open.
	WebSockets int
	// HTTP connections to the listener, idle ones and streams too; one that became a WebSocket is none any more.
	HTTP int
}

// Stats tells who is connected now.
func (g *Gateway) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Stats{WebSockets: len(g.sockets), HTTP: int(g.http.Load())}
}

// connection counts the connections of the server.
func (g *Gateway) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		g.http.Add(1)
	case http.StateHijacked, http.StateClosed:
		g.http.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}
