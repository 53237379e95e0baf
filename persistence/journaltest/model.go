package journaltest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// testModel does random work against a driver and against a map, the twin, and compares after every step.
func testModel(t *testing.T, d Driver) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t, d: d, j: d.Open(t, Limits{}), twins: make(map[messages.Key]*twin)}
		defer func() { require.NoError(t, m.j.Close()) }()
		actions := map[string]func(*rapid.T){
			"":          m.compare,
			"append":    m.append,
			"append 2":  m.append,
			"append 3":  m.append,
			"claim":     m.claim,
			"stale":     m.appendStale,
			"fenced":    m.appendFenced,
			"duplicate": m.appendAgain,
			"delete":    m.delete,
		}
		if d.Reopen != nil {
			actions["reopen"] = func(*rapid.T) {
				m.j = d.Reopen(t, m.j)
				for _, tw := range m.twins {
					tw.epoch = 0
				}
			}
		}
		rt.Repeat(actions)
	})
}

// twin is what a session must look like.
type twin struct {
	epoch    uint64 // of the newest claim in this boot; 0 if none
	rowEpoch uint64
	events   []messages.Record
	ledger   []messages.Record // from ledgerStart on
	start    uint64
	end      uint64
	index    []persistence.IndexPut // in the order of the puts
	open     bool
	work     persistence.Work
	deleted  bool
	last     *persistence.Batch // last append, and its expectation
	expected persistence.Expect
}

// names of index entries.
var names = []string{"x", "y", "xy", "z", "a", "yy", "0"}

type model struct {
	t     *testing.T
	d     Driver
	j     persistence.Journal
	twins map[messages.Key]*twin
	feed  []messages.RecordID
	n     int
}

func (m *model) pick(rt *rapid.T) (messages.Key, *twin) {
	key := messages.Key{
		Tenant:  rapid.SampledFrom([]messages.TenantID{"default", "t"}).Draw(rt, "tenant"),
		Session: rapid.SampledFrom([]messages.SessionID{"a", "b", "a~"}).Draw(rt, "session"),
	}
	tw := m.twins[key]
	if tw == nil {
		tw = &twin{}
		m.twins[key] = tw
	}
	return key, tw
}

func (tw *twin) expect() persistence.Expect {
	return persistence.Expect{Epoch: tw.epoch, EventHead: uint64(len(tw.events)), LedgerHead: tw.end}
}

func (tw *twin) stored() bool { return len(tw.events) > 0 || tw.end > 0 }

func (m *model) claim(rt *rapid.T) {
	key, tw := m.pick(rt)
	c, err := m.j.Claim(m.t.Context(), key, persistence.Owner{})
	if tw.deleted {
		require.ErrorIs(rt, err, persistence.ErrDeleted)
		return
	}
	require.NoError(rt, err)
	require.Greater(rt, c.Epoch, max(tw.epoch, tw.rowEpoch))
	tw.epoch = c.Epoch
	require.Equal(rt, tw.expect(), persistence.Expect(c))
}

func (m *model) batch(rt *rapid.T) persistence.Batch {
	var batch persistence.Batch
	ledgers := 0
	for _, stream := range rapid.SliceOfN(rapid.SampledFrom([]messages.Stream{1, 2}), 1, 6).Draw(rt, "streams") {
		m.n++
		rec := record(stream, strconv.Itoa(m.n))
		rec.Time = began.Add(time.Duration(m.n) * time.Second)
		rec.Payload = append(rec.Payload, make([]byte, rapid.SampledFrom([]int{0, 3, 5000}).Draw(rt, "size"))...)
		batch.Records = append(batch.Records, rec)
		if stream == messages.StreamLedger {
			ledgers++
		}
	}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(rt, "names") {
		put := persistence.IndexPut{Index: persistence.IndexTurn, Name: name}
		if rapid.IntRange(0, 4).Draw(rt, "put") > 0 {
			put.Value = []byte(strconv.Itoa(m.n))
			put.Keep = rapid.IntRange(0, 4).Draw(rt, "keep")
			if after := rapid.IntRange(0, 5).Draw(rt, "expires"); after > 0 {
				put.Expires = began.Add(time.Duration(m.n+after) * time.Second)
			}
		}
		batch.Index = append(batch.Index, put)
	}
	batch.Open = rapid.SampledFrom([]persistence.OpenMark{
		persistence.OpenKeep, persistence.OpenSet, persistence.OpenClear,
	}).Draw(rt, "open")
	batch.Work = persistence.Work{
		Running: rapid.Bool().Draw(rt, "running"), Waiting: rapid.SampledFrom([]uint32{0, 1, 300}).Draw(rt, "waiting"),
	}
	batch.PruneLedger = ledgers > 0 && rapid.IntRange(0, 2).Draw(rt, "prune") == 0
	return batch
}

