// Package gateway is the edge for clients in other processes: WebSocket and HTTP with JSON, as docs/protocol.md describes.
// It translates between package messages and package messages/protocol, and nothing else: every rule about turns lives in
// the session.
//
// A connection is one actor, one goroutine that reads and one that writes. The actor never touches the network: it puts
// encoded frames into a bounded outbox. A client that reads too slowly is closed with 1013 after what it has been promised
// so far was flushed; it resumes by the last number that it saw. A client that asks faster than it is answered is not read
// from any more, so its own TCP connection slows it down.
//
// There is no authentication yet, so the gateway serves loopback addresses only, and only requests that name the server by
// an address, localhost or a configured origin: a name that an attacker's DNS points at this machine is refused.
//
// Losing a connection never cancels a run.
package gateway
