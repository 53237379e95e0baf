package journaltest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// began is the writer's time when a rule begins.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// name is the n-th name of a rule. Neither their order nor that of their bytes is that of the numbers.
func name(n int) string { return fmt.Sprintf("%03d-%d", (n*37)%1000, n) }

// putting is a batch of one record, written at a time after began, with puts of an index.
func putting(after time.Duration, puts ...persistence.IndexPut) persistence.Batch {
	batch := batchOf(ledger("l"))
	batch.Records[0].Time = began.Add(after)
	batch.Index = puts
	return batch
}

func turnPut(n int) persistence.IndexPut {
	return persistence.IndexPut{Index: persistence.IndexTurn, Name: name(n), Value: []byte(name(n))}
}

func keeping(n, keep int) persistence.IndexPut {
	put := turnPut(n)
	put.Keep = keep
	return put
}

func expiring(n int, after time.Duration) persistence.IndexPut {
	put := turnPut(n)
	put.Expires = began.Add(after)
	return put
}

// numbers gives those of 0 to 99 whose names a session's index has.
func numbers(t *testing.T, j persistence.Journal, key messages.Key, index persistence.Index) []int {
	t.Helper()
	found := []int{}
	for n := range 100 {
		value, ok, err := j.Lookup(t.Context(), key, index, name(n))
		require.NoError(t, err)
		if ok {
			require.Equal(t, name(n), string(value))
			found = append(found, n)
		}
	}
	return found
}

