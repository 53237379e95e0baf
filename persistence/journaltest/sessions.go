package journaltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

func list(t *testing.T, j persistence.Journal, tenant messages.TenantID, after messages.SessionID) []messages.SessionID {
	t.Helper()
	var ids []messages.SessionID
	for row, err := range j.Sessions(t.Context(), tenant, after) {
		require.NoError(t, err)
		require.Equal(t, tenant, row.Key.Tenant)
		ids = append(ids, row.Key.Session)
	}
	return ids
}

func openKeys(t *testing.T, j persistence.Journal) []string {
	t.Helper()
	keys := []string{}
	for row, err := range j.OpenSessions(t.Context()) {
		require.NoError(t, err)
		require.True(t, row.Open)
		keys = append(keys, row.Key.String())
	}
	slices.Sort(keys)
	return keys
}

func testSessions(t *testing.T, d Driver) {
	rule(t, d, "ARowTellsHeadsEpochTimeAndOpenWork", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		batch := batchOf(event("e"), ledger("l1"), ledger("l2"))
		batch.Open = persistence.OpenSet
		w.append(t, batch)
		want := persistence.SessionInfo{
			Key: session, EventHead: 1, LedgerHead: 2, LedgerStart: 1, Epoch: w.expect.Epoch, Open: true,
			LastAppend: batch.Records[2].Time,
		}
		require.Equal(t, want, info(t, j, session))
		for row, err := range j.Sessions(t.Context(), session.Tenant, "") {
			require.NoError(t, err)
			require.Equal(t, want, row)
		}
	})
	rule(t, d, "ARowTellsTheWorkOfTheLastAppend", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for _, work := range []persistence.Work{
			{Running: true}, {Running: true, Waiting: 3}, {Waiting: math.MaxUint32}, {Waiting: 1}, {},
		} {
			batch := batchOf(ledger("l"))
			batch.Work = work
			w.append(t, batch)
			require.Equal(t, work, info(t, j, session).Work)
			// Neither a refused append nor the same one again changes it.
			stale := w.expect
			stale.LedgerHead--
			other := batchOf(ledger("no"))
			other.Work = persistence.Work{Waiting: 99}
			require.ErrorIs(t, second(appendTo(j, session, stale, other)), persistence.ErrConflict)
			batch.Work = persistence.Work{Waiting: 99}
			res, err := appendTo(j, session, stale, batch)
			require.NoError(t, err)
			require.True(t, res.Duplicate)
			for row, err := range j.Sessions(t.Context(), session.Tenant, "") {
				require.NoError(t, err)
				require.Equal(t, work, row.Work)
			}
		}
	})
	rule(t, d, "ListsATenantInTheByteOrderOfIDs", func(t *testing.T, j persistence.Journal) {
		ids := []messages.SessionID{"b", "a", "a-", "B", "a.b", "~", "aa", "0", "a:1"}
		for _, id := range ids {
			claim(t, j, messages.NewKey(id)).append(t, batchOf(event("e")))
		}
		for _, tenant := range []messages.TenantID{"defaul", "default2", "a"} {
			claim(t, j, messages.Key{Tenant: tenant, Session: "x"}).append(t, batchOf(event("e")))
		}
		slices.Sort(ids)
		require.Equal(t, ids, list(t, j, messages.DefaultTenant, ""))
		require.Equal(t, ids[4:], list(t, j, messages.DefaultTenant, ids[3]))
		require.Equal(t, ids[3:], list(t, j, messages.DefaultTenant, ids[2]+"!"))
		require.Empty(t, list(t, j, messages.DefaultTenant, "~"))
		require.Equal(t, []messages.SessionID{"x"}, list(t, j, "defaul", ""))
		require.Empty(t, list(t, j, "nobody", ""))
	})
	rule(t, d, "LongListsComeWhole", func(t *testing.T, j persistence.Journal) {
		const n = 700
		answered := make(chan error, n)
		for i := range n {
			w := claim(t, j, messages.NewKey(messages.SessionID(fmt.Sprintf("s%04d", i))))
			batch := batchOf(event("e"))
			if i%2 == 0 {
				batch.Open = persistence.OpenSet
			}
			j.Append(w.key, w.expect, batch, func(_ persistence.Appended, err error) { answered <- err })
		}
		for range n {
			require.NoError(t, <-answered)
		}
		ids := list(t, j, messages.DefaultTenant, "")
		require.Len(t, ids, n)
		require.True(t, slices.IsSorted(ids))
		require.Len(t, openKeys(t, j), n/2)
		st, err := j.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, uint64(n/2), st.Open)
	})
	rule(t, d, "KeepsTheSetOfOpenSessions", func(t *testing.T, j persistence.Journal) {
		a, b := claim(t, j, session), claim(t, j, messages.Key{Tenant: "t2", Session: "b"})
		mark := func(w *writer, m persistence.OpenMark) {
			batch := batchOf(ledger("l"))
			batch.Open = m
			w.append(t, batch)
		}
		require.Empty(t, openKeys(t, j))
		mark(a, persistence.OpenSet)
		mark(b, persistence.OpenSet)
		require.Equal(t, []string{"default/sess_1", "t2/b"}, openKeys(t, j))
		mark(a, persistence.OpenKeep)
		mark(a, persistence.OpenSet)
		mark(b, persistence.OpenClear)
		require.Equal(t, []string{"default/sess_1"}, openKeys(t, j))
		mark(b, persistence.OpenClear)
		mark(a, persistence.OpenClear)
		require.Empty(t, openKeys(t, j))
	})
}

