package journaltest

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

func testLimits(t *testing.T, d Driver) {
	t.Run("RefusesWhatIsTooLarge", func(t *testing.T) {
		t.Parallel()
		j := d.Open(t, Limits{MaxRecordBytes: 1000, MaxBatchBytes: 3000})
		w := claim(t, j, session)
		fits := event("")
		fits.Payload = make([]byte, 1000-fits.StoredSize())
		over := event("")
		over.Payload = make([]byte, len(fits.Payload)+1)
		w.append(t, batchOf(fits))
		_, err := w.try(batchOf(event("e"), over))
		require.ErrorIs(t, err, persistence.ErrTooLarge)
		_, err = w.try(batchOf(fits, fits, fits, fits))
		require.ErrorIs(t, err, persistence.ErrTooLarge)
		batch := batchOf(event("e"))
		batch.Index = []persistence.IndexPut{{Index: persistence.IndexTurn, Name: "n", Value: make([]byte, 1001)}}
		_, err = w.try(batch)
		require.ErrorIs(t, err, persistence.ErrTooLarge)
		w.append(t, batchOf(event("goes on")))
		require.Equal(t, uint64(2), info(t, j, session).EventHead)
	})
	t.Run("AFullQueueRefusesAndRecovers", func(t *testing.T) {
		t.Parallel()
		const limit = 4
		j := d.Open(t, Limits{QueueLimit: limit})
		err := fillQueue(t, j, limit)
		require.ErrorIs(t, err, persistence.ErrFull)
		claim(t, j, session).append(t, batchOf(event("goes on")))
	})
	rule(t, d, "RefusesWhatIsNoBatch", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		without := func(change func(*messages.Record)) persistence.Batch {
			rec := event("e")
			change(&rec)
			return batchOf(rec)
		}
		index := func(puts ...persistence.IndexPut) persistence.Batch {
			batch := batchOf(event("e"))
			batch.Index = puts
			return batch
		}
		prune := batchOf(event("e"))
		prune.PruneLedger = true
		mark := batchOf(event("e"))
		mark.Open = 9
		for name, batch := range map[string]persistence.Batch{
			"no records":  {},
			"no id":       without(func(r *messages.Record) { r.ID = messages.RecordID{} }),
			"no type":     without(func(r *messages.Record) { r.Type = "" }),
			"long type":   without(func(r *messages.Record) { r.Type = strings.Repeat("x", messages.MaxTypeName+1) }),
			"no stream":   without(func(r *messages.Record) { r.Stream = 0 }),
			"bad stream":  without(func(r *messages.Record) { r.Stream = 3 }),
			"flags":       without(func(r *messages.Record) { r.Flags = messages.FlagEncrypted }),
			"prune":       prune,
			"open mark":   mark,
			"index 0":     index(persistence.IndexPut{Name: "n", Value: []byte("v")}),
			"no name":     index(persistence.IndexPut{Index: 1, Value: []byte("v")}),
			"long name":   index(persistence.IndexPut{Index: 1, Name: strings.Repeat("x", persistence.MaxIndexName+1)}),
			"second is 0": index(persistence.IndexPut{Index: 1, Name: "n"}, persistence.IndexPut{Name: "n"}),
		} {
			_, err := w.try(batch)
			require.ErrorIs(t, err, persistence.ErrInvalid, name)
		}
		_, err := appendTo(j, messages.NewKey(""), w.expect, batchOf(event("e")))
		require.ErrorIs(t, err, persistence.ErrInvalid)
		_, err = j.Session(t.Context(), session)
		require.ErrorIs(t, err, persistence.ErrUnknownSession)
	})
}

// fillQueue stalls the journal by a done that blocks, which no caller may do, and gives the refusal of the append that finds
// the queue full.
func fillQueue(t *testing.T, j persistence.Journal, limit int) error {
	t.Helper()
	w := claim(t, j, messages.NewKey("stall"))
	stalled, release := make(chan struct{}), make(chan struct{})
	j.Append(w.key, w.expect, batchOf(event("e")), func(persistence.Appended, error) {
		close(stalled)
		<-release
	})
	<-stalled
	var wg sync.WaitGroup
	var mu sync.Mutex
	var refusal error
	for range limit + 1 {
		w.expect.EventHead++
		wg.Add(1)
		j.Append(w.key, w.expect, batchOf(event("e")), func(_ persistence.Appended, err error) {
			defer wg.Done()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refusal = err
			}
		})
	}
	close(release)
	wg.Wait()
	require.Equal(t, uint64(1+limit), info(t, j, w.key).EventHead, "all but the last are stored")
	return refusal
}