func (m *model) append(rt *rapid.T) {
	key, tw := m.pick(rt)
	batch, expect := m.batch(rt), tw.expect()
	res, err := appendTo(m.j, key, expect, batch)
	switch {
	case tw.deleted:
		require.ErrorIs(rt, err, persistence.ErrDeleted)
		return
	case tw.epoch == 0:
		require.ErrorIs(rt, err, persistence.ErrFenced)
		return
	}
	require.NoError(rt, err)
	m.apply(tw, batch, expect)
	require.Equal(rt, []uint64{tw.expect().EventHead, tw.end}, []uint64{res.EventHead, res.LedgerHead})
}

func (m *model) apply(tw *twin, batch persistence.Batch, expect persistence.Expect) {
	prune := batch.PruneLedger
	for _, rec := range batch.Records {
		rec.Epoch = expect.Epoch
		if rec.Stream == messages.StreamEvents {
			rec.Seq = uint64(len(tw.events) + 1)
			tw.events = append(tw.events, rec)
			m.feed = append(m.feed, rec.ID)
			continue
		}
		tw.end++
		rec.Seq = tw.end
		if prune || tw.start == 0 {
			tw.start, tw.ledger, prune = rec.Seq, nil, false
		}
		tw.ledger = append(tw.ledger, rec)
	}
	for _, put := range batch.Index {
		tw.put(put, batch.Records[len(batch.Records)-1].Time)
	}
	switch batch.Open {
	case persistence.OpenSet:
		tw.open = true
	case persistence.OpenClear:
		tw.open = false
	case persistence.OpenKeep:
	}
	tw.work = batch.Work
	tw.rowEpoch, tw.last, tw.expected = expect.Epoch, &batch, expect
}

// put is persistence.IndexPut's rule, word by word.
func (tw *twin) put(put persistence.IndexPut, now time.Time) {
	tw.index = slices.DeleteFunc(slices.Clone(tw.index), func(p persistence.IndexPut) bool { return p.Name == put.Name })
	if put.Value == nil {
		return
	}
	tw.index = append(tw.index, put)
	for range persistence.TrimPerPut {
		if len(tw.index) == 0 {
			return
		}
		tooMany := put.Keep > 0 && len(tw.index) > put.Keep
		expires := tw.index[0].Expires
		if !tooMany && (expires.IsZero() || now.Before(expires)) {
			return
		}
		tw.index = tw.index[1:]
	}
}

func (m *model) appendStale(rt *rapid.T) {
	key, tw := m.pick(rt)
	if tw.deleted || tw.epoch == 0 {
		return
	}
	expect := tw.expect()
	if rapid.Bool().Draw(rt, "ahead") {
		expect.LedgerHead++
	} else {
		expect.EventHead += 2
	}
	require.ErrorIs(rt, second(appendTo(m.j, key, expect, m.batch(rt))), persistence.ErrConflict)
}

