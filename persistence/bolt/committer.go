package bolt

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Bounds of one commit: what is more stays for the next. A very large transaction is slow and delays everybody in it.
const (
	maxCommitRequests = 4096
	maxCommitBytes    = 4 << 20
)

// request is what the committer carries out.
type request interface {
	// decide runs in the order of the queue, inside the transaction; what it stages is stored with all the others or not.
	decide(b *batch)
	// answer runs after the transaction, in the same order; err says why nothing was stored.
	answer(err error)
	size() int
}

// enqueue adds a request of the journal's own; callers wait for its answer, so there are no more than callers.
func (j *Journal) enqueue(r request) error {
	if err := j.failed(); err != nil {
		return err
	}
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		return persistence.ErrClosed
	}
	j.push(r)
	j.mu.Unlock()
	j.signal()
	return nil
}

func (j *Journal) push(r request) {
	j.queue = append(j.queue, r)
	j.waiting += r.size()
}

// admit says whether one more append may wait. The caller holds mu.
func (j *Journal) admit(size int) error {
	switch {
	case j.closing:
		return persistence.ErrClosed
	case len(j.queue) >= j.cfg.QueueLimit:
		return fmt.Errorf("%w: %d appends wait", persistence.ErrFull, len(j.queue))
	case j.waiting+size > j.cfg.QueueBytes:
		return fmt.Errorf("%w: %d bytes wait", persistence.ErrFull, j.waiting)
	}
	return nil
}

// committer is the one goroutine that writes.
//
// After each commit, and after waking, it lets other goroutines run before it drains the queue. Without that, batches settle
// at half of the writers: the half that was just answered has not queued its next append yet when the drain comes, so it
// misses the commit and the other half misses the one after (two cohorts). Four yields cost less than a microsecond when
// nobody is runnable and made a commit of 16 writers hold 15.9 appends instead of 8.0; a timer would cost a lone writer its
// whole delay.
func (j *Journal) committer() {
	defer close(j.ended)
	for {
		batch, more := j.take()
		switch {
		case len(batch) > 0:
			j.commit(batch)
		case !more:
			return
		default:
			<-j.wake
		}
		for range 4 {
			runtime.Gosched()
		}
	}
}

// take gives the requests of the next commit; more is false when there is none and will be none.
func (j *Journal) take() (batch []request, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, size := 0, 0
	for n < len(j.queue) && n < maxCommitRequests {
		size += j.queue[n].size()
		if n > 0 && size > maxCommitBytes {
			size -= j.queue[n].size()
			break
		}
		n++
	}
	if n == 0 {
		j.stopped = j.closing
		return nil, !j.closing
	}
	batch = j.queue[:n:n]
	// The rest keeps its place in the array; append makes a new one when it is used up.
	j.queue = j.queue[n:]
	j.waiting -= size
	return batch, true
}

func (j *Journal) commit(requests []request) {
	err := j.failed()
	if err == nil {
		if err = j.write(requests); err != nil && isFailure(err) {
			j.fail(err)
		}
	}
	for _, r := range requests {
		r.answer(err)
	}
	clear(requests) // the queue's array must not keep what was answered
}

// write carries out the requests in one transaction. A transaction in which nothing was staged is rolled back, not synced.
func (j *Journal) write(requests []request) (err error) {
	b := &j.batch
	b.reset(j)
	defer func() {
		if p := recover(); p != nil {
			// bbolt panics on pages that make no sense, and its rollback may panic again, which leaves its lock held.
			j.wedged = b.tx != nil
			err = fmt.Errorf("commit: %w: panic: %v", persistence.ErrFailed, p)
		}
	}()
	if b.tx, err = j.db.Begin(true); err != nil {
		return commitError(err)
	}
	for _, r := range requests {
		r.decide(b)
	}
	if !b.dirty {
		err = b.tx.Rollback()
		b.tx = nil
		if err != nil {
			return commitError(err)
		}
		return nil
	}
	if err := b.apply(); err != nil {
		return commitError(b.giveUp(err))
	}
	if err := b.tx.Commit(); err != nil {
		return commitError(err)
	}
	b.tx = nil
	// A file that was removed or replaced takes every write without an error, and loses it.
	if err := j.inPlace(); err != nil {
		return err
	}
	j.committed(b)
	return nil
}

// committed makes what the batch staged the committer's truth.
func (j *Journal) committed(b *batch) {
	grew := b.counters.position != j.counters.position
	j.counters = b.counters
	for key, r := range b.rows {
		j.rows.put(key, r)
		if r.deleted {
			delete(j.claims, key)
		}
	}
	j.commits.Add(1)
	j.appends.Add(b.appends)
	j.mu.Lock()
	j.stats = j.counters
	j.mu.Unlock()
	if grew {
		j.broadcast()
	}
}

