// Package protocol holds what JSON clients see: the frames of the WebSocket and the bodies of the HTTP interface, one Go
// struct each. It depends on the standard library alone, so that no domain type can leak into a frame; the gateway
// translates between these structs and package messages.
//
// Rules of every object that leaves: nothing is ever null, an unknown value is absent, an empty list is [], names are
// snake_case, times are RFC 3339 with nanoseconds, counters are JSON numbers, no HTML escaping.
//
// Rules of every object that comes in: names are matched exactly, unknown fields are ignored, null is the same as absent,
// of a name that comes twice the last one holds.
//
// Shapes are a contract: add, never rename. testdata holds one example of each frame.
package protocol
