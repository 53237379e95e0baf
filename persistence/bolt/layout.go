package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// The file, all numbers big-endian. A session is interned to a number at its first append: new sessions get neighbouring
// numbers, so the sessions that are active together share leaf pages, and a commit rewrites few of them.
//
//	meta      "header", "counters"                  → see header, counters
//	ids       tenant 0x00 session                   → crc32c(4) number
//	sessions  number                                → row
//	records   number stream(1) seq                  → [position] record      position: of event records only
//	feed      position                              → crc32c(4) number seq
//	index     number index(1) name                  → crc32c(4) value, of format 1
//	entries   number index(1) name                  → crc32c(4) place value
//	order     number index(1) place                 → crc32c(4) expires name
//	open      number                                → 1
//
// bbolt has no checksums over data. Every value carries one that covers its key too, except those that are checked against
// another: open against the row's flag, a record's position against the feed. A damaged key of ids would make a session
// unknown without a word, so Open looks at all of ids and mends it from the rows.
//
// Format 2 added a row's work and the order of index entries. A file of format 1 is read as it is: a row without work has none,
// and the entries in index have no place in the order; they are found, and stay until they are put again or removed, or the
// session is deleted. Open makes it a file of format 2, which builds of format 1 refuse: they would read a row's work as part
// of the session's name.
const formatVersion = 2

var (
	bucketMeta     = []byte("meta")
	bucketIDs      = []byte("ids")
	bucketSessions = []byte("sessions")
	bucketRecords  = []byte("records")
	bucketFeed     = []byte("feed")
	bucketIndex    = []byte("index")
	bucketOpen     = []byte("open")
	bucketEntries  = []byte("entries")
	bucketOrder    = []byte("order")

	format1Buckets = [][]byte{bucketMeta, bucketIDs, bucketSessions, bucketRecords, bucketFeed, bucketIndex, bucketOpen}
	allBuckets     = append(slices.Clone(format1Buckets), bucketEntries, bucketOrder)

	keyHeader   = []byte("header")
	keyCounters = []byte("counters")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// errDamaged is wrapped by every decoder here.
var errDamaged = errors.New("damaged value")

const (
	numberLen   = 8
	recordKey   = numberLen + 1 + 8
	positionLen = 8
	feedLen     = 4 + 8 + 8
	crcLen      = 4
)

// number is a session's interned name; 0 is none.
type number uint64

func (n number) key() []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func appendRecordKey(dst []byte, n number, stream messages.Stream, seq uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	dst = append(dst, byte(stream))
	return binary.BigEndian.AppendUint64(dst, seq)
}

func idKey(key messages.Key) []byte {
	b := make([]byte, 0, len(key.Tenant)+1+len(key.Session))
	return append(append(append(b, key.Tenant...), 0), key.Session...)
}

func indexKey(n number, index persistence.Index, name string) []byte {
	b := make([]byte, 0, numberLen+1+len(name))
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	return append(append(b, byte(index)), name...)
}

func uint64Of(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// seal puts the checksum over key and body in front of body; b has room for it.
func seal(key, b []byte) []byte {
	binary.BigEndian.PutUint32(b, crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, b[crcLen:]))
	return b
}

// unseal gives the body of a sealed value.
func unseal(key, b []byte) ([]byte, error) {
	if len(b) < crcLen {
		return nil, fmt.Errorf("%w: %d bytes", errDamaged, len(b))
	}
	if binary.BigEndian.Uint32(b) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, b[crcLen:]) {
		return nil, fmt.Errorf("%w: checksum does not match", errDamaged)
	}
	return b[crcLen:], nil
}

// header says what the file is. It is written once, and again when the file gets a newer format.
type header struct {
	format uint32
	// features that a reader must know; none exist yet.
	features    uint32
	created     int64
	incarnation string
}

