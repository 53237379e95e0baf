package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Feed implements persistence.Journal.
func (j *Journal) Feed(
	ctx context.Context, after persistence.Position, follow bool,
) iter.Seq2[persistence.FeedRecord, error] {
	return func(yield func(persistence.FeedRecord, error) bool) {
		if err := j.ours(after); err != nil {
			yield(persistence.FeedRecord{}, fmt.Errorf("feed after %d: %w", after.N, err))
			return
		}
		f := feed{j: j, after: after.N, scanned: after.N, keys: make(map[number]messages.Key)}
		for {
			grown, err := f.read(ctx)
			if err != nil {
				yield(persistence.FeedRecord{}, fmt.Errorf("feed after %d: %w", f.after, err))
				return
			}
			if !f.yield(yield) || (!f.more && !follow) {
				return
			}
			if f.more {
				continue
			}
			select {
			case <-ctx.Done():
			case <-grown:
			}
		}
	}
}

// ours says whether a position is one of this store.
func (j *Journal) ours(p persistence.Position) error {
	if err := j.Healthy(); err != nil {
		return err
	}
	j.mu.Lock()
	end := j.stats.position
	j.mu.Unlock()
	if p == (persistence.Position{}) || (p.Incarnation == j.incarnation && p.N <= end) {
		return nil
	}
	return persistence.ErrStaleCursor
}

// feed reads the events of all sessions in chunks.
type feed struct {
	j       *Journal
	after   uint64                  // last position yielded
	scanned uint64                  // last position read; behind after where sessions were deleted
	keys    map[number]messages.Key // of sessions met before
	more    bool                    // the chunk ended before the feed

	data    []byte
	entries []feedPlace
}

// feedPlace is one event of the chunk: its value ends at end in data. With err set the value is none.
type feedPlace struct {
	position uint64
	key      messages.Key
	seq      uint64
	end      int
	err      error
}

// maxFeedKeys bounds what a feed remembers of sessions.
const maxFeedKeys = 4096

// read fills the chunk; grown is closed when there is more than it saw.
func (f *feed) read(ctx context.Context) (grown <-chan struct{}, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	f.j.mu.Lock()
	grown = f.j.grown // taken before the transaction: what is stored later closes it
	f.j.mu.Unlock()
	f.data, f.entries, f.more = f.data[:0], f.entries[:0], false
	return grown, f.j.view(func(tx *bbolt.Tx) error {
		records := tx.Bucket(bucketRecords)
		c := tx.Bucket(bucketFeed).Cursor()
		n := 0
		for k, v := c.Seek(binary.BigEndian.AppendUint64(nil, f.scanned+1)); k != nil; k, v = c.Next() {
			if n++; n > chunkRecords || len(f.data) >= chunkBytes {
				f.more = true
				return nil
			}
			f.scanned = uint64Of(k)
			f.add(tx, records, k, v)
		}
		return nil
	})
}

func (f *feed) add(tx *bbolt.Tx, records *bbolt.Bucket, k, v []byte) {
	e := feedPlace{position: uint64Of(k)}
	n, seq, err := decodeFeed(k, v)
	if err != nil {
		e.err = &persistence.CorruptError{Stream: messages.StreamEvents, Reason: "feed entry", Err: err}
		f.push(e, nil)
		return
	}
	e.seq = seq
	stored := records.Get(appendRecordKey(make([]byte, 0, recordKey), n, messages.StreamEvents, seq))
	key, known := f.keys[n]
	if !known || stored == nil {
		r, err := rowAt(tx, n)
		switch {
		case err != nil:
			e.err = &persistence.CorruptError{Stream: messages.StreamEvents, Seq: seq, Reason: "row", Err: err}
			f.push(e, nil)
			return
		case r.deleted:
			return
		}
		key = r.key
		if len(f.keys) >= maxFeedKeys {
			clear(f.keys)
		}
		f.keys[n] = key
	}
	e.key = key
	switch {
	case stored == nil:
		e.err = f.corrupt(e, "missing", nil)
	case len(stored) < positionLen || !bytes.Equal(stored[:positionLen], k):
		e.err = f.corrupt(e, "damaged position", nil)
	default:
		stored = stored[positionLen:]
	}
	f.push(e, stored)
}

func (f *feed) push(e feedPlace, value []byte) {
	if e.err == nil {
		f.data = append(f.data, value...)
	}
	e.end = len(f.data)
	f.entries = append(f.entries, e)
}

// yield gives the records of the chunk; false if the caller has enough or a record is damaged.
func (f *feed) yield(yield func(persistence.FeedRecord, error) bool) bool {
	start := 0
	for _, e := range f.entries {
		f.after = e.position
		out := persistence.FeedRecord{
			Key:   e.key,
			After: persistence.Position{Incarnation: f.j.incarnation, N: e.position},
		}
		err := e.err
		if err == nil {
			out.Record, err = messages.ParseRecord(e.key, messages.StreamEvents, e.seq, f.data[start:e.end:e.end])
			if err != nil {
				err = f.corrupt(e, "damaged", err)
			}
		}
		if err != nil {
			yield(out, fmt.Errorf("feed at %d: %w", e.position, err))
			return false
		}
		start = e.end
		out.Record.Position = e.position
		if !yield(out, nil) {
			return false
		}
	}
	return true
}

func (f *feed) corrupt(e feedPlace, reason string, err error) error {
	return &persistence.CorruptError{Key: e.key, Stream: messages.StreamEvents, Seq: e.seq, Reason: reason, Err: err}
}
