package bolt

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/persistence"
)

func TestExamineTellsOfAFileAndChangesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	_, err := Examine(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, path)

	j := openAt(t, path)
	_, err = Examine(path)
	require.ErrorIs(t, err, persistence.ErrLocked)
	require.ErrorContains(t, err, "pid ")
	w := newOwner(t, j, "s1")
	require.NoError(t, w.append(3))
	require.NoError(t, j.Close())

	before, err := os.ReadFile(path)
	require.NoError(t, err)
	seen, err := Examine(path)
	require.NoError(t, err)
	require.EqualValues(t, len(before), seen.Size)
	require.EqualValues(t, formatVersion, seen.Format)
	require.EqualValues(t, 1, seen.Boots)
	require.EqualValues(t, 1, seen.Sessions)
	require.EqualValues(t, 3, seen.Events)
	require.False(t, seen.OldMeta)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestExamineTellsOfDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	require.NoError(t, os.WriteFile(path, []byte("no journal"), 0o600))
	_, err := Examine(path)
	require.ErrorIs(t, err, persistence.ErrFormat)

	require.NoError(t, os.Remove(path))
	require.NoError(t, openAt(t, path).Close())
	require.NoError(t, os.Truncate(path, 3*int64(os.Getpagesize())))
	_, err = Examine(path)
	require.ErrorIs(t, err, persistence.ErrCorrupt)
}

func openAt(t *testing.T, path string) *Journal {
	t.Helper()
	cfg := configForTest(t)
	cfg.Path = path
	j, err := Open(cfg)
	require.NoError(t, err)
	return j
}