func (h header) encode() []byte {
	b := make([]byte, crcLen, 64)
	b = binary.BigEndian.AppendUint32(b, h.format)
	b = binary.BigEndian.AppendUint32(b, h.features)
	b = binary.BigEndian.AppendUint64(b, uint64(h.created)) //nolint:gosec // the bits are kept
	return seal(keyHeader, append(b, h.incarnation...))
}

func decodeHeader(v []byte) (header, error) {
	b, err := unseal(keyHeader, v)
	if err != nil {
		return header{}, err
	}
	if len(b) < 16 {
		return header{}, fmt.Errorf("%w: header of %d bytes", errDamaged, len(b))
	}
	return header{
		format:      binary.BigEndian.Uint32(b),
		features:    binary.BigEndian.Uint32(b[4:]),
		created:     int64(binary.BigEndian.Uint64(b[8:])), //nolint:gosec // the bits are kept
		incarnation: string(b[16:]),
	}, nil
}

// counters change with every commit. The meta bucket is small enough to lie inline in the root page, which every commit
// writes anyway, so they cost no page.
type counters struct {
	boot     uint64 // times the file was opened for writing
	numbers  uint64 // last session number given
	position uint64 // last feed position given
	sessions uint64 // without deleted ones
	open     uint64
	events   uint64 // stored event records
}

func (c *counters) fields() [6]*uint64 {
	return [6]*uint64{&c.boot, &c.numbers, &c.position, &c.sessions, &c.open, &c.events}
}

func (c counters) encode() []byte {
	b := make([]byte, crcLen, crcLen+6*8)
	for _, f := range c.fields() {
		b = binary.BigEndian.AppendUint64(b, *f)
	}
	return seal(keyCounters, b)
}

func decodeCounters(v []byte) (counters, error) {
	var c counters
	b, err := unseal(keyCounters, v)
	if err != nil {
		return c, err
	}
	fields := c.fields()
	if len(b) < len(fields)*8 {
		return c, fmt.Errorf("%w: counters of %d bytes", errDamaged, len(b))
	}
	for i, f := range fields {
		*f = binary.BigEndian.Uint64(b[i*8:])
	}
	return c, nil
}

// row is a session's state. It holds both heads: a hole check alone cannot see a lost tail.
type row struct {
	number      number
	key         messages.Key
	eventHead   uint64
	ledgerHead  uint64
	ledgerStart uint64 // oldest kept ledger record; 0 if none
	epoch       uint64 // of the last append
	lastAppend  int64  // writer's time, Unix nanoseconds
	lastEvent   uint64 // position that the last append was answered with
	lastIDs     digest // record ids of the last append
	open        bool
	deleted     bool
	work        persistence.Work
	orders      []indexOrder // shared with older copies of the row, and replaced as a whole
}

const (
	rowOpen    = 1 << 0
	rowDeleted = 1 << 1
	rowRunning = 1 << 2
	rowWaiting = 1 << 3 // the number of waiting turns is there
	rowOrders  = 1 << 4 // so are the orders

	rowFixed   = 1 + 6*8 + len(digest{}) + 1
	waitingLen = 4
)

func (r *row) size() int {
	return crcLen + rowFixed + waitingLen + 1 + len(r.orders)*orderLen + len(r.key.Tenant) + len(r.key.Session)
}

func (r *row) flags() byte {
	var flags byte
	for _, f := range [...]struct {
		set bool
		bit byte
	}{
		{r.open, rowOpen},
		{r.deleted, rowDeleted},
		{r.work.Running, rowRunning},
		{r.work.Waiting > 0, rowWaiting},
		{len(r.orders) > 0, rowOrders},
	} {
		if f.set {
			flags |= f.bit
		}
	}
	return flags
}