func testClose(t *testing.T, d Driver) {
	rule(t, d, "RefusesEverythingAfterwards", func(t *testing.T, j persistence.Journal) {
		require.NoError(t, j.Healthy())
		w := claim(t, j, session)
		w.append(t, batchOf(event("e")))
		require.NoError(t, j.Close())
		require.NoError(t, j.Close(), "twice")
		for name, err := range map[string]error{
			"healthy":  j.Healthy(),
			"append":   second(w.try(batchOf(event("no")))),
			"claim":    second(j.Claim(t.Context(), session, persistence.Owner{})),
			"session":  second(j.Session(t.Context(), session)),
			"stats":    second(j.Stats(t.Context())),
			"delete":   j.Delete(t.Context(), session, w.expect),
			"replay":   firstError(j.Replay(t.Context(), session, messages.StreamEvents, 0)),
			"feed":     firstError(j.Feed(t.Context(), persistence.Position{}, false)),
			"follow":   firstError(j.Feed(t.Context(), persistence.Position{}, true)),
			"sessions": firstError(j.Sessions(t.Context(), session.Tenant, "")),
			"open":     firstError(j.OpenSessions(t.Context())),
		} {
			require.ErrorIs(t, err, persistence.ErrClosed, name)
		}
		_, _, err := j.Lookup(t.Context(), session, persistence.IndexTurn, "n")
		require.ErrorIs(t, err, persistence.ErrClosed)
	})
	rule(t, d, "WaitsForTheAppendsThatWereTaken", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		const n = 200
		errs := make(chan error, n)
		for range n {
			j.Append(session, w.expect, batchOf(event("e")), func(_ persistence.Appended, err error) { errs <- err })
			w.expect.EventHead++
		}
		require.NoError(t, j.Close())
		require.Len(t, errs, n)
		for range n {
			require.NoError(t, <-errs)
		}
	})
	rule(t, d, "EndsTheFollowersOfTheFeed", func(t *testing.T, j persistence.Journal) {
		claim(t, j, session).append(t, batchOf(event("e")))
		seen, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for _, err := range j.Feed(t.Context(), persistence.Position{}, true) {
				if err != nil {
					ended <- err
					return
				}
				close(seen)
			}
		}()
		<-seen
		require.NoError(t, j.Close())
		require.ErrorIs(t, <-ended, persistence.ErrClosed)
	})
}

func second[T any](_ T, err error) error { return err }

func testReopen(t *testing.T, d Driver) {
	if d.Reopen == nil {
		t.Skip("the driver keeps nothing")
	}
	rule(t, d, "KeepsEverything", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		batch := batchOf(append(events("e", 300), ledger("l1"), ledger("l2"))...)
		batch.Open, batch.Work = persistence.OpenSet, persistence.Work{Running: true, Waiting: 7}
		batch.Index = []persistence.IndexPut{{Index: persistence.IndexTurn, Name: "n", Value: []byte("v")}}
		w.append(t, batch)
		gone := claim(t, j, messages.NewKey("gone"))
		gone.append(t, batchOf(event("e")))
		require.NoError(t, j.Delete(t.Context(), gone.key, gone.expect))
		row, st := info(t, j, session), stats(t, j)
		j = d.Reopen(t, j)
		require.Equal(t, row, info(t, j, session))
		again := stats(t, j)
		require.Equal(t, st.Incarnation, again.Incarnation)
		require.Equal(t, []uint64{st.Sessions, st.Open, st.Events}, []uint64{again.Sessions, again.Open, again.Events})
		require.Len(t, payloads(t, j, session, messages.StreamEvents, 0), 300)
		require.Equal(t, []string{"default/sess_1"}, openKeys(t, j))
		value, found, err := j.Lookup(t.Context(), session, persistence.IndexTurn, "n")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "v", string(value))
		_, err = j.Claim(t.Context(), gone.key, persistence.Owner{})
		require.ErrorIs(t, err, persistence.ErrDeleted)
	})
	rule(t, d, "FencesTheEpochsOfEarlierBoots", func(t *testing.T, j persistence.Journal) {
		old := claim(t, j, session)
		old.append(t, batchOf(event("e1")))
		j = d.Reopen(t, j)
		old.j = j
		_, err := old.try(batchOf(event("no")))
		require.ErrorIs(t, err, persistence.ErrFenced)
		fresh := claim(t, j, session)
		require.Greater(t, fresh.expect.Epoch, old.expect.Epoch)
		fresh.append(t, batchOf(event("e2")))
	})
	rule(t, d, "KeepsPositions", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, batchOf(event("e1")))
		var after persistence.Position
		for rec, err := range j.Feed(t.Context(), after, false) {
			require.NoError(t, err)
			after = rec.After
		}
		j = d.Reopen(t, j)
		claim(t, j, session).append(t, batchOf(event("e2")))
		n := 0
		for rec, err := range j.Feed(t.Context(), after, false) {
			require.NoError(t, err)
			require.Equal(t, "e2", string(rec.Record.Payload))
			n++
		}
		require.Equal(t, 1, n)
	})
	rule(t, d, "NeverReusesThePositionsOfDeletedSessions", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		last := w.append(t, batchOf(events("e", 5)...)).Position
		require.NoError(t, j.Delete(t.Context(), session, w.expect))
		j = d.Reopen(t, j)
		res := claim(t, j, messages.NewKey("next")).append(t, batchOf(event("e")))
		require.Greater(t, res.Position, last)
	})
}

func stats(t *testing.T, j persistence.Journal) persistence.Stats {
	t.Helper()
	st, err := j.Stats(t.Context())
	require.NoError(t, err)
	return st
}
