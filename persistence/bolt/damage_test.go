package bolt

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// sample makes a closed journal of a few sessions and gives its bytes.
func sample(t *testing.T) (Config, []byte) {
	t.Helper()
	cfg := configForTest(t)
	j, err := Open(cfg)
	require.NoError(t, err)
	for _, id := range []messages.SessionID{"a", "b", "c", "d"} {
		w := newOwner(t, j, id)
		for range 5 {
			require.NoError(t, w.append(60))
		}
	}
	require.NoError(t, j.Close())
	b, err := os.ReadFile(cfg.Path)
	require.NoError(t, err)
	meta, _, err := newestMeta(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return cfg, b[:int(meta.end)*meta.pageSize] // without the room that it grew ahead
}

// readAll reads all that a journal holds; wrong data would fail the test.
func readAll(t *testing.T, j *Journal) error {
	t.Helper()
	for _, id := range []messages.SessionID{"a", "b", "c", "d"} {
		n := 0
		for rec, err := range j.Replay(t.Context(), messages.NewKey(id), messages.StreamEvents, 0) {
			if err != nil {
				return err
			}
			n++
			require.Equal(t, "event", string(rec.Payload))
			require.Equal(t, uint64(n), rec.Seq)
		}
		if n < 300 {
			return persistence.ErrUnknownSession
		}
	}
	return nil
}

func openBytes(t *testing.T, cfg Config, b []byte) (*Journal, error) {
	t.Helper()
	cfg.Path = filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(cfg.Path, b, 0o600))
	return Open(cfg)
}

func TestFlippedBitsAnywhereAreFoundOrHarmless(t *testing.T) {
	t.Parallel()
	cfg, good := sample(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	atOpen, atRead, harmless := 0, 0, 0
	for range 400 {
		b := bytes.Clone(good)
		b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		j, err := openBytes(t, cfg, b)
		if err != nil {
			require.True(t, isOpenError(err), err)
			atOpen++
			continue
		}
		if err := readAll(t, j); err != nil {
			atRead++
		} else {
			harmless++
		}
		require.NoError(t, j.Close())
	}
	t.Logf("found at open %d, at read %d, harmless (free space, or the older meta page) %d", atOpen, atRead, harmless)
	require.Positive(t, atOpen)
	require.Positive(t, atRead)
}

func isOpenError(err error) bool {
	for _, kind := range []error{persistence.ErrCorrupt, persistence.ErrFormat} {
		if strings.Contains(err.Error(), kind.Error()) {
			return true
		}
	}
	return false
}

func TestACutOrZeroedFileIsRefusedWithoutAPanic(t *testing.T) {
	t.Parallel()
	cfg, good := sample(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		j, err := openBytes(t, cfg, good[:rnd.IntN(len(good))])
		if err == nil { // beyond the last page in use
			require.NoError(t, readAll(t, j))
			require.NoError(t, j.Close())
			continue
		}
		require.True(t, isOpenError(err), err)
	}
	page := os.Getpagesize()
	for at := 0; at < len(good); at += page {
		b := bytes.Clone(good)
		clear(b[at : at+page])
		j, err := openBytes(t, cfg, b)
		if err != nil {
			require.True(t, isOpenError(err), err)
			continue
		}
		_ = readAll(t, j) // a free page, or the last commit is missing: never a panic
		require.NoError(t, j.Close())
	}
}

func TestADamagedMetaPageIsReported(t *testing.T) {
	t.Parallel()
	cfg, good := sample(t)
	for page := range 2 {
		b := bytes.Clone(good)
		b[page*os.Getpagesize()+40] ^= 1
		var log bytes.Buffer
		var mu sync.Mutex
		cfg.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(p)
		}), nil))
		j, err := openBytes(t, cfg, b)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		require.Contains(t, log.String(), "last commit but one")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAnEmptyOrForeignFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	cfg := configForTest(t)
	_, err := openBytes(t, cfg, nil)
	require.ErrorIs(t, err, persistence.ErrFormat)
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	}))
	require.NoError(t, db.Close())
	cfg.Path = other
	_, err = Open(cfg)
	require.ErrorIs(t, err, persistence.ErrFormat)
}

func TestANewerFormatIsRefusedWithAClearMessage(t *testing.T) {
	t.Parallel()
	for _, h := range []header{{format: formatVersion + 1}, {format: formatVersion, features: 4}} {
		cfg, _ := sample(t)
		db, err := bbolt.Open(cfg.Path, 0o600, boltOptions())
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keyHeader, h.encode())
		}))
		require.NoError(t, db.Close())
		_, err = Open(cfg)
		require.ErrorIs(t, err, persistence.ErrFormat)
		require.ErrorContains(t, err, "use the build that wrote it, or a newer one")
	}
}

func TestDamagedHeaderOrCountersAreFound(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{keyHeader, keyCounters} {
		cfg, _ := sample(t)
		db, err := bbolt.Open(cfg.Path, 0o600, boltOptions())
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return flip(tx.Bucket(bucketMeta), key, 3) }))
		require.NoError(t, db.Close())
		_, err = Open(cfg)
		require.ErrorIs(t, err, persistence.ErrCorrupt)
	}
}

func TestTwoThatCreateAtOnceShareOneFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := create(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left over")
	check(t, path)
}

func TestADamagedSessionIDIsMendedFromItsRow(t *testing.T) {
	t.Parallel()
	cfg, _ := sample(t)
	db, err := bbolt.Open(cfg.Path, 0o600, boltOptions())
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		ids := tx.Bucket(bucketIDs)
		id := idKey(messages.NewKey("b"))
		value := bytes.Clone(ids.Get(id))
		damaged := bytes.Clone(id)
		damaged[len(damaged)-1] ^= 4
		if err := ids.Delete(id); err != nil {
			return err
		}
		return ids.Put(damaged, value)
	}))
	require.NoError(t, db.Close())
	j := openForTest(t, cfg)
	require.NoError(t, readAll(t, j))
	n := 0
	for _, err := range j.Sessions(t.Context(), messages.DefaultTenant, "") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 4, n)
}
