package bolt

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// format1 gives a file that the last build of format 1 wrote: sessions a, b and gone with three appends each, of one event, one
// ledger record and an entry in both indexes; a is open, gone is deleted.
func format1(t *testing.T) Config {
	t.Helper()
	f, err := os.Open("testdata/format1.db.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	cfg := configForTest(t)
	require.NoError(t, os.WriteFile(cfg.Path, b, 0o600))
	return cfg
}

func TestAFileOfFormat1GoesOn(t *testing.T) {
	t.Parallel()
	cfg := format1(t)
	j := openForTest(t, cfg)
	key := messages.NewKey("a")
	info, err := j.Session(t.Context(), key)
	require.NoError(t, err)
	require.True(t, info.Open)
	require.Equal(t, []uint64{3, 3}, []uint64{info.EventHead, info.LedgerHead})
	require.Zero(t, info.Work, "nobody told it")
	require.Equal(t, 3, count(t, j, key))
	for i := range 3 {
		for _, index := range []persistence.Index{persistence.IndexTurn, persistence.IndexIdempotency} {
			value, found, err := j.Lookup(t.Context(), key, index, fmt.Sprintf("name %d", i))
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, fmt.Sprintf("value %d of index %d", i, index), string(value))
		}
	}
	_, err = j.Session(t.Context(), messages.NewKey("gone"))
	require.ErrorIs(t, err, persistence.ErrDeleted)
	w := newOwner(t, j, "a")
	require.NoError(t, w.append(2))
	require.Equal(t, 5, count(t, j, key))
}

func TestOpenGivesAFileTheNewFormatAndKeepsItsIncarnation(t *testing.T) {
	t.Parallel()
	cfg := format1(t)
	old := headerOf(t, cfg)
	require.Equal(t, uint32(1), old.format)
	j, err := Open(cfg)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	now := headerOf(t, cfg)
	require.Equal(t, uint32(formatVersion), now.format)
	now.format = old.format
	require.Equal(t, old, now)
}

func headerOf(t *testing.T, cfg Config) (h header) {
	t.Helper()
	db, err := bbolt.Open(cfg.Path, 0o600, boltOptions())
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bbolt.Tx) (err error) {
		h, err = decodeHeader(tx.Bucket(bucketMeta).Get(keyHeader))
		return err
	}))
	require.NoError(t, db.Close())
	return h
}
