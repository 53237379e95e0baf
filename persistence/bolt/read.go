package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Bounds of what one read transaction copies out.
const (
	chunkRecords = 256
	chunkBytes   = 1 << 20
)

// view runs fn in a read transaction. Damage that makes bbolt panic, or the kernel fault because the file was cut, is
// ErrCorrupt.
func (j *Journal) view(fn func(*bbolt.Tx) error) (err error) {
	if err := j.failed(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", persistence.ErrCorrupt, p)
		}
	}()
	return readError(j.db.View(fn))
}

// Session implements persistence.Journal.
func (j *Journal) Session(ctx context.Context, key messages.Key) (persistence.SessionInfo, error) {
	if err := context.Cause(ctx); err != nil {
		return persistence.SessionInfo{}, err
	}
	var info persistence.SessionInfo
	err := j.view(func(tx *bbolt.Tx) error {
		r, err := liveRow(tx, key)
		if err == nil && r == nil {
			err = persistence.ErrUnknownSession
		}
		if err != nil {
			return err
		}
		info = r.info()
		return nil
	})
	if err != nil {
		return persistence.SessionInfo{}, fmt.Errorf("session %s: %w", key, err)
	}
	return info, nil
}

// liveRow is loadRow without tombstones.
func liveRow(tx *bbolt.Tx, key messages.Key) (*row, error) {
	r, err := loadRow(tx, key)
	if err == nil && r != nil && r.deleted {
		return nil, persistence.ErrDeleted
	}
	return r, err
}

// Lookup implements persistence.Journal.
func (j *Journal) Lookup(
	ctx context.Context, key messages.Key, index persistence.Index, name string,
) ([]byte, bool, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, false, err
	}
	var value []byte
	err := j.view(func(tx *bbolt.Tx) error {
		r, err := liveRow(tx, key)
		if err != nil || r == nil {
			return err
		}
		body, err := findEntry(tx, indexKey(r.number, index, name))
		if err != nil {
			return &persistence.CorruptError{Key: key, Reason: "index entry", Err: err}
		}
		value = bytes.Clone(body)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("look up an index entry of %s: %w", key, err)
	}
	return value, value != nil, nil
}

// Replay implements persistence.Journal.
func (j *Journal) Replay(
	ctx context.Context, key messages.Key, stream messages.Stream, after uint64,
) iter.Seq2[messages.Record, error] {
	return func(yield func(messages.Record, error) bool) {
		r := replay{j: j, key: key, stream: stream, next: after + 1}
		for {
			err := context.Cause(ctx)
			if err == nil {
				err = r.read()
			}
			if err != nil {
				yield(messages.Record{}, fmt.Errorf("replay %s: %w", key, err))
				return
			}
			if len(r.ends) == 0 {
				return
			}
			if !r.yield(yield) {
				return
			}
		}
	}
}

// replay reads one stream in chunks.
type replay struct {
	j      *Journal
	key    messages.Key
	stream messages.Stream
	next   uint64 // sequence to read next
	head   uint64 // last sequence to read; 0 before the first chunk

	// The chunk: values one behind the other, and where each ends. first is the sequence of the first one.
	first uint64
	data  []byte
	ends  []int
}

// read fills the chunk; it is empty at the head.
func (r *replay) read() error {
	r.data, r.ends = r.data[:0], r.ends[:0]
	return r.j.view(func(tx *bbolt.Tx) error {
		row, err := liveRow(tx, r.key)
		if err != nil || row == nil {
			return err
		}
		if r.head == 0 {
			r.head = row.head(r.stream)
		}
		if start := row.start(r.stream); r.next < start {
			// The ledger was pruned up to its checkpoint, perhaps beyond the head of the start.
			r.next, r.head = start, max(r.head, start)
		}
		return r.fill(tx, row.number)
	})
}

func (r *replay) fill(tx *bbolt.Tx, n number) error {
	if r.next > r.head {
		return nil
	}
	r.first = r.next
	c := tx.Bucket(bucketRecords).Cursor()
	want := appendRecordKey(make([]byte, 0, recordKey), n, r.stream, r.next)
	k, v := c.Seek(want)
	for len(r.ends) < chunkRecords && len(r.data) < chunkBytes && r.next <= r.head {
		if !bytes.Equal(k, want) {
			if len(r.ends) > 0 {
				return nil // what lies before it is good and is yielded first
			}
			// The row promises records up to the head: this finds a hole, and a lost tail.
			return r.corrupt(r.next, "missing", nil)
		}
		if r.stream == messages.StreamEvents {
			v = v[min(positionLen, len(v)):]
		}
		r.data = append(r.data, v...)
		r.ends = append(r.ends, len(r.data))
		r.next++
		binary.BigEndian.PutUint64(want[numberLen+1:], r.next)
		k, v = c.Next()
	}
	return nil
}