func (j *Journal) inPlace() error {
	info, err := os.Stat(j.cfg.Path)
	if err != nil {
		return fmt.Errorf("commit: %w: the file is gone: %w", persistence.ErrFailed, err)
	}
	if !os.SameFile(info, j.file) {
		return fmt.Errorf("commit: %w: the file was replaced", persistence.ErrFailed)
	}
	return nil
}

// batch is what one transaction will hold.
type batch struct {
	j        *Journal
	tx       *bbolt.Tx
	counters counters
	dirty    bool
	appends  uint64
	rows     map[messages.Key]*row // changed by this batch
	fresh    []*row                // sessions that are new
	records  []put
	feed     []put
	indexErr error // index entries are written as they come
	changed  []put // encoded rows
	opens    []openChange
	prunes   []prune
	arena    []byte
}

// reset begins a new batch in the memory of the last one.
func (b *batch) reset(j *Journal) {
	clear(b.rows)
	clear(b.records) // the appends are answered, let go of their bytes
	*b = batch{
		j: j, counters: j.counters, rows: b.rows, fresh: b.fresh[:0], records: b.records[:0], feed: b.feed[:0],
		changed: b.changed[:0], opens: b.opens[:0], prunes: b.prunes[:0], arena: b.arena[:0],
	}
}

// room gives n bytes to append to, valid until the next batch: bbolt keeps values until the commit and copies keys.
func (b *batch) room(n int) []byte {
	if cap(b.arena)-len(b.arena) < n {
		b.arena = make([]byte, 0, max(n, 64<<10))
	}
	start := len(b.arena)
	b.arena = b.arena[:start+n]
	return b.arena[start : start : start+n]
}

// put is a key with its value; a nil value removes the key.
type put struct{ key, value []byte }

type openChange struct {
	number number
	open   bool
}

// prune is a range [from, to) of ledger records.
type prune struct {
	number   number
	from, to uint64
}

// row gives the session's row as the batch has it so far; nil if the session has none.
func (b *batch) row(key messages.Key) (*row, error) {
	if r := b.rows[key]; r != nil {
		return r, nil
	}
	return b.committed(key)
}

// committed gives the session's row as it was before the batch.
func (b *batch) committed(key messages.Key) (*row, error) {
	if r := b.j.rows.get(key); r != nil {
		return r, nil
	}
	r, err := loadRow(b.tx, key)
	if err == nil && r != nil {
		b.j.rows.put(key, r)
	}
	return r, err
}

// stage makes r, a changed copy, the row of its session.
func (b *batch) stage(r *row) {
	if b.rows == nil {
		b.rows = make(map[messages.Key]*row)
	}
	b.rows[r.key] = r
	b.dirty = true
}

// giveUp rolls the transaction back after err.
func (b *batch) giveUp(err error) error {
	if rollback := b.tx.Rollback(); rollback != nil {
		err = fmt.Errorf("%w; roll back: %w", err, rollback)
	}
	b.tx = nil
	return err
}

// loadRow reads a session's row; nil if it has none. Errors: persistence.CorruptError.
func loadRow(tx *bbolt.Tx, key messages.Key) (*row, error) {
	id := idKey(key)
	v := tx.Bucket(bucketIDs).Get(id)
	if v == nil {
		return nil, nil //nolint:nilnil // no row is no error
	}
	return rowOf(tx, key, id, v)
}

// rowOf reads the row that an entry of ids leads to. Errors: persistence.CorruptError.
func rowOf(tx *bbolt.Tx, key messages.Key, id, v []byte) (*row, error) {
	n, err := decodeID(id, v)
	if err != nil {
		return nil, &persistence.CorruptError{Key: key, Reason: "id", Err: err}
	}
	r, err := rowAt(tx, n)
	if err == nil && r.key != key {
		err = fmt.Errorf("%w: it names %s", errDamaged, r.key)
	}
	if err != nil {
		return nil, &persistence.CorruptError{Key: key, Reason: "row", Err: err}
	}
	return r, nil
}

// rowAt reads the row of a number that must have one.
func rowAt(tx *bbolt.Tx, n number) (*row, error) {
	key := n.key()
	return decodeRow(n, key, tx.Bucket(bucketSessions).Get(key))
}

// rowCache keeps the rows that were used last, so that an append reads none. Two generations: when the young one is full, it
// becomes the old one and what has not been used since is forgotten.
type rowCache struct{ young, old map[messages.Key]*row }

const cacheGeneration = 1 << 12

func (c *rowCache) get(key messages.Key) *row {
	if r := c.young[key]; r != nil {
		return r
	}
	r := c.old[key]
	if r != nil {
		c.put(key, r)
	}
	return r
}

func (c *rowCache) put(key messages.Key, r *row) {
	if c.young == nil || len(c.young) >= cacheGeneration {
		c.old, c.young = c.young, make(map[messages.Key]*row)
	}
	c.young[key] = r
}

func nanos(t time.Time) int64 { return t.UnixNano() }
