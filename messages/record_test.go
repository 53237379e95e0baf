package messages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawRecord makes any record that AppendRecord takes.
func drawRecord(t *rapid.T) Record {
	r := Record{
		Stream:  rapid.SampledFrom([]Stream{StreamEvents, StreamLedger}).Draw(t, "stream"),
		Seq:     rapid.Uint64().Draw(t, "seq"),
		Epoch:   rapid.Uint64().Draw(t, "epoch"),
		Type:    string(rapid.SliceOfN(rapid.Byte(), 1, MaxTypeName).Draw(t, "type")),
		Version: rapid.Uint32().Draw(t, "version"),
		Time:    time.Unix(0, rapid.Int64().Draw(t, "time")).UTC(),
		Flags:   rapid.SampledFrom([]RecordFlags{0, FlagIgnorable}).Draw(t, "flags"),
		Payload: rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "payload"),
	}
	copy(r.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	return r
}

func drawKey(t *rapid.T) Key {
	id := rapid.StringMatching(`[A-Za-z0-9._~:-]{1,200}`)
	return Key{Tenant: TenantID(id.Draw(t, "tenant")), Session: SessionID(id.Draw(t, "session"))}
}

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, r := drawKey(t), drawRecord(t)
		prefix := []byte("kept")
		stored, err := AppendRecord(prefix, key, &r)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(stored, prefix))
		stored = stored[len(prefix):]
		require.Len(t, stored, r.StoredSize())
		got, err := ParseRecord(key, r.Stream, r.Seq, stored)
		require.NoError(t, err)
		require.Equal(t, r, got)
	})
}

func TestUnknownTypesPassTheRecordCodecByteForByte(t *testing.T) {
	t.Parallel()
	in := &UnknownEvent{Type: "stage_skipped", Version: 9, Payload: []byte{0, 0xff, 0x80, '{'}}
	encoded, err := EncodeEvent(in)
	require.NoError(t, err)
	r := Record{Stream: StreamEvents, Seq: 1, Type: encoded.GetType(), Version: encoded.GetVersion(), Payload: encoded.GetPayload()}
	stored, err := AppendRecord(nil, NewKey("s"), &r)
	require.NoError(t, err)
	got, err := ParseRecord(NewKey("s"), StreamEvents, 1, stored)
	require.NoError(t, err)
	out, err := DecodeEvent(got.Type, got.Version, got.Payload)
	require.NoError(t, err)
	require.Equal(t, in, out)
	r.Time = got.Time // the zero time has no stored form
	again, err := AppendRecord(nil, NewKey("s"), &got)
	require.NoError(t, err)
	require.Equal(t, stored, again)
}

func TestEveryBitFlipIsFound(t *testing.T) {
	t.Parallel()
	key := NewKey("flip")
	r := Record{
		ID: NewRecordID(), Stream: StreamLedger, Seq: 7, Epoch: 2, Type: "run_ended", Version: 1,
		Time: time.Unix(1, 2), Payload: []byte(strings.Repeat("payload ", 40)),
	}
	stored, err := AppendRecord(nil, key, &r)
	require.NoError(t, err)
	for bit := range 8 * len(stored) {
		stored[bit/8] ^= 1 << (bit % 8)
		_, err := ParseRecord(key, StreamLedger, 7, stored)
		require.ErrorIs(t, err, ErrBadRecord, "bit %d", bit)
		stored[bit/8] ^= 1 << (bit % 8)
	}
	for n := range stored {
		_, err := ParseRecord(key, StreamLedger, 7, stored[:n])
		require.ErrorIs(t, err, ErrBadRecord, "cut at %d", n)
	}
	_, err = ParseRecord(key, StreamLedger, 7, append(stored, 0))
	require.ErrorIs(t, err, ErrBadRecord, "one byte more")
}

func TestRecordUnderAnotherKeyIsFound(t *testing.T) {
	t.Parallel()
	r := Record{Stream: StreamEvents, Seq: 4, Type: "stage_started", Version: 1}
	key := Key{Tenant: "ab", Session: "cd"}
	stored, err := AppendRecord(nil, key, &r)
	require.NoError(t, err)
	_, err = ParseRecord(key, StreamEvents, 4, stored)
	require.NoError(t, err)
	for _, c := range []struct {
		key    Key
		stream Stream
		seq    uint64
	}{
		{Key{Tenant: "ab", Session: "ce"}, StreamEvents, 4},
		{Key{Tenant: "aa", Session: "cd"}, StreamEvents, 4},
		{Key{Tenant: "a", Session: "bcd"}, StreamEvents, 4},
		{Key{Tenant: "abc", Session: "d"}, StreamEvents, 4},
		{key, StreamLedger, 4},
		{key, StreamEvents, 5},
		{key, StreamEvents, 0},
	} {
		_, err := ParseRecord(c.key, c.stream, c.seq, stored)
		require.ErrorIs(t, err, ErrBadRecord, "%v", c)
	}
}

