package bolt

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigTellsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	err := Config{QueueLimit: -1}.Validate()
	require.ErrorContains(t, err, "path is empty")
	require.ErrorContains(t, err, "no logger")
	require.ErrorContains(t, err, "must not be negative")
	log := slog.New(slog.DiscardHandler)
	require.NoError(t, Config{Path: "p", Logger: log}.Validate())
	require.NoError(t, Config{Path: "p", Logger: log, MaxRecordBytes: 100 << 20}.Validate(), "the others follow")
	require.ErrorContains(t, Config{Path: "p", Logger: log, MaxRecordBytes: 10, MaxBatchBytes: 5}.Validate(), "must not fall")
	_, err = Open(Config{})
	require.ErrorContains(t, err, "path is empty")
}

func TestOpenNeedsTheFolder(t *testing.T) {
	t.Parallel()
	_, err := Open(Config{Path: filepath.Join(t.TempDir(), "none", "journal.db"), Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheOwnerFileIsThereWhileTheJournalIsOpen(t *testing.T) {
	t.Parallel()
	cfg := configForTest(t)
	j, err := Open(cfg)
	require.NoError(t, err)
	require.FileExists(t, ownerPath(cfg.Path))
	require.NoError(t, j.Close())
	require.NoFileExists(t, ownerPath(cfg.Path))
}
