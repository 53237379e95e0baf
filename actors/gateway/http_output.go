package gateway

import (
	"math"
	"net/http"

	"github.com/correx/correx-actors/messages"
)

// streamOutput serves GET /v1/sessions/{id}/output: all items of a session, as server-sent events.
func (g *Gateway) streamOutput(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	cursor, failure := outputCursor(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	// To subscribe makes a session that does not exist; to read does not.
	if _, err := g.deps.Journal.Session(r.Context(), key); err != nil {
		respondFailed(w, err)
		return
	}
	if r.Method == http.MethodHead {
		newEventStream(w)
		return
	}
	g.stream(w, r, g.newFeed(key, cursor), 0)
}

// outputCursor gives the number after which a stream goes on: that of Last-Event-ID, which a client sends when it reconnects,
// else after_seq; nil = only what is new.
func outputCursor(r *http.Request) (*uint64, *messages.Failure) {
	after, failure := queryCount(r, "after_seq", 0, math.MaxUint64)
	if failure != nil {
		return nil, failure
	}
	cursor, failure := lastEventID(r)
	if cursor == nil && failure == nil && r.URL.Query().Get("after_seq") != "" {
		cursor = &after
	}
	return cursor, failure
}