func testTrim(t *testing.T, d Driver) {
	turns := func(t *testing.T, j persistence.Journal) []int {
		t.Helper()
		return numbers(t, j, session, persistence.IndexTurn)
	}
	rule(t, d, "KeepsTheNewest", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for n := range 30 {
			w.append(t, putting(0, keeping(n, 10)))
			require.Equal(t, upTo(n, 10), turns(t, j))
		}
	})
	rule(t, d, "AnEntryPutAgainCountsOnceAndAsNew", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for _, n := range []int{1, 2, 3, 1, 1, 1} {
			w.append(t, putting(0, keeping(n, 3)))
		}
		require.Equal(t, []int{1, 2, 3}, turns(t, j))
		w.append(t, putting(0, keeping(4, 3)))
		require.Equal(t, []int{1, 3, 4}, turns(t, j), "2 was the oldest")
		w.append(t, putting(0, keeping(5, 3)))
		w.append(t, putting(0, keeping(6, 3)))
		require.Equal(t, []int{4, 5, 6}, turns(t, j))
	})
	rule(t, d, "ARemovedEntryMakesRoom", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, putting(0, keeping(1, 3), keeping(2, 3), keeping(3, 3)))
		remove := persistence.IndexPut{Index: persistence.IndexTurn, Name: name(2), Keep: 1}
		w.append(t, putting(0, remove, remove))
		require.Equal(t, []int{1, 3}, turns(t, j), "a removal trims nothing")
		w.append(t, putting(0, keeping(4, 3)))
		require.Equal(t, []int{1, 3, 4}, turns(t, j))
		w.append(t, putting(0, keeping(2, 3)))
		require.Equal(t, []int{2, 3, 4}, turns(t, j))
	})
	rule(t, d, "RemovesWhatHasExpiredByTheWritersTime", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, putting(0, expiring(1, time.Minute), expiring(2, 2*time.Minute), expiring(3, 3*time.Minute)))
		w.append(t, putting(time.Minute-1, expiring(4, time.Hour)))
		require.Equal(t, []int{1, 2, 3, 4}, turns(t, j))
		w.append(t, batchOf(event("puts nothing")))
		require.Equal(t, []int{1, 2, 3, 4}, turns(t, j))
		w.append(t, putting(time.Minute, expiring(5, time.Hour)))
		require.Equal(t, []int{2, 3, 4, 5}, turns(t, j), "at the very instant")
		w.append(t, putting(time.Minute*5/2, expiring(6, time.Hour)))
		require.Equal(t, []int{3, 4, 5, 6}, turns(t, j))
		w.append(t, putting(0, expiring(7, time.Hour)))
		require.Equal(t, []int{3, 4, 5, 6, 7}, turns(t, j), "the writer's clock went back")
		late := putting(0, expiring(8, 4*time.Hour))
		late.Records = append(late.Records, ledger("l"))
		late.Records[1].Time = began.Add(3 * time.Hour)
		w.append(t, late)
		require.Equal(t, []int{7, 8}, turns(t, j), "the last record's time decides, and four go at most")
	})
	rule(t, d, "OnlyTheOldestIsLookedAt", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, putting(0, turnPut(1), expiring(2, time.Minute), expiring(3, time.Minute)))
		w.append(t, putting(time.Hour, expiring(4, 2*time.Hour)))
		require.Equal(t, []int{1, 2, 3, 4}, turns(t, j), "one that never expires holds those behind it")
		bound := expiring(5, 2*time.Hour)
		bound.Keep = 4
		w.append(t, putting(time.Hour, bound))
		require.Equal(t, []int{4, 5}, turns(t, j), "until there are too many")
	})
	rule(t, d, "OnePutRemovesAFewOnly", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		for n := range 40 {
			w.append(t, putting(0, expiring(n, time.Minute)))
		}
		have := 40
		for n := 40; n < 60; n++ { // the bound came later, or was lowered
			w.append(t, putting(0, keeping(n, 5)))
			have = max(5, have+1-persistence.TrimPerPut)
			require.Equal(t, upTo(n, have), turns(t, j))
		}
	})
	rule(t, d, "IndexesAndSessionsAreBoundedByThemselves", func(t *testing.T, j persistence.Journal) {
		w, other := claim(t, j, session), claim(t, j, messages.NewKey("sess_10"))
		idem := func(n, keep int) persistence.IndexPut {
			put := keeping(n, keep)
			put.Index = persistence.IndexIdempotency
			return put
		}
		for n := range 10 {
			w.append(t, putting(0, keeping(n, 2), idem(n, 3)))
			other.append(t, putting(0, keeping(n, 4)))
		}
		require.Equal(t, []int{8, 9}, turns(t, j))
		require.Equal(t, []int{7, 8, 9}, numbers(t, j, session, persistence.IndexIdempotency))
		require.Equal(t, []int{6, 7, 8, 9}, numbers(t, j, other.key, persistence.IndexTurn))
	})
	rule(t, d, "PutsOfOneBatchSeeTheOnesBefore", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, putting(0, keeping(1, 3), keeping(2, 3), keeping(1, 3), keeping(3, 3), keeping(4, 3), keeping(4, 3)))
		require.Equal(t, []int{1, 3, 4}, turns(t, j))
		w.append(t, putting(0, keeping(5, 3), persistence.IndexPut{Index: persistence.IndexTurn, Name: name(5)}, keeping(6, 3)))
		require.Equal(t, []int{3, 4, 6}, turns(t, j), "5 took the place of 1 for a moment")
	})
	rule(t, d, "AppendsThatDoNotWaitSeeTheOnesBefore", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		const n = 60
		answered := make(chan error, n)
		for i := range n {
			j.Append(session, w.expect, putting(0, keeping(i, 7), keeping(0, 7)), func(_ persistence.Appended, err error) { answered <- err })
			w.expect.LedgerHead++
		}
		for range n {
			require.NoError(t, <-answered)
		}
		require.Equal(t, append([]int{0}, upTo(n-1, 6)...), turns(t, j))
	})
	rule(t, d, "WhatIsNotStoredTrimsNothing", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		w.append(t, putting(0, expiring(1, time.Minute), expiring(2, time.Minute)))
		stale := w.expect
		stale.LedgerHead--
		require.ErrorIs(t, second(appendTo(j, session, stale, putting(time.Hour, keeping(3, 1)))), persistence.ErrConflict)
		fenced := w.expect
		fenced.Epoch--
		require.ErrorIs(t, second(appendTo(j, session, fenced, putting(time.Hour, keeping(3, 1)))), persistence.ErrFenced)
		require.ErrorIs(t, second(w.try(putting(time.Hour, keeping(3, -1)))), persistence.ErrInvalid)
		require.Equal(t, []int{1, 2}, turns(t, j))
		batch, before := putting(0, keeping(3, 3)), w.expect
		w.append(t, batch)
		w.expect = before
		res, err := w.try(batch)
		require.NoError(t, err)
		require.True(t, res.Duplicate)
		require.Equal(t, []int{1, 2, 3}, turns(t, j))
	})
	rule(t, d, "ADeletedSessionKeepsNothing", func(t *testing.T, j persistence.Journal) {
		w := claim(t, j, session)
		batch := putting(0)
		for n := range 1500 {
			batch.Index = append(batch.Index, keeping(n, 1400))
		}
		w.append(t, batch)
		require.NoError(t, j.Delete(t.Context(), session, w.expect)) // the driver's own check finds what is left over
		_, _, err := j.Lookup(t.Context(), session, persistence.IndexTurn, name(1499))
		require.ErrorIs(t, err, persistence.ErrDeleted)
	})
	rule(t, d, "ReopenedItGoesOn", func(t *testing.T, j persistence.Journal) {
		if d.Reopen == nil {
			t.Skip("the driver keeps nothing")
		}
		for n := range 30 {
			claim(t, j, session).append(t, putting(0, keeping(n, 8), keeping(2, 8)))
			j = d.Reopen(t, j)
		}
		require.Equal(t, append([]int{2}, upTo(29, 7)...), turns(t, j))
		claim(t, j, session).append(t, putting(0, expiring(50, time.Minute)))
		j = d.Reopen(t, j)
		require.Equal(t, append([]int{2}, append(upTo(29, 7), 50)...), turns(t, j))
	})
}

// upTo gives the last of the numbers from 0 to n, at most count.
func upTo(n, count int) []int {
	list := []int{}
	for i := max(0, n-count+1); i <= n; i++ {
		list = append(list, i)
	}
	return list
}
