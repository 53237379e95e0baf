package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// sweepStep bounds the entries that one transaction frees: appends of other sessions wait for no more.
const sweepStep = 1000

// Delete implements persistence.Journal.
func (j *Journal) Delete(ctx context.Context, key messages.Key, expect persistence.Expect) error {
	t := &tombstoneRequest{key: key, expect: expect, answered: make(chan struct{})}
	if err := j.ask(ctx, t, t.answered); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	if t.err != nil {
		return fmt.Errorf("delete %s: %w", key, t.err)
	}
	for {
		s := &sweepRequest{number: t.number, answered: make(chan struct{})}
		if err := j.ask(ctx, s, s.answered); err != nil {
			return fmt.Errorf("free %s: %w", key, err)
		}
		if s.err != nil {
			return fmt.Errorf("free %s: %w", key, s.err)
		}
		if !s.more {
			return nil
		}
	}
}

// ask has the committer carry out a request and waits for its answer.
func (j *Journal) ask(ctx context.Context, r request, answered <-chan struct{}) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := j.enqueue(r); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-answered:
		return nil
	}
}

// tombstoneRequest marks a session as deleted; its row and id stay for ever.
type tombstoneRequest struct {
	key      messages.Key
	expect   persistence.Expect
	number   number
	err      error
	answered chan struct{}
}

func (r *tombstoneRequest) size() int { return 0 }

func (r *tombstoneRequest) decide(b *batch) {
	old, err := b.row(r.key)
	switch {
	case err != nil:
		r.err = err
		return
	case old == nil:
		r.err = persistence.ErrUnknownSession
		return
	}
	r.number = old.number
	if old.deleted {
		return
	}
	if r.err = b.fenced(r.key, r.expect.Epoch); r.err == nil {
		r.err = conflict(old, r.expect)
	}
	if r.err != nil {
		return
	}
	next := *old
	b.mark(&next, false)
	next.deleted = true
	b.counters.sessions--
	b.stage(&next)
}

func (r *tombstoneRequest) answer(err error) {
	if r.err == nil {
		r.err = err
	}
	close(r.answered)
}

// sweepRequest frees some of a deleted session's entries.
type sweepRequest struct {
	number   number
	more     bool
	err      error
	answered chan struct{}
}

func (r *sweepRequest) size() int { return 0 }

func (r *sweepRequest) decide(b *batch) {
	left, err := r.records(b, sweepStep)
	for _, bucket := range [][]byte{bucketIndex, bucketEntries, bucketOrder} {
		if err == nil && left > 0 {
			left, err = sweep(b, bucket, r.number.key(), left, nil)
		}
	}
	r.more, r.err = left == 0, err
}

func (r *sweepRequest) records(b *batch, limit int) (int, error) {
	feed := b.tx.Bucket(bucketFeed)
	return sweep(b, bucketRecords, r.number.key(), limit, func(key, value []byte) error {
		if len(key) != recordKey || key[numberLen] != byte(messages.StreamEvents) || len(value) < positionLen {
			return nil
		}
		if b.counters.events > 0 {
			b.counters.events--
		}
		// The position has no checksum of its own: the feed must point back.
		place := value[:positionLen]
		n, seq, err := decodeFeed(place, feed.Get(place))
		if err != nil || n != r.number || seq != binary.BigEndian.Uint64(key[numberLen+1:]) {
			return nil //nolint:nilerr // a damaged entry is left, the feed skips deleted sessions
		}
		return feed.Delete(bytes.Clone(place))
	})
}

// sweep removes up to limit keys with a prefix, after calling each; it gives what is left of the limit.
func sweep(b *batch, bucket, prefix []byte, limit int, each func(key, value []byte) error) (int, error) {
	in := b.tx.Bucket(bucket)
	keys := make([][]byte, 0, limit)
	c := in.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && len(keys) < limit; k, v = c.Next() {
		if each != nil {
			if err := each(k, v); err != nil {
				return 0, err
			}
		}
		keys = append(keys, bytes.Clone(k))
	}
	// A cursor that deletes may skip the next key.
	return limit - len(keys), deleteAll(b, in, keys)
}

func deleteAll(b *batch, in *bbolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		b.dirty = true
		if err := in.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (r *sweepRequest) answer(err error) {
	if r.err == nil {
		r.err = err
	}
	close(r.answered)
}
