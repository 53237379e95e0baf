package messages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/google/uuid"
)

// Stream is one of a session's two record streams.
type Stream uint8

// Streams.
const (
	StreamEvents Stream = 1
	StreamLedger Stream = 2
)

// String names the stream.
func (s Stream) String() string {
	switch s {
	case StreamEvents:
		return "events"
	case StreamLedger:
		return "ledger"
	}
	return fmt.Sprintf("stream(%d)", uint8(s))
}

// RecordFlags qualify a record.
type RecordFlags uint8

// Flags. A reader refuses a record with a flag that it does not know.
const (
	// FlagIgnorable: a reader that does not know the type may skip it.
	FlagIgnorable RecordFlags = 1 << iota
	// FlagEncrypted: the payload is encrypted (reserved).
	FlagEncrypted
	// FlagCompressed: the payload is compressed (reserved).
	FlagCompressed

	knownFlags = FlagIgnorable
)

// RecordID is a UUIDv7 given by the writer: an append that is tried again with the same ids is answered as the first time.
type RecordID [16]byte

// NewRecordID makes a record id.
func NewRecordID() RecordID { return RecordID(newUUID()) }

// String is the UUID's text form.
func (id RecordID) String() string { return uuid.UUID(id).String() }

// Record is one entry of a session's stream as the journal holds it.
type Record struct {
	ID     RecordID
	Stream Stream
	// Seq counts from 1 in its stream, without holes. Set by the journal.
	Seq uint64
	// Epoch is the claim under which it was written. Set by the journal.
	Epoch uint64
	// Position is the record's place among all sessions' events; 0 if not read through the feed. Not part of the stored bytes.
	Position uint64
	Type     string
	Version  uint32
	// Time is information only; nothing is ordered by it. It is kept in years 1678 to 2261; any other, the zero time too,
	// comes back as a different one.
	Time    time.Time
	Flags   RecordFlags
	Payload []byte
}

// StoredSize is the length of r's stored form, in bytes.
func (r *Record) StoredSize() int { return recordHeader + len(r.Type) + len(r.Payload) }

// The stored form, the same bytes in every driver, all numbers big-endian:
//
//	crc32c(4) | format(1)=1 | flags(1) | epoch(8) | unix_nano(8) | id(16) | version(4) | type length(1) | type | payload
//
// The checksum covers tenant, session, stream and seq as well, so a record under a wrong key is found.
const (
	recordFormat = 1
	recordHeader = 4 + 1 + 1 + 8 + 8 + 16 + 4 + 1
	// MaxTypeName is the longest type name of a record, in bytes.
	MaxTypeName = 255
)

// ErrBadRecord is wrapped by every error of ParseRecord.
var ErrBadRecord = errors.New("bad record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendRecord appends r's stored form to dst. r.Seq, r.Epoch and r.Stream must be final.
func AppendRecord(dst []byte, key Key, r *Record) ([]byte, error) {
	if r.Type == "" || len(r.Type) > MaxTypeName {
		return dst, fmt.Errorf("encode record: type name has %d bytes, want 1 to %d", len(r.Type), MaxTypeName)
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, recordFormat, byte(r.Flags))
	dst = binary.BigEndian.AppendUint64(dst, r.Epoch)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Time.UnixNano()))
	dst = append(dst, r.ID[:]...)
	dst = binary.BigEndian.AppendUint32(dst, r.Version)
	dst = append(dst, byte(len(r.Type))) //nolint:gosec // at most MaxTypeName
	dst = append(dst, r.Type...)
	dst = append(dst, r.Payload...)
	binary.BigEndian.PutUint32(dst[start:], checksum(key, r.Stream, r.Seq, dst[start+4:]))
	return dst, nil
}

// ParseRecord reads a stored record; its payload shares b. Errors: ErrBadRecord.
func ParseRecord(key Key, stream Stream, seq uint64, b []byte) (Record, error) {
	if len(b) < recordHeader {
		return Record{}, fmt.Errorf("%w: %d bytes, the header has %d", ErrBadRecord, len(b), recordHeader)
	}
	if sum := binary.BigEndian.Uint32(b); sum != checksum(key, stream, seq, b[4:]) {
		return Record{}, fmt.Errorf("%w: checksum does not match", ErrBadRecord)
	}
	if b[4] != recordFormat {
		return Record{}, fmt.Errorf("%w: format %d, this build reads %d", ErrBadRecord, b[4], recordFormat)
	}
	r := Record{
		Stream:  stream,
		Seq:     seq,
		Flags:   RecordFlags(b[5]),
		Epoch:   binary.BigEndian.Uint64(b[6:]),
		Time:    time.Unix(0, int64(binary.BigEndian.Uint64(b[14:]))).UTC(), //nolint:gosec // the bits are kept
		Version: binary.BigEndian.Uint32(b[38:]),
	}
	copy(r.ID[:], b[22:38])
	if r.Flags&^knownFlags != 0 {
		return Record{}, fmt.Errorf("%w: unknown flags %#x", ErrBadRecord, uint8(r.Flags&^knownFlags))
	}
	n := int(b[42])
	if n == 0 || len(b) < recordHeader+n {
		return Record{}, fmt.Errorf("%w: type name has %d bytes, the record %d", ErrBadRecord, n, len(b))
	}
	r.Type = internName(b[recordHeader : recordHeader+n])
	r.Payload = b[recordHeader+n:]
	return r, nil
}

// internName avoids an allocation for each record of a known type.
func internName(b []byte) string {
	if reg, ok := byName[string(b)]; ok {
		return reg.name
	}
	return string(b)
}

func checksum(key Key, stream Stream, seq uint64, rest []byte) uint32 {
	sum := checksumText(0, string(key.Tenant))
	sum = checksumText(sum, string(key.Session))
	sum = checksumByte(sum, byte(stream))
	for shift := 56; shift >= 0; shift -= 8 {
		sum = checksumByte(sum, byte(seq>>shift)) //nolint:gosec // one byte of it
	}
	return crc32.Update(sum, castagnoli, rest)
}

// checksumText adds s and a zero byte, which ids cannot hold. Byte by byte: slices given to crc32.Update move to the heap, and
// this runs for every record of a replay.
func checksumText(sum uint32, s string) uint32 {
	for i := range len(s) {
		sum = checksumByte(sum, s[i])
	}
	return checksumByte(sum, 0)
}

func checksumByte(sum uint32, b byte) uint32 {
	sum = ^sum
	return ^(castagnoli[byte(sum)^b] ^ (sum >> 8)) //nolint:gosec // the low byte is meant
}
