package bolt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// digest stands for the record ids of one append.
type digest [16]byte

// appendRequest is one append, encoded. With err set it was refused at once and waits for its turn to be answered, so that
// the refusal overtakes no answer of the same session.
type appendRequest struct {
	key      messages.Key
	expect   persistence.Expect
	records  []encoded
	events   uint64
	ledgers  uint64
	index    []persistence.IndexPut
	open     persistence.OpenMark
	work     persistence.Work
	prune    bool
	ids      digest
	lastTime int64
	bytes    int

	done func(persistence.Appended, error)
	res  persistence.Appended
	err  error
}

// encoded is a record's stored value: with room for the position in front if it is an event.
type encoded struct {
	stream messages.Stream
	seq    uint64
	value  []byte
}

// Append implements persistence.Journal. The sequences are known from expect, so all encoding is done here.
func (j *Journal) Append(
	key messages.Key, expect persistence.Expect, batch persistence.Batch, done func(persistence.Appended, error),
) {
	r := &appendRequest{key: key, expect: expect, done: done}
	limits := persistence.Limits{RecordBytes: j.cfg.MaxRecordBytes, BatchBytes: j.cfg.MaxBatchBytes}
	if r.err = batch.Check(key, limits); r.err == nil {
		r.encode(&batch)
	}
	j.mu.Lock()
	if r.err == nil {
		if err := j.admit(r.bytes); err != nil {
			r.err = fmt.Errorf("append to %s: %w", key, err)
		}
	}
	if r.err != nil {
		r.records, r.index, r.bytes = nil, nil, 0
	}
	if j.stopped {
		j.mu.Unlock()
		go done(persistence.Appended{}, r.err)
		return
	}
	j.push(r)
	j.mu.Unlock()
	j.signal()
}

func (r *appendRequest) encode(batch *persistence.Batch) {
	for i := range batch.Records {
		r.bytes += positionLen + batch.Records[i].StoredSize()
	}
	buf := make([]byte, 0, r.bytes)
	r.records = make([]encoded, len(batch.Records))
	ids := sha256.New()
	for i := range batch.Records {
		rec := batch.Records[i]
		rec.Epoch = r.expect.Epoch
		start := len(buf)
		if rec.Stream == messages.StreamEvents {
			r.events++
			rec.Seq = r.expect.EventHead + r.events
			buf = append(buf, make([]byte, positionLen)...)
		} else {
			r.ledgers++
			rec.Seq = r.expect.LedgerHead + r.ledgers
		}
		var err error
		if buf, err = messages.AppendRecord(buf, r.key, &rec); err != nil {
			r.err = fmt.Errorf("append to %s: %w: %w", r.key, persistence.ErrInvalid, err)
			return
		}
		r.records[i] = encoded{rec.Stream, rec.Seq, buf[start:len(buf):len(buf)]}
		ids.Write(rec.ID[:])
		r.lastTime = nanos(rec.Time)
	}
	copy(r.ids[:], ids.Sum(nil))
	r.index = slices.Clone(batch.Index)
	for i := range r.index {
		r.index[i].Value = bytes.Clone(r.index[i].Value)
		r.bytes += len(r.index[i].Name) + len(r.index[i].Value)
	}
	r.open, r.work, r.prune = batch.Open, batch.Work, batch.PruneLedger
}

func (r *appendRequest) size() int { return r.bytes }

func (r *appendRequest) answer(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("append to %s: %w", r.key, err)
	}
	if r.err != nil {
		r.res = persistence.Appended{}
	}
	r.done(r.res, r.err)
}

func (r *appendRequest) decide(b *batch) {
	if r.err != nil {
		return
	}
	if r.err = r.store(b); r.err != nil {
		r.err = fmt.Errorf("append to %s: %w", r.key, r.err)
	}
}

func (r *appendRequest) store(b *batch) error {
	old, err := b.row(r.key)
	if err != nil {
		return err
	}
	if old == nil {
		old = &row{key: r.key}
	}
	if old.deleted {
		return persistence.ErrDeleted
	}
	if err := b.fenced(r.key, r.expect.Epoch); err != nil {
		return err
	}
	if old.epoch == r.expect.Epoch && old.lastIDs == r.ids {
		r.res = persistence.Appended{
			EventHead: old.eventHead, LedgerHead: old.ledgerHead, Position: old.lastEvent, Duplicate: true,
		}
		return nil
	}
	if err := conflict(old, r.expect); err != nil {
		return err
	}
	next := *old
	r.stage(b, &next)
	r.res = persistence.Appended{EventHead: next.eventHead, LedgerHead: next.ledgerHead, Position: next.lastEvent}
	return nil
}

