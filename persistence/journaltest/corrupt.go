package journaltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// testCorrupt: damage is found, named, and hurts the damaged session alone.
func testCorrupt(t *testing.T, d Driver) {
	if d.Damage == nil {
		t.Fatal("every driver must show that it finds damage")
	}
	bad, good := messages.NewKey("bad"), messages.NewKey("good")
	fill := func(t *testing.T, j persistence.Journal) *writer {
		t.Helper()
		var w *writer
		for _, key := range []messages.Key{good, bad} {
			w = claim(t, j, key)
			batch := batchOf(append(events("e", 10), ledger("l1"), ledger("l2"), ledger("l3"))...)
			batch.Index = []persistence.IndexPut{{Index: persistence.IndexTurn, Name: "n", Value: []byte("value")}}
			batch.Open = persistence.OpenSet
			w.append(t, batch)
		}
		return w
	}
	othersGoOn := func(t *testing.T, j persistence.Journal) {
		t.Helper()
		require.Len(t, payloads(t, j, good, messages.StreamEvents, 0), 10)
		claim(t, j, good).append(t, batchOf(event("goes on")))
		require.NoError(t, j.Healthy())
	}
	damage := func(t *testing.T, j persistence.Journal, dam Damage) {
		t.Helper()
		if dam.Key = bad; !d.Damage(t, j, dam) {
			t.Skipf("the driver has nothing to damage by %s", dam.Kind)
		}
	}
	rule(t, d, "AFlippedBitOfARecordIsNeverWrongData", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		size := events("e", 10)[3]
		for _, stream := range []messages.Stream{messages.StreamEvents, messages.StreamLedger} {
			for offset := range size.StoredSize() - 8 {
				dam := Damage{Kind: FlipRecord, Stream: stream, Seq: 2, Offset: offset}
				damage(t, j, dam)
				recs, err := collect(t, j, bad, stream, 0)
				require.ErrorIs(t, err, persistence.ErrCorrupt, "offset %d", offset)
				var place *persistence.CorruptError
				require.ErrorAs(t, err, &place)
				require.Equal(t, []any{bad, stream, uint64(2)}, []any{place.Key, place.Stream, place.Seq})
				require.Len(t, recs, 1, "what lies before it is good")
				damage(t, j, dam) // back again
				_, err = collect(t, j, bad, stream, 0)
				require.NoError(t, err)
			}
		}
		othersGoOn(t, j)
	})
	rule(t, d, "AHoleIsFound", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		damage(t, j, Damage{Kind: LoseRecord, Stream: messages.StreamEvents, Seq: 5})
		recs, err := collect(t, j, bad, messages.StreamEvents, 0)
		require.ErrorIs(t, err, persistence.ErrCorrupt)
		require.Len(t, recs, 4)
		require.Len(t, payloads(t, j, bad, messages.StreamEvents, 5), 5)
		othersGoOn(t, j)
	})
	rule(t, d, "ALostTailIsFound", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		damage(t, j, Damage{Kind: LoseRecord, Stream: messages.StreamEvents, Seq: 10})
		damage(t, j, Damage{Kind: LoseRecord, Stream: messages.StreamLedger, Seq: 3})
		recs, err := collect(t, j, bad, messages.StreamEvents, 0)
		require.ErrorIs(t, err, persistence.ErrCorrupt)
		require.Len(t, recs, 9)
		_, err = collect(t, j, bad, messages.StreamLedger, 2)
		require.ErrorIs(t, err, persistence.ErrCorrupt)
		othersGoOn(t, j)
	})
	rule(t, d, "TheFeedNamesTheDamageAndCanGoOnBehindIt", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		damage(t, j, Damage{Kind: FlipRecord, Stream: messages.StreamEvents, Seq: 5})
		var after persistence.Position
		seen, errs := 0, 0
		for again := true; again; {
			again = false
			for rec, err := range j.Feed(t.Context(), after, false) {
				require.Greater(t, rec.After.N, after.N)
				if after = rec.After; err != nil {
					require.ErrorIs(t, err, persistence.ErrCorrupt)
					require.Equal(t, bad, rec.Key)
					errs++
					again = true
					continue
				}
				seen++
			}
		}
		require.Equal(t, 1, errs)
		require.Equal(t, 19, seen)
	})
	rule(t, d, "ADamagedFeedEntryIsFound", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		for offset := range 20 {
			damage(t, j, Damage{Kind: FlipFeed, Stream: messages.StreamEvents, Seq: 5, Offset: offset})
			require.ErrorIs(t, firstError(j.Feed(t.Context(), persistence.Position{}, false)), persistence.ErrCorrupt)
			damage(t, j, Damage{Kind: FlipFeed, Stream: messages.StreamEvents, Seq: 5, Offset: offset})
		}
		require.NoError(t, firstError(j.Feed(t.Context(), persistence.Position{}, false)))
	})
	rule(t, d, "ADamagedIndexEntryIsFound", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		for offset := range len("value") + 4 {
			dam := Damage{Kind: FlipIndex, Index: persistence.IndexTurn, Name: "n", Offset: offset}
			damage(t, j, dam)
			_, _, err := j.Lookup(t.Context(), bad, persistence.IndexTurn, "n")
			require.ErrorIs(t, err, persistence.ErrCorrupt)
			damage(t, j, dam)
		}
		_, found, err := j.Lookup(t.Context(), bad, persistence.IndexTurn, "n")
		require.NoError(t, err)
		require.True(t, found)
		othersGoOn(t, j)
	})
	rule(t, d, "ADamagedRowQuarantinesItsSessionOnly", func(t *testing.T, j persistence.Journal) {
		fill(t, j)
		damage(t, j, Damage{Kind: FlipRow, Offset: 20})
		if d.Reopen != nil {
			j = d.Reopen(t, j) // nothing of it is remembered
		}
		_, err := j.Claim(t.Context(), bad, persistence.Owner{})
		require.ErrorIs(t, err, persistence.ErrCorrupt)
		_, err = j.Session(t.Context(), bad)
		require.ErrorIs(t, err, persistence.ErrCorrupt)
		_, err = collect(t, j, bad, messages.StreamEvents, 0)
		require.ErrorIs(t, err, persistence.ErrCorrupt)
		for _, rows := range [][]answerOf{rowsOf(j.Sessions(t.Context(), bad.Tenant, "")), rowsOf(j.OpenSessions(t.Context()))} {
			require.Len(t, rows, 2, "both are told of")
			healthy := 0
			for _, row := range rows {
				if row.err == nil {
					require.Equal(t, good, row.row.Key)
					healthy++
					continue
				}
				require.ErrorIs(t, row.err, persistence.ErrCorrupt)
			}
			require.Equal(t, 1, healthy)
		}
		othersGoOn(t, j)
	})
}

type answerOf struct {
	row persistence.SessionInfo
	err error
}

func rowsOf(seq func(func(persistence.SessionInfo, error) bool)) []answerOf {
	var rows []answerOf
	for row, err := range seq {
		rows = append(rows, answerOf{row, err})
	}
	return rows
}