func (m *model) appendFenced(rt *rapid.T) {
	key, tw := m.pick(rt)
	expect := tw.expect()
	expect.Epoch = rapid.SampledFrom([]uint64{0, expect.Epoch - 1, expect.Epoch + 1}).Draw(rt, "epoch")
	if tw.deleted || expect.Epoch == tw.epoch {
		return
	}
	require.ErrorIs(rt, second(appendTo(m.j, key, expect, m.batch(rt))), persistence.ErrFenced)
}

func (m *model) appendAgain(rt *rapid.T) {
	key, tw := m.pick(rt)
	if tw.deleted || tw.last == nil {
		return
	}
	res, err := appendTo(m.j, key, tw.expected, *tw.last)
	if tw.epoch != tw.rowEpoch {
		require.ErrorIs(rt, err, persistence.ErrFenced)
		return
	}
	require.NoError(rt, err)
	require.True(rt, res.Duplicate)
}

func (m *model) delete(rt *rapid.T) {
	key, tw := m.pick(rt)
	if rapid.IntRange(0, 3).Draw(rt, "really") > 0 {
		return
	}
	err := m.j.Delete(m.t.Context(), key, tw.expect())
	switch {
	case !tw.stored():
		require.ErrorIs(rt, err, persistence.ErrUnknownSession)
		return
	case !tw.deleted && tw.epoch == 0:
		require.ErrorIs(rt, err, persistence.ErrFenced)
		return
	}
	require.NoError(rt, err)
	for _, rec := range tw.events {
		m.feed = slices.DeleteFunc(m.feed, func(id messages.RecordID) bool { return id == rec.ID })
	}
	tw.deleted = true
}

func (m *model) compare(rt *rapid.T) {
	rows, open := 0, 0
	for key, tw := range m.twins {
		row, err := m.j.Session(m.t.Context(), key)
		switch {
		case !tw.stored():
			require.ErrorIs(rt, err, persistence.ErrUnknownSession)
			continue
		case tw.deleted:
			require.ErrorIs(rt, err, persistence.ErrDeleted)
			continue
		}
		require.NoError(rt, err)
		last := tw.last.Records[len(tw.last.Records)-1].Time
		require.Equal(rt, persistence.SessionInfo{
			Key: key, EventHead: uint64(len(tw.events)), LedgerHead: tw.end, LedgerStart: tw.start, Epoch: tw.rowEpoch,
			Open: tw.open, Work: tw.work, LastAppend: last,
		}, row)
		m.compareStream(rt, key, messages.StreamEvents, tw.events)
		m.compareStream(rt, key, messages.StreamLedger, tw.ledger)
		m.compareIndex(rt, key, tw)
		rows++
		if tw.open {
			open++
		}
	}
	st, err := m.j.Stats(m.t.Context())
	require.NoError(rt, err)
	require.Equal(rt, []uint64{uint64(rows), uint64(open), uint64(len(m.feed))}, []uint64{st.Sessions, st.Open, st.Events})
	require.Len(rt, openKeys(m.t, m.j), open)
	var ids []messages.RecordID
	for rec, err := range m.j.Feed(m.t.Context(), persistence.Position{}, false) {
		require.NoError(rt, err)
		ids = append(ids, rec.Record.ID)
	}
	require.True(rt, slices.Equal(m.feed, ids), "feed")
}

func (m *model) compareStream(rt *rapid.T, key messages.Key, stream messages.Stream, want []messages.Record) {
	got, err := collect(m.t, m.j, key, stream, 0)
	require.NoError(rt, err)
	require.Len(rt, got, len(want))
	for i := range want {
		require.Equal(rt, want[i], got[i])
	}
}

func (m *model) compareIndex(rt *rapid.T, key messages.Key, tw *twin) {
	for _, name := range names {
		value, found, err := m.j.Lookup(m.t.Context(), key, persistence.IndexTurn, name)
		require.NoError(rt, err)
		i := slices.IndexFunc(tw.index, func(p persistence.IndexPut) bool { return p.Name == name })
		require.Equal(rt, i >= 0, found)
		if found {
			require.Equal(rt, tw.index[i].Value, value)
		}
	}
}
