package gateway

import (
	"math"
	"net/http"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages/protocol"
)

// listStages serves GET /v1/sessions/{id}/stages: what the router remembers of every stage that has ended, of which the state
// shows only the newest. It reads the event log, as long as that is, and does not start the session.
func (g *Gateway) listStages(w http.ResponseWriter, r *http.Request) {
	key, ok := pathKey(w, r)
	if !ok {
		return
	}
	after, failure := queryCount(r, "after", 0, math.MaxInt)
	if failure != nil {
		respondError(w, failure)
		return
	}
	limit, failure := pageSize(r)
	if failure != nil {
		respondError(w, failure)
		return
	}
	ctx, cancel := g.bounded(r, answerWithin)
	defer cancel()
	if _, err := g.deps.Journal.Session(ctx, key); err != nil {
		respondFailed(w, err)
		return
	}
	state, err := g.client.RouterState(ctx, key)
	if err != nil {
		respondFailed(w, err)
		return
	}
	g.respondBody(w, stagesPage(state.L2, int(after), limit)) //nolint:gosec // at most math.MaxInt
}

func stagesPage(memory router.Memory, after, limit int) *protocol.StagesPage {
	page := &protocol.StagesPage{Next: uint64(after)} //nolint:gosec // not negative
	size := 0
	for _, e := range memory.Page(after, limit) {
		if size += len(e.StageID) + len(e.Summary); size > pageBytes && len(page.Stages) > 0 {
			break
		}
		page.Stages = append(page.Stages, protocol.Stage{
			StageID: e.StageID, Summary: e.Summary, Outcome: string(e.Outcome), Timestamp: e.Timestamp.UTC(),
		})
		page.Next++
	}
	return page
}
