package gateway

import (
	"net/http"

	"github.com/correx/correx-actors/actors/directory"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

const (
	pageLimit    = 100
	maxPageLimit = directory.MaxPage
)

// listSessions serves GET /v1/sessions.
func (g *Gateway) listSessions(w http.ResponseWriter, r *http.Request) {
	limit, failure := pageSize(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	query := r.URL.Query()
	page, err := g.client.SessionsPage(ctx, directory.Query{
		Tenant: messages.DefaultTenant,
		State:  directory.State(query.Get("state")),
		After:  messages.SessionID(query.Get("after")),
		Limit:  limit,
	})
	if err != nil {
		respondFailed(w, err)
		return
	}
	body := &protocol.SessionsPage{Next: string(page.Next)}
	for _, s := range page.Sessions {
		body.Sessions = append(body.Sessions, summaryOf(s))
	}
	g.respondBody(w, body)
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
