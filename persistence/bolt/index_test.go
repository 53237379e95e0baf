package bolt

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Entries of format 1 have no place in the order: they are found, never trimmed, and leave no trace when they are put again,
// removed or deleted with their session. openForTest audits the file at the end.
func TestEntriesOfFormat1AreFoundUntilTheyArePutAgain(t *testing.T) {
	t.Parallel()
	cfg := format1(t)
	j := openForTest(t, cfg)
	a := newOwner(t, j, "a")
	for i := range 10 {
		require.NoError(t, a.put(keyed(fmt.Sprintf("new %d", i), 2)))
	}
	require.True(t, has(t, j, a.key, "name 0"), "it does not count")
	require.True(t, has(t, j, a.key, "new 8"))
	require.False(t, has(t, j, a.key, "new 7"))

	require.NoError(t, a.put(keyed("name 0", 2)))
	value, _, err := j.Lookup(t.Context(), a.key, persistence.IndexIdempotency, "name 0")
	require.NoError(t, err)
	require.Equal(t, "value of name 0", string(value))
	require.NoError(t, a.put(keyed("new 10", 2), keyed("new 11", 2)))
	require.False(t, has(t, j, a.key, "name 0"), "now it counts, and the old value does not come back")

	require.NoError(t, a.put(persistence.IndexPut{Index: persistence.IndexIdempotency, Name: "name 1"}))
	require.False(t, has(t, j, a.key, "name 1"))
	require.True(t, has(t, j, a.key, "name 2"))

	b := newOwner(t, j, "b")
	require.NoError(t, b.put(keyed("new", 2)))
	require.NoError(t, j.Delete(t.Context(), b.key, b.expect))
}

// A damaged place costs its entry the order, nothing else: no append fails, and the index stays bounded.
func TestADamagedPlaceIsDroppedWithAWord(t *testing.T) {
	t.Parallel()
	cfg := configForTest(t)
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	j, err := Open(cfg)
	require.NoError(t, err)
	w := newOwner(t, j, "s")
	put := func(n int) { t.Helper(); require.NoError(t, w.put(keyed(strconv.Itoa(n), 3))) }
	for n := range 3 {
		put(n)
	}
	require.NoError(t, j.db.Update(func(tx *bbolt.Tx) error {
		return flip(tx.Bucket(bucketOrder), appendPlaceKey(nil, 1, persistence.IndexIdempotency, 1), 0)
	}))
	for n := 3; n < 20; n++ {
		put(n)
	}
	require.Equal(t, []string{"0", "17", "18", "19"}, found(t, j, w.key, 30), "0 has no place any more")
	require.NoError(t, w.put(keyed("0", 3)))
	put(20)
	require.Equal(t, []string{"0", "19", "20"}, found(t, j, w.key, 30), "put again it has one")
	require.NoError(t, j.Close())
	require.Equal(t, 1, strings.Count(log.String(), "damaged place"))
	require.Contains(t, log.String(), "session_id=s")
	check(t, cfg.Path)
}

// Of a damaged entry the place is not known: it is put again in a new one, and the old one is dropped in its time.
func TestADamagedEntryThatIsPutAgainCountsOnce(t *testing.T) {
	t.Parallel()
	cfg := configForTest(t)
	j := openForTest(t, cfg)
	w := newOwner(t, j, "s")
	damage := func(name string) {
		t.Helper()
		require.NoError(t, j.db.Update(func(tx *bbolt.Tx) error {
			return flip(tx.Bucket(bucketEntries), indexKey(1, persistence.IndexIdempotency, name), 0)
		}))
	}
	for n := range 3 {
		require.NoError(t, w.put(keyed(strconv.Itoa(n), 3)))
	}
	damage("0")
	require.NoError(t, w.put(keyed("3", 3)))
	_, _, err := j.Lookup(t.Context(), w.key, persistence.IndexIdempotency, "0")
	require.ErrorIs(t, err, persistence.ErrCorrupt, "its time is over, and still the damage is told")
	require.NoError(t, w.put(keyed("0", 3)))
	require.Equal(t, []string{"0", "2", "3"}, found(t, j, w.key, 30))
	damage("2")
	require.NoError(t, w.put(keyed("2", 3)))
	require.NoError(t, w.put(keyed("4", 3)))
	require.Equal(t, []string{"0", "2", "4"}, found(t, j, w.key, 30))
	require.NoError(t, w.put(keyed("5", 3)))
	require.Equal(t, []string{"2", "4", "5"}, found(t, j, w.key, 30))
}

// A row is shared: with the cache, and with the one that holds if the transaction fails.
func TestPutsChangeNoOlderCopyOfTheRow(t *testing.T) {
	t.Parallel()
	j := openForTest(t, configForTest(t))
	w := newOwner(t, j, "s")
	require.NoError(t, w.put(keyed("0", 3)))
	tx, err := j.db.Begin(true)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }() // else a test that fails would wait for its own lock
	old, err := loadRow(tx, w.key)
	require.NoError(t, err)
	want := indexOrder{index: persistence.IndexIdempotency, count: 1, last: 1}
	require.Equal(t, []indexOrder{want}, old.orders)
	next := *old
	b := &batch{j: j, tx: tx}
	b.putIndex(&next, []persistence.IndexPut{keyed("1", 3), keyed("2", 3)})
	require.NoError(t, b.indexErr)
	require.Equal(t, []indexOrder{want}, old.orders)
	require.Equal(t, uint32(3), next.orders[0].count)
	require.NoError(t, tx.Rollback())
	require.Equal(t, []string{"0"}, found(t, j, w.key, 3))
}

// found lists which of the names 0 to n-1 a session has.
func found(t *testing.T, j *Journal, key messages.Key, n int) []string {
	t.Helper()
	var names []string
	for i := range n {
		if name := strconv.Itoa(i); has(t, j, key, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestATimeThatCannotBeStoredIsNeverOrLongAgo(t *testing.T) {
	t.Parallel()
	require.Zero(t, expiry(time.Time{}))
	require.Zero(t, expiry(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, int64(1), expiry(time.Unix(0, 0)))
	require.Equal(t, int64(1), expiry(time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, int64(1_700_000_000_000_000_005), expiry(time.Unix(1_700_000_000, 5)))
}