func testDelete(t *testing.T, d Driver) {
	full := func(t *testing.T, j persistence.Journal, key messages.Key) *writer {
		t.Helper()
		w := claim(t, j, key)
		batch := batchOf(append(events("e", 20), ledger("l1"), ledger("l2"))...)
		batch.Index = []persistence.IndexPut{{Index: persistence.IndexTurn, Name: "n", Value: []byte("v")}}
		batch.Open = persistence.OpenSet
		w.append(t, batch)
		return w
	}
	rule(t, d, "LeavesATombstoneAndNothingElse", func(t *testing.T, j persistence.Journal) {
		other := full(t, j, messages.NewKey("other"))
		w := full(t, j, session)
		require.NoError(t, j.Delete(t.Context(), session, w.expect))
		_, err := w.try(batchOf(event("no")))
		require.ErrorIs(t, err, persistence.ErrDeleted)
		_, err = j.Claim(t.Context(), session, persistence.Owner{})
		require.ErrorIs(t, err, persistence.ErrDeleted)
		_, err = j.Session(t.Context(), session)
		require.ErrorIs(t, err, persistence.ErrDeleted)
		_, _, err = j.Lookup(t.Context(), session, persistence.IndexTurn, "n")
		require.ErrorIs(t, err, persistence.ErrDeleted)
		require.ErrorIs(t, firstError(j.Replay(t.Context(), session, messages.StreamEvents, 0)), persistence.ErrDeleted)
		require.Equal(t, []messages.SessionID{"other"}, list(t, j, session.Tenant, ""))
		require.Equal(t, []string{"default/other"}, openKeys(t, j))
		for rec, err := range j.Feed(t.Context(), persistence.Position{}, false) {
			require.NoError(t, err)
			require.Equal(t, other.key, rec.Key)
		}
		st, err := j.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 1, 20}, []uint64{st.Sessions, st.Open, st.Events})
		other.append(t, batchOf(event("goes on")))
		require.Len(t, payloads(t, j, other.key, messages.StreamEvents, 0), 21)
	})
	rule(t, d, "IsForTheOwnerAtTheHeadOnly", func(t *testing.T, j persistence.Journal) {
		require.ErrorIs(t, j.Delete(t.Context(), session, persistence.Expect{}), persistence.ErrUnknownSession)
		w := claim(t, j, session)
		require.ErrorIs(t, j.Delete(t.Context(), session, w.expect), persistence.ErrUnknownSession)
		w = full(t, j, session)
		stale := w.expect
		stale.EventHead--
		require.ErrorIs(t, j.Delete(t.Context(), session, stale), persistence.ErrConflict)
		next := claim(t, j, session)
		require.ErrorIs(t, j.Delete(t.Context(), session, w.expect), persistence.ErrFenced)
		require.Len(t, payloads(t, j, session, messages.StreamEvents, 0), 20)
		require.NoError(t, j.Delete(t.Context(), session, next.expect))
		require.NoError(t, j.Delete(t.Context(), session, persistence.Expect{}), "again, to go on after an interruption")
	})
	rule(t, d, "FreesLargeSessions", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for range 5 {
			w.append(t, batchOf(events("e", 700)...))
		}
		require.NoError(t, j.Delete(t.Context(), session, w.expect))
		require.NoError(t, firstError(j.Feed(t.Context(), persistence.Position{}, false)))
		st, err := j.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, st.Events)
	})
}
