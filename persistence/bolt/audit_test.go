package bolt

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// damagedMark lies beside a file that a test has damaged: it is not audited.
func damagedMark(path string) string { return path + ".damaged" }

// audit compares all buckets with each other: nothing is missing, nothing is left over, the counters are right.
func audit(t *testing.T, path string, db *bbolt.DB) {
	t.Helper()
	if _, err := os.Stat(damagedMark(path)); err == nil {
		return
	}
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		a := auditor{tx: tx, rows: make(map[number]*row), records: make(map[number][3]uint64)}
		for _, step := range []func() error{a.sessions, a.recordKeys, a.streams, a.feed, a.oldIndex, a.entries, a.order, a.counters} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}))
}

type auditor struct {
	tx      *bbolt.Tx
	rows    map[number]*row
	records map[number][3]uint64 // by stream
	open    uint64
	live    uint64
	events  uint64
}

func (a *auditor) sessions() error {
	for k, v := range all(a.tx.Bucket(bucketSessions)) {
		r, err := decodeRow(number(uint64Of(k)), k, v)
		if err != nil {
			return fmt.Errorf("row %x: %w", k, err)
		}
		id := idKey(r.key)
		if n, err := decodeID(id, a.tx.Bucket(bucketIDs).Get(id)); err != nil || n != r.number {
			return fmt.Errorf("id of %s: %d, %w", r.key, n, err)
		}
		if open := a.tx.Bucket(bucketOpen).Get(k) != nil; open != r.open || (r.open && r.deleted) {
			return fmt.Errorf("%s: open %v, in the set %v, deleted %v", r.key, r.open, open, r.deleted)
		}
		a.rows[r.number] = r
		if !r.deleted {
			a.live++
		}
		if r.open {
			a.open++
		}
	}
	if n := a.tx.Bucket(bucketIDs).Stats().KeyN; n != len(a.rows) {
		return fmt.Errorf("%d ids, %d rows", n, len(a.rows))
	}
	if n := a.tx.Bucket(bucketOpen).Stats().KeyN; uint64(n) != a.open { //nolint:gosec // a count
		return fmt.Errorf("%d in the open set, %d rows are open", n, a.open)
	}
	return nil
}

func (a *auditor) recordKeys() error {
	for k, v := range all(a.tx.Bucket(bucketRecords)) {
		n, stream, seq := number(binary.BigEndian.Uint64(k)), messages.Stream(k[numberLen]), binary.BigEndian.Uint64(k[numberLen+1:])
		r := a.rows[n]
		if r == nil || r.deleted || seq < r.start(stream) || seq > r.head(stream) {
			return fmt.Errorf("record %d/%s/%d is left over", n, stream, seq)
		}
		if stream == messages.StreamEvents {
			at, fseq, err := decodeFeed(v[:positionLen], a.tx.Bucket(bucketFeed).Get(v[:positionLen]))
			if err != nil || at != n || fseq != seq {
				return fmt.Errorf("feed entry of %s event %d: %d, %d, %w", r.key, seq, at, fseq, err)
			}
			v = v[positionLen:]
			a.events++
		}
		if _, err := messages.ParseRecord(r.key, stream, seq, v); err != nil {
			return fmt.Errorf("%s %s record %d: %w", r.key, stream, seq, err)
		}
		counts := a.records[n]
		counts[stream]++
		a.records[n] = counts
	}
	return nil
}

func (a *auditor) streams() error {
	for n, r := range a.rows {
		if r.deleted {
			continue
		}
		for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
			if want := r.head(stream) + 1 - r.start(stream); a.records[n][stream] != want {
				return fmt.Errorf("%s has %d %s records, want %d", r.key, a.records[n][stream], stream, want)
			}
		}
	}
	return nil
}

func (a *auditor) feed() error {
	if n := a.tx.Bucket(bucketFeed).Stats().KeyN; uint64(n) != a.events { //nolint:gosec // a count
		return fmt.Errorf("%d feed entries, %d events", n, a.events)
	}
	return nil
}

func (a *auditor) oldIndex() error {
	for k, v := range all(a.tx.Bucket(bucketIndex)) {
		if r := a.rows[number(binary.BigEndian.Uint64(k))]; r == nil || r.deleted {
			return fmt.Errorf("index entry %x is left over", k)
		}
		if _, err := unseal(k, v); err != nil {
			return fmt.Errorf("index entry %x: %w", k, err)
		}
		if a.tx.Bucket(bucketEntries).Get(k) != nil {
			return fmt.Errorf("index entry %x is there twice", k)
		}
	}
	return nil
}

// entries: each has a place that names it.
func (a *auditor) entries() error {
	for k, v := range all(a.tx.Bucket(bucketEntries)) {
		n, index, name := number(binary.BigEndian.Uint64(k)), persistence.Index(k[numberLen]), string(k[numberLen+1:])
		if r := a.rows[n]; r == nil || r.deleted {
			return fmt.Errorf("index entry %x is left over", k)
		}
		at, _, err := decodeEntry(k, v)
		if err != nil {
			return fmt.Errorf("index entry %x: %w", k, err)
		}
		place := appendPlaceKey(nil, n, index, at)
		if _, found, err := decodePlace(place, a.tx.Bucket(bucketOrder).Get(place)); err != nil || found != name {
			return fmt.Errorf("index entry %x has place %d, which is of %q, %w", k, at, found, err)
		}
	}
	return nil
}

// order: there are as many places as entries, and each row knows how many.
func (a *auditor) order() error {
	type in struct {
		number
		persistence.Index
	}
	counts := make(map[in]uint32)
	places := 0
	for k := range all(a.tx.Bucket(bucketOrder)) {
		counts[in{number(binary.BigEndian.Uint64(k)), persistence.Index(k[numberLen])}]++
		places++
	}
	if n := a.tx.Bucket(bucketEntries).Stats().KeyN; n != places {
		return fmt.Errorf("%d index entries, %d places", n, places)
	}
	for n, r := range a.rows {
		if r.deleted {
			continue
		}
		for _, o := range r.orders {
			if found := counts[in{n, o.index}]; found != o.count {
				return fmt.Errorf("%s has %d places in index %d, its row says %d", r.key, found, o.index, o.count)
			}
			delete(counts, in{n, o.index})
		}
	}
	for at, n := range counts {
		if n > 0 {
			return fmt.Errorf("%d places of session %d, index %d, that no row knows", n, at.number, at.Index)
		}
	}
	return nil
}

func (a *auditor) counters() error {
	c, err := decodeCounters(a.tx.Bucket(bucketMeta).Get(keyCounters))
	if err != nil {
		return err
	}
	if c.sessions != a.live || c.open != a.open || c.events != a.events || c.numbers != uint64(len(a.rows)) {
		return fmt.Errorf("counters %+v, found %d live of %d sessions, %d open, %d events",
			c, a.live, len(a.rows), a.open, a.events)
	}
	return nil
}