// sealRecord makes the checksum right, so that what lies behind it is tested.
func sealRecord(key Key, stream Stream, seq uint64, b []byte) []byte {
	binary.BigEndian.PutUint32(b, checksum(key, stream, seq, b[4:]))
	return b
}

func TestRecordsOfANewerFormatAreRefused(t *testing.T) {
	t.Parallel()
	key := NewKey("s")
	r := Record{Stream: StreamEvents, Seq: 1, Type: "x", Version: 1}
	for name, change := range map[string]func(b []byte) []byte{
		"format":         func(b []byte) []byte { b[4] = 2; return b },
		"encrypted":      func(b []byte) []byte { b[5] = byte(FlagEncrypted); return b },
		"compressed":     func(b []byte) []byte { b[5] = byte(FlagCompressed); return b },
		"unknown flag":   func(b []byte) []byte { b[5] = 0x80; return b },
		"no type":        func(b []byte) []byte { b[recordHeader-1] = 0; return b },
		"type over end":  func(b []byte) []byte { b[recordHeader-1] = 200; return b },
		"only a header":  func(b []byte) []byte { return b[:recordHeader] },
		"part of header": func(b []byte) []byte { return b[:20] },
	} {
		stored, err := AppendRecord(nil, key, &r)
		require.NoError(t, err)
		_, err = ParseRecord(key, StreamEvents, 1, sealRecord(key, StreamEvents, 1, change(stored)))
		require.ErrorIs(t, err, ErrBadRecord, name)
	}
}

func TestAppendRecordRefusesTypeNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", strings.Repeat("x", MaxTypeName+1)} {
		dst, err := AppendRecord([]byte("kept"), NewKey("s"), &Record{Stream: StreamEvents, Type: name})
		require.Error(t, err)
		require.Equal(t, []byte("kept"), dst)
	}
}

func TestStreamsHaveNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "events ledger stream(9)", fmt.Sprint(StreamEvents, " ", StreamLedger, " ", Stream(9)))
}

func FuzzParseRecord(f *testing.F) {
	key := NewKey("fuzz")
	r := Record{Stream: StreamEvents, Seq: 1, Type: "stage_started", Version: 1, Time: time.Unix(0, math.MaxInt64), Payload: []byte("\x0a\x01a")}
	stored, err := AppendRecord(nil, key, &r)
	require.NoError(f, err)
	f.Add(stored, true)
	f.Add(stored, false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) >= crc32.Size {
			b = sealRecord(key, StreamEvents, 1, bytes.Clone(b))
		}
		r, err := ParseRecord(key, StreamEvents, 1, b)
		if err != nil {
			require.ErrorIs(t, err, ErrBadRecord)
			return
		}
		again, err := AppendRecord(nil, key, &r)
		require.NoError(t, err)
		require.Equal(t, b, again)
		if e, err := DecodeEvent(r.Type, r.Version, r.Payload); err == nil {
			_, err := EncodeEvent(e)
			require.NoError(t, err)
			_, _ = EventToJSON(e) // may refuse what no JSON can say, must not panic
		}
	})
}

func BenchmarkParseAndDecodeEvent(b *testing.B) {
	key := NewKey("bench")
	encoded, err := EncodeEvent(&StageCompleted{StageId: "build", Summary: strings.Repeat("the stage did its work. ", 5), NextStageId: "deploy"})
	require.NoError(b, err)
	r := Record{
		ID: NewRecordID(), Stream: StreamEvents, Seq: 1, Epoch: 1, Type: encoded.GetType(), Version: encoded.GetVersion(),
		Time: time.Unix(1, 0), Payload: encoded.GetPayload(),
	}
	stored, err := AppendRecord(nil, key, &r)
	require.NoError(b, err)
	b.SetBytes(int64(len(stored)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := ParseRecord(key, StreamEvents, 1, stored)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeEvent(r.Type, r.Version, r.Payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRecord(b *testing.B) {
	r := Record{Stream: StreamEvents, Seq: 1, Type: "stage_started", Version: 1, Time: time.Unix(1, 0), Payload: make([]byte, 200)}
	key := NewKey("bench")
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = AppendRecord(dst[:0], key, &r)
	}
}
