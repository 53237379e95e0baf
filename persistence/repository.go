package persistence

import (
	"context"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

// Repository rebuilds projections from the event log, for readers outside a session's actor (I1, I14).
type Repository struct{ journal Journal }

// NewRepository reads from j.
func NewRepository(j Journal) *Repository { return &Repository{journal: j} }

// RouterState folds a session's whole event log; a session without events has the initial state. Errors: those of Journal.Replay, and
// a payload that does not decode.
func (r *Repository) RouterState(ctx context.Context, key messages.Key) (router.State, error) {
	state, _, err := Replay(ctx, r.journal, key, messages.StreamEvents, 0, router.State{}, router.ReduceRecords(key))
	return state, err
}