// encode writes the row to dst, which is empty.
func (r *row) encode(dst, key []byte) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = append(dst, r.flags())
	for _, f := range [...]uint64{
		r.eventHead, r.ledgerHead, r.ledgerStart, r.epoch, uint64(r.lastAppend), r.lastEvent, //nolint:gosec // the bits are kept
	} {
		dst = binary.BigEndian.AppendUint64(dst, f)
	}
	dst = append(dst, r.lastIDs[:]...)
	if r.work.Waiting > 0 {
		dst = binary.BigEndian.AppendUint32(dst, r.work.Waiting)
	}
	dst = appendOrders(dst, r.orders)
	dst = append(dst, byte(len(r.key.Tenant)))
	return seal(key, append(append(dst, r.key.Tenant...), r.key.Session...))
}

func decodeRow(n number, key, v []byte) (*row, error) {
	b, err := unseal(key, v)
	if err != nil {
		return nil, err
	}
	if len(b) < rowFixed {
		return nil, fmt.Errorf("%w: row of %d bytes", errDamaged, len(b))
	}
	flags, rest := b[0], b[1:]
	r := &row{number: n, open: flags&rowOpen != 0, deleted: flags&rowDeleted != 0}
	for _, f := range [...]*uint64{&r.eventHead, &r.ledgerHead, &r.ledgerStart, &r.epoch} {
		*f, rest = binary.BigEndian.Uint64(rest), rest[8:]
	}
	r.lastAppend = int64(binary.BigEndian.Uint64(rest)) //nolint:gosec // the bits are kept
	r.lastEvent = binary.BigEndian.Uint64(rest[8:])
	copy(r.lastIDs[:], rest[16:])
	rest = rest[16+len(r.lastIDs):]
	r.work.Running = flags&rowRunning != 0
	if flags&rowWaiting != 0 && len(rest) >= waitingLen {
		r.work.Waiting, rest = binary.BigEndian.Uint32(rest), rest[waitingLen:]
	}
	if flags&rowOrders != 0 {
		r.orders, rest = decodeOrders(rest)
	}
	if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
		return nil, fmt.Errorf("%w: row of %d bytes", errDamaged, len(b))
	}
	tenant, rest := int(rest[0]), rest[1:]
	r.key.Tenant, r.key.Session = messages.TenantID(rest[:tenant]), messages.SessionID(rest[tenant:])
	return r, nil
}

func (r *row) info() persistence.SessionInfo {
	return persistence.SessionInfo{
		Key:         r.key,
		EventHead:   r.eventHead,
		LedgerHead:  r.ledgerHead,
		LedgerStart: r.ledgerStart,
		Epoch:       r.epoch,
		Open:        r.open,
		Work:        r.work,
		LastAppend:  time.Unix(0, r.lastAppend).UTC(),
	}
}

func (r *row) head(stream messages.Stream) uint64 {
	if stream == messages.StreamLedger {
		return r.ledgerHead
	}
	return r.eventHead
}

// start is the sequence of the oldest record that must be there.
func (r *row) start(stream messages.Stream) uint64 {
	if stream == messages.StreamLedger {
		return max(1, r.ledgerStart)
	}
	return 1
}

// encodeFeed writes a feed entry to dst, which is empty.
func encodeFeed(dst, key []byte, n number, seq uint64) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	return seal(key, binary.BigEndian.AppendUint64(dst, seq))
}

func decodeFeed(key, v []byte) (number, uint64, error) {
	b, err := unseal(key, v)
	if err != nil {
		return 0, 0, err
	}
	if len(b) != feedLen-crcLen {
		return 0, 0, fmt.Errorf("%w: feed entry of %d bytes", errDamaged, len(b))
	}
	return number(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:]), nil
}

func encodeID(key []byte, n number) []byte {
	return seal(key, binary.BigEndian.AppendUint64(make([]byte, crcLen, crcLen+numberLen), uint64(n)))
}

func decodeID(key, v []byte) (number, error) {
	b, err := unseal(key, v)
	if err != nil {
		return 0, err
	}
	return number(uint64Of(b)), nil
}
