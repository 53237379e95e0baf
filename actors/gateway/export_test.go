package gateway

import "github.com/asynkron/protoactor-go/actor"

// Connections gives the actors of the open connections.
func (g *Gateway) Connections() []*actor.PID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var pids []*actor.PID
	for s := range g.sockets {
		pids = append(pids, s.pid)
	}
	return pids
}
