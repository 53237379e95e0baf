package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// indexOrder is what a session's row knows of one of its indexes.
type indexOrder struct {
	index persistence.Index
	// count of the places in the order bucket.
	count uint32
	// last place given. Places are never used again.
	last uint64
}

const (
	orderLen = 1 + 4 + 8
	placeLen = 8
	placeKey = numberLen + 1 + placeLen
)

func appendOrders(dst []byte, orders []indexOrder) []byte {
	if len(orders) == 0 {
		return dst
	}
	dst = append(dst, byte(len(orders))) //nolint:gosec // an index is one byte: there are at most 255
	for _, o := range orders {
		dst = append(dst, byte(o.index))
		dst = binary.BigEndian.AppendUint32(dst, o.count)
		dst = binary.BigEndian.AppendUint64(dst, o.last)
	}
	return dst
}

// decodeOrders gives what lies behind the orders; nothing if b is too short.
func decodeOrders(b []byte) (orders []indexOrder, rest []byte) {
	if len(b) == 0 || len(b) < 1+int(b[0])*orderLen {
		return nil, nil
	}
	orders, rest = make([]indexOrder, b[0]), b[1:]
	for i := range orders {
		orders[i] = indexOrder{
			index: persistence.Index(rest[0]), count: binary.BigEndian.Uint32(rest[1:]), last: binary.BigEndian.Uint64(rest[5:]),
		}
		rest = rest[orderLen:]
	}
	return orders, rest
}

// orderOf gives the row's knowledge of an index, to be changed: the orders must be the row's own.
func (r *row) orderOf(index persistence.Index) *indexOrder {
	i := slices.IndexFunc(r.orders, func(o indexOrder) bool { return o.index == index })
	if i < 0 {
		i, r.orders = len(r.orders), append(r.orders, indexOrder{index: index})
	}
	return &r.orders[i]
}

// entry is a value of the bucket entries.
func encodeEntry(key []byte, place uint64, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, crcLen, crcLen+placeLen+len(value)), place)
	return seal(key, append(b, value...))
}

func decodeEntry(key, v []byte) (place uint64, value []byte, err error) {
	b, err := unseal(key, v)
	if err == nil && len(b) < placeLen {
		err = fmt.Errorf("%w: index entry of %d bytes", errDamaged, len(b))
	}
	if err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint64(b), b[placeLen:], nil
}

// findEntry gives the value of an index entry, valid as long as tx; nil if there is none.
func findEntry(tx *bbolt.Tx, key []byte) ([]byte, error) {
	if v := tx.Bucket(bucketEntries).Get(key); v != nil {
		_, value, err := decodeEntry(key, v)
		return value, err
	}
	if v := tx.Bucket(bucketIndex).Get(key); v != nil {
		return unseal(key, v)
	}
	return nil, nil
}

func appendPlaceKey(dst []byte, n number, index persistence.Index, place uint64) []byte {
	dst = append(binary.BigEndian.AppendUint64(dst, uint64(n)), byte(index))
	return binary.BigEndian.AppendUint64(dst, place)
}

// encodePlace writes a value of the bucket order.
func encodePlace(key []byte, expires int64, name string) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, crcLen, crcLen+8+len(name)), uint64(expires)) //nolint:gosec // the bits are kept
	return seal(key, append(b, name...))
}

func decodePlace(key, v []byte) (expires int64, name string, err error) {
	b, err := unseal(key, v)
	if err == nil && (len(b) < 8 || len(key) != placeKey) {
		err = fmt.Errorf("%w: place of %d bytes", errDamaged, len(b))
	}
	if err != nil {
		return 0, "", err
	}
	return int64(binary.BigEndian.Uint64(b)), string(b[8:]), nil //nolint:gosec // the bits are kept
}

// expiry is a time as it is stored: 0 is never, as is what lies beyond the last time that can be stored.
func expiry(t time.Time) int64 {
	switch {
	case t.IsZero() || t.After(time.Unix(0, math.MaxInt64)):
		return 0
	case t.Before(time.Unix(0, 1)):
		return 1
	}
	return t.UnixNano()
}

