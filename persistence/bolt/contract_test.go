package bolt

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/journaltest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, journaltest.Driver{
		Open: func(t *testing.T, l journaltest.Limits) persistence.Journal {
			t.Helper()
			cfg := configForTest(t)
			cfg.MaxRecordBytes, cfg.MaxBatchBytes, cfg.QueueLimit = l.MaxRecordBytes, l.MaxBatchBytes, l.QueueLimit
			return openForTest(t, cfg)
		},
		Reopen: func(t *testing.T, j persistence.Journal) persistence.Journal {
			t.Helper()
			require.NoError(t, j.Close())
			return openForTest(t, j.(*Journal).cfg)
		},
		Damage: damage,
		Provoke: map[error]func(*testing.T) error{
			persistence.ErrFailed: provokeFailed,
			persistence.ErrLocked: provokeLocked,
			persistence.ErrFormat: provokeFormat,
		},
		Cannot: map[error]string{
			persistence.ErrUnavailable: "there is no server",
			persistence.ErrUnknown:     "a commit that may have happened is a failed sync, which is ErrFailed",
		},
	})
}

func configForTest(t *testing.T) Config {
	t.Helper()
	return Config{Path: filepath.Join(t.TempDir(), "journal.db"), Logger: slog.New(slog.DiscardHandler)}
}

// openForTest opens a journal and, at cleanup, closes it and has bbolt check the file.
func openForTest(t *testing.T, cfg Config) *Journal {
	t.Helper()
	j, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, j.Close())
		check(t, cfg.Path)
	})
	return j
}

// check has bbolt and our own walker look at the structure of a closed file, and audits what it holds.
func check(t *testing.T, path string) {
	t.Helper()
	opts := boltOptions()
	opts.ReadOnly, opts.PreLoadFreelist = true, true
	db, err := bbolt.Open(path, 0o600, opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt check: %v", err)
		}
		return nil
	}))
	audit(t, path, db)
	f, err := os.Open(path)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = verify(f, info.Size())
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// damage changes the file through bbolt, so that its structure stays whole.
func damage(t *testing.T, journal persistence.Journal, d journaltest.Damage) bool {
	t.Helper()
	j := journal.(*Journal)
	require.NoError(t, os.WriteFile(damagedMark(j.cfg.Path), nil, 0o600))
	require.NoError(t, j.db.Update(func(tx *bbolt.Tx) error {
		id := idKey(d.Key)
		n, err := decodeID(id, tx.Bucket(bucketIDs).Get(id))
		if err != nil {
			return err
		}
		record := appendRecordKey(nil, n, d.Stream, d.Seq)
		switch d.Kind {
		case journaltest.FlipRecord:
			return flip(tx.Bucket(bucketRecords), record, d.Offset)
		case journaltest.LoseRecord:
			return tx.Bucket(bucketRecords).Delete(record)
		case journaltest.FlipRow:
			return flip(tx.Bucket(bucketSessions), n.key(), d.Offset)
		case journaltest.FlipIndex:
			return flip(tx.Bucket(bucketEntries), indexKey(n, d.Index, d.Name), d.Offset)
		case journaltest.FlipFeed:
			return flip(tx.Bucket(bucketFeed), bytes.Clone(tx.Bucket(bucketRecords).Get(
				appendRecordKey(nil, n, messages.StreamEvents, d.Seq))[:positionLen]), d.Offset)
		}
		return nil
	}))
	return true
}

func flip(b *bbolt.Bucket, key []byte, offset int) error {
	value := bytes.Clone(b.Get(key))
	value[len(value)-1-offset] ^= 1
	return b.Put(key, value)
}

func provokeLocked(t *testing.T) error {
	t.Helper()
	cfg := configForTest(t)
	openForTest(t, cfg)
	cfg.LockTimeout = 1
	_, err := Open(cfg)
	return err
}

func provokeFormat(t *testing.T) error {
	t.Helper()
	cfg := configForTest(t)
	require.NoError(t, os.WriteFile(cfg.Path, bytes.Repeat([]byte("no journal "), 1000), 0o600))
	_, err := Open(cfg)
	return err
}
