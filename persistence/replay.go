package persistence

import (
	"context"
	"fmt"

	"github.com/correx/correx-actors/messages"
)

// Replay folds one stream of a session, from the record after a sequence, into state and gives the last sequence that it saw.
// It runs reduce only: no clock, no effect, no service (I1, I14). Errors: those of Journal.Replay, and what reduce returns, with the place.
func Replay[S any](
	ctx context.Context, j Journal, key messages.Key, stream messages.Stream, after uint64,
	state S, reduce func(S, messages.Record) (S, error),
) (S, uint64, error) {
	head := after
	for rec, err := range j.Replay(ctx, key, stream, after) {
		if err != nil {
			return state, head, err
		}
		next, err := reduce(state, rec)
		if err != nil {
			return state, head, fmt.Errorf("replay %s, %s record %d: %w", key, stream, rec.Seq, err)
		}
		state, head = next, rec.Seq
	}
	return state, head, nil
}