// putIndex carries out the puts of one append; next is its session's row, to be changed. They are written at once, since a put
// must see the ones before it, of this append and of those that share the transaction.
func (b *batch) putIndex(next *row, puts []persistence.IndexPut) {
	if len(puts) == 0 {
		return
	}
	next.orders = slices.Clone(next.orders)
	x := indexer{
		b: b, row: next, w: writer{tx: b.tx, err: b.indexErr},
		old: b.tx.Bucket(bucketIndex), entries: b.tx.Bucket(bucketEntries), order: b.tx.Bucket(bucketOrder),
	}
	for i := range puts {
		x.put(&puts[i])
	}
	b.indexErr = x.w.err
}

// indexer writes index entries of one session.
type indexer struct {
	b       *batch
	row     *row
	w       writer
	old     *bbolt.Bucket // entries of format 1
	entries *bbolt.Bucket
	order   *bbolt.Bucket
}

func (x *indexer) put(p *persistence.IndexPut) {
	o := x.row.orderOf(p.Index)
	key := indexKey(x.row.number, p.Index, p.Name)
	x.leave(o, key)
	if p.Value == nil {
		x.w.one(x.entries, key, nil)
		return
	}
	o.last++
	o.count++
	place := appendPlaceKey(x.b.room(placeKey), x.row.number, p.Index, o.last)
	x.w.one(x.entries, key, encodeEntry(key, o.last, p.Value))
	x.w.one(x.order, place, encodePlace(place, expiry(p.Expires), p.Name))
	x.trim(o, p.Keep)
}

// leave gives up the place of the entry that is there, so that it can be overwritten. If the entry is damaged its place is
// not known, and is freed when it is the oldest.
func (x *indexer) leave(o *indexOrder, key []byte) {
	if x.old.Get(key) != nil {
		x.w.one(x.old, key, nil) // else it would be found again when the new one is gone
	}
	if v := x.entries.Get(key); v != nil {
		if at, _, err := decodeEntry(key, v); err == nil {
			x.free(o, appendPlaceKey(x.b.room(placeKey), x.row.number, o.index, at))
		}
	}
}

func (x *indexer) free(o *indexOrder, place []byte) {
	if o.count > 0 && x.order.Get(place) != nil {
		o.count--
		x.w.one(x.order, place, nil)
	}
}

// trim removes the oldest entries that have expired or are too many, a few only.
func (x *indexer) trim(o *indexOrder, keep int) {
	first := appendPlaceKey(x.b.room(placeKey), x.row.number, o.index, 0)
	for range persistence.TrimPerPut {
		k, v := x.order.Cursor().Seek(first)
		if !bytes.HasPrefix(k, first[:numberLen+1]) {
			return
		}
		place := append(x.b.room(len(k)), k...) // what lies in a page moves when the page changes
		expires, name, err := decodePlace(place, v)
		switch {
		case err != nil:
			// Nobody reads a place but this: what it stood for is found as before, and is never trimmed.
			x.b.j.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "journal drops a damaged place in the order of an index",
				slog.String(messages.AttrTenant, string(x.row.key.Tenant)), slog.String(messages.AttrSession, string(x.row.key.Session)),
				slog.Any(messages.AttrError, err))
		case (expires == 0 || expires > x.row.lastAppend) && (keep == 0 || int64(o.count) <= int64(keep)):
			return
		default:
			x.drop(indexKey(x.row.number, o.index, name), binary.BigEndian.Uint64(place[numberLen+1:]))
		}
		x.free(o, place)
	}
}

// drop removes the entry that has the place; one that was put again after damage has another. A damaged entry stays: a look-up
// must find the damage, not nothing.
func (x *indexer) drop(key []byte, place uint64) {
	if v := x.entries.Get(key); v != nil {
		if at, _, err := decodeEntry(key, v); err == nil && at == place {
			x.w.one(x.entries, key, nil)
		}
	}
}
