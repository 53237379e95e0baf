package gateway

import (
	"fmt"
	"net/http"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

const (
	pageLimit    = 100
	maxPageLimit = 1000
)

// listSessions serves GET /v1/sessions.
func (g *Gateway) listSessions(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	state, after := query.Get("state"), query.Get("after")
	switch state {
	case "", actors.SessionBusy, actors.SessionIdle, actors.SessionPassivated:
	default:
		respondError(w, messages.Fail(messages.CodeInvalidField, fmt.Sprintf("state is not %s, %s or %s",
			actors.SessionBusy, actors.SessionIdle, actors.SessionPassivated)))
		return
	}
	if after != "" && protocol.CheckSessionID(after) != nil {
		respondError(w, messages.Fail(messages.CodeInvalidField, "after is no cursor"))
		return
	}
	limit, failure := pageSize(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	rows, more, err := g.client.Sessions(ctx, messages.DefaultTenant, state, messages.SessionID(after), limit)
	if err != nil {
		respondFailed(w, err)
		return
	}
	page := new(protocol.SessionsPage)
	for _, row := range rows {
		page.Sessions = append(page.Sessions, summaryOf(row))
	}
	if more {
		page.Next = page.Sessions[len(page.Sessions)-1].SessionID
	}
	g.respondBody(w, page)
}

func pageSize(r *http.Request) (int, *messages.Failure) {
	n, failure := queryCount(r, "limit", pageLimit, maxPageLimit)
	if failure == nil && n == 0 {
		failure = messages.Fail(messages.CodeInvalidField, "limit is 0, want at least 1")
	}
	return int(n), failure //nolint:gosec // at most maxPageLimit
}

// showSession serves GET /v1/sessions/{id}.
func (g *Gateway) showSession(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	view, err := g.client.State(ctx, key)
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusOK, &protocol.Session{State: stateOf(view)})
}

// explainContext serves GET /v1/sessions/{id}/context.
func (g *Gateway) explainContext(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	pack, err := g.client.Context(ctx, key, r.URL.Query().Get("model"))
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondBody(w, contextPack(pack))
}

// abort serves POST /v1/sessions/{id}/abort.
func (g *Gateway) abort(w http.ResponseWriter, r *http.Request) {
	body, ok := g.readBody(w, r)
	if !ok {
		return
	}
	f, refusal := protocol.DecodeAbortBody(r.PathValue("id"), body)
	if refusal != nil {
		respondRefusal(w, protocol.HTTPStatus(refusal.Code), refusal)
		return
	}
	key := sessionKey(f.SessionID)
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	aborted, err := g.client.Abort(ctx, key, abortOf(f))
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondFrame(w, http.StatusOK, answerFrame(f.ID, key, aborted))
}
