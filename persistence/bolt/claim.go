package bolt

import (
	"context"
	"fmt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// claimRequest goes through the committer so that its heads are those behind every append under an older epoch. It writes
// nothing: the file lock keeps other processes out, so a claim need not outlive this one.
type claimRequest struct {
	key messages.Key
	res persistence.Claim
	// eventHead and ledgerHead are the heads if the batch is not stored.
	eventHead, ledgerHead uint64
	err                   error
	answered              chan struct{}
}

// Claim implements persistence.Journal.
func (j *Journal) Claim(ctx context.Context, key messages.Key, _ persistence.Owner) (persistence.Claim, error) {
	if err := context.Cause(ctx); err != nil {
		return persistence.Claim{}, err
	}
	if err := key.Validate(); err != nil {
		return persistence.Claim{}, fmt.Errorf("claim %s: %w: %w", key, persistence.ErrInvalid, err)
	}
	r := &claimRequest{key: key, answered: make(chan struct{})}
	if err := j.enqueue(r); err != nil {
		return persistence.Claim{}, fmt.Errorf("claim %s: %w", key, err)
	}
	select {
	case <-ctx.Done():
		return persistence.Claim{}, fmt.Errorf("claim %s: %w", key, context.Cause(ctx))
	case <-r.answered:
	}
	if r.err != nil {
		return persistence.Claim{}, fmt.Errorf("claim %s: %w", key, r.err)
	}
	return r.res, nil
}

func (r *claimRequest) size() int { return 0 }

func (r *claimRequest) decide(b *batch) {
	now, err := b.row(r.key)
	if err == nil && now != nil && now.deleted {
		err = persistence.ErrDeleted
	}
	if err == nil {
		r.res.Epoch, err = b.j.nextEpoch()
	}
	if err != nil {
		r.err = err
		return
	}
	if now != nil {
		r.res.EventHead, r.res.LedgerHead = now.eventHead, now.ledgerHead
		if before, err := b.committed(r.key); err == nil && before != nil {
			r.eventHead, r.ledgerHead = before.eventHead, before.ledgerHead
		}
	}
	b.j.claims[r.key] = r.res.Epoch
}

func (r *claimRequest) answer(err error) {
	switch {
	case err != nil && isFailure(err):
		r.err = err
	case err != nil:
		// The appends before it found no room; the claim stands.
		r.res.EventHead, r.res.LedgerHead = r.eventHead, r.ledgerHead
	}
	close(r.answered)
}