// yield gives the records of the chunk; false if the caller has enough or a record is damaged.
func (r *replay) yield(yield func(messages.Record, error) bool) bool {
	start := 0
	for i, end := range r.ends {
		seq := r.first + uint64(i) //nolint:gosec // an index
		rec, err := messages.ParseRecord(r.key, r.stream, seq, r.data[start:end:end])
		if err != nil {
			yield(messages.Record{}, fmt.Errorf("replay %s: %w", r.key, r.corrupt(seq, "damaged", err)))
			return false
		}
		if !yield(rec, nil) {
			return false
		}
		start = end
	}
	return true
}

func (r *replay) corrupt(seq uint64, reason string, err error) error {
	return &persistence.CorruptError{Key: r.key, Stream: r.stream, Seq: seq, Reason: reason, Err: err}
}

// Sessions implements persistence.Journal.
func (j *Journal) Sessions(
	ctx context.Context, tenant messages.TenantID, after messages.SessionID,
) iter.Seq2[persistence.SessionInfo, error] {
	prefix := append([]byte(tenant), 0)
	return j.scanRows(ctx, "sessions", rowScan{
		bucket: bucketIDs,
		prefix: prefix,
		from:   append(bytes.Clone(prefix), after...),
		load: func(tx *bbolt.Tx, k, v []byte) (*row, error) {
			return rowOf(tx, messages.Key{Tenant: tenant, Session: messages.SessionID(k[len(prefix):])}, k, v)
		},
	})
}

// OpenSessions implements persistence.Journal.
func (j *Journal) OpenSessions(ctx context.Context) iter.Seq2[persistence.SessionInfo, error] {
	return j.scanRows(ctx, "open sessions", rowScan{
		bucket: bucketOpen,
		load: func(tx *bbolt.Tx, k, _ []byte) (*row, error) {
			r, err := rowAt(tx, number(uint64Of(k)))
			if err == nil && !r.deleted && !r.open {
				err = fmt.Errorf("%w: it is not open", errDamaged)
			}
			if err != nil {
				return nil, &persistence.CorruptError{Reason: "row of an open session", Err: err}
			}
			return r, nil
		},
	})
}

// rowScan yields the live rows that the keys of a bucket lead to, in chunks.
type rowScan struct {
	bucket []byte
	prefix []byte // of the keys
	from   []byte // last key read; the scan goes on behind it
	more   bool   // the chunk ended before the keys
	load   func(tx *bbolt.Tx, k, v []byte) (*row, error)
	rows   []rowOrError
}

// rowOrError is a row to yield, or the damage found in its place.
type rowOrError struct {
	row *row
	err error
}

func (j *Journal) scanRows(ctx context.Context, what string, scan rowScan) iter.Seq2[persistence.SessionInfo, error] {
	return func(yield func(persistence.SessionInfo, error) bool) {
		s := scan
		for s.more = true; s.more; {
			err := context.Cause(ctx)
			if err == nil {
				err = j.view(s.read)
			}
			if err != nil {
				yield(persistence.SessionInfo{}, fmt.Errorf("%s: %w", what, err))
				return
			}
			if !s.yield(yield) {
				return
			}
		}
	}
}

func (s *rowScan) read(tx *bbolt.Tx) error {
	s.rows, s.more = nil, false
	c := tx.Bucket(s.bucket).Cursor()
	k, v := c.Seek(s.from)
	if k != nil && bytes.Equal(k, s.from) {
		k, v = c.Next()
	}
	for n := 0; k != nil && bytes.HasPrefix(k, s.prefix); k, v = c.Next() {
		if n++; n > chunkRecords {
			s.more = true
			return nil
		}
		s.from = bytes.Clone(k)
		if r, err := s.load(tx, k, v); err != nil || !r.deleted {
			s.rows = append(s.rows, rowOrError{r, err})
		}
	}
	return nil
}

func (s *rowScan) yield(yield func(persistence.SessionInfo, error) bool) bool {
	for _, r := range s.rows {
		var info persistence.SessionInfo
		if r.err == nil {
			info = r.row.info()
		}
		if !yield(info, r.err) {
			return false
		}
	}
	return true
}