// stage puts the append into the batch; next is the session's row, to be changed.
func (r *appendRequest) stage(b *batch, next *row) {
	if next.number == 0 {
		b.counters.numbers++
		b.counters.sessions++
		next.number = number(b.counters.numbers)
		b.fresh = append(b.fresh, next)
	}
	next.lastEvent = 0
	for _, rec := range r.records {
		key := appendRecordKey(b.room(recordKey), next.number, rec.stream, rec.seq)
		if rec.stream == messages.StreamEvents {
			b.counters.position++
			b.counters.events++
			next.lastEvent = b.counters.position
			binary.BigEndian.PutUint64(rec.value, next.lastEvent)
			place := binary.BigEndian.AppendUint64(b.room(positionLen), next.lastEvent)
			b.feed = append(b.feed, put{place, encodeFeed(b.room(feedLen), place, next.number, rec.seq)})
		}
		b.records = append(b.records, put{key, rec.value})
	}
	if r.ledgers > 0 && (r.prune || next.ledgerStart == 0) {
		if next.ledgerStart > 0 {
			b.prunes = append(b.prunes, prune{next.number, next.ledgerStart, next.ledgerHead + 1})
		}
		next.ledgerStart = next.ledgerHead + 1
	}
	next.eventHead += r.events
	next.ledgerHead += r.ledgers
	next.epoch, next.lastIDs, next.lastAppend, next.work = r.expect.Epoch, r.ids, r.lastTime, r.work
	b.putIndex(next, r.index)
	switch r.open {
	case persistence.OpenSet:
		b.mark(next, true)
	case persistence.OpenClear:
		b.mark(next, false)
	case persistence.OpenKeep:
	}
	b.appends++
	b.stage(next)
}

// fenced says whether epoch is not the session's claim.
func (b *batch) fenced(key messages.Key, epoch uint64) error {
	if claim, ok := b.j.claims[key]; !ok || claim != epoch {
		return fmt.Errorf("%w: epoch %d, the claim has %d", persistence.ErrFenced, epoch, claim)
	}
	return nil
}

func conflict(r *row, expect persistence.Expect) error {
	if r.eventHead == expect.EventHead && r.ledgerHead == expect.LedgerHead {
		return nil
	}
	return &persistence.ConflictError{Key: r.key, Expect: expect, EventHead: r.eventHead, LedgerHead: r.ledgerHead}
}

// mark changes the session's place in the set of open ones.
func (b *batch) mark(r *row, open bool) {
	if r.open == open {
		return
	}
	if r.open = open; open {
		b.counters.open++
	} else {
		b.counters.open--
	}
	b.opens = append(b.opens, openChange{r.number, open})
}

// apply writes what was staged. Sorted: bbolt finds the place of a key near the last one without searching from the root,
// which gave 13 % more.
func (b *batch) apply() error {
	w := writer{tx: b.tx, err: b.indexErr}
	slices.SortFunc(b.records, func(x, y put) int { return bytes.Compare(x.key, y.key) })
	w.putAll(bucketRecords, 0.5, b.records)
	// Positions only rise: full pages leave no gaps that would never be filled.
	w.putAll(bucketFeed, 1.0, b.feed)
	for _, r := range b.rows {
		key := binary.BigEndian.AppendUint64(b.room(numberLen), uint64(r.number))
		b.changed = append(b.changed, put{key, r.encode(b.room(r.size()), key)})
	}
	slices.SortFunc(b.changed, func(x, y put) int { return bytes.Compare(x.key, y.key) })
	w.putAll(bucketSessions, 0.5, b.changed)
	for _, r := range b.fresh {
		id := idKey(r.key)
		w.put(bucketIDs, id, encodeID(id, r.number))
	}
	for _, o := range b.opens {
		value := []byte{1}
		if !o.open {
			value = nil
		}
		w.put(bucketOpen, o.number.key(), value)
	}
	for _, p := range b.prunes {
		// The keys are known: a ledger has no holes. The writer bounds what lies between two checkpoints.
		for seq := p.from; seq < p.to; seq++ {
			w.put(bucketRecords, appendRecordKey(nil, p.number, messages.StreamLedger, seq), nil)
		}
	}
	w.put(bucketMeta, keyCounters, b.counters.encode())
	return w.err
}

// writer puts until the first error.
type writer struct {
	tx  *bbolt.Tx
	err error
}

func (w *writer) putAll(bucket []byte, fill float64, puts []put) {
	if len(puts) == 0 {
		return
	}
	b := w.tx.Bucket(bucket)
	b.FillPercent = fill
	for _, p := range puts {
		w.one(b, p.key, p.value)
	}
}

func (w *writer) put(bucket, key, value []byte) { w.one(w.tx.Bucket(bucket), key, value) }

func (w *writer) one(b *bbolt.Bucket, key, value []byte) {
	switch {
	case w.err != nil:
	case value == nil:
		w.err = b.Delete(key)
	default:
		w.err = b.Put(key, value)
	}
}

// isFailure says whether the journal must stop.
func isFailure(err error) bool { return errors.Is(err, persistence.ErrFailed) }

// nextEpoch is larger than every epoch before it, of this boot and of earlier ones.
func (j *Journal) nextEpoch() (uint64, error) {
	if j.claimed == math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d claims since it was opened", persistence.ErrFailed, j.claimed)
	}
	j.claimed++
	return j.boot<<32 | j.claimed, nil
}
