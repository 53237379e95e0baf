package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/fx"

	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/bolt"
	"github.com/correx/correx-actors/persistence/memory"
)

const (
	// journalFile is the journal's name in the data folder.
	journalFile = "journal.db"
	// lockTimeout is how long a server waits for another one that is just ending.
	lockTimeout = 500 * time.Millisecond
	// recordMargin is what a record may hold beside an answer: a batch of 1,000 small events is far below it.
	recordMargin = 1 << 20
)

var journal = fx.Provide(newJournal)

func newJournal(lc fx.Lifecycle, cfg Config, log *slog.Logger) (persistence.Journal, error) {
	j, err := openJournal(cfg, log)
	if err != nil {
		return nil, &StartError{Part: "the journal", Err: err}
	}
	lc.Append(fx.StopHook(func(ctx context.Context) error {
		err := j.Close()
		log.LogAttrs(ctx, slog.LevelInfo, "journal closed")
		return err
	}))
	return j, nil
}

func openJournal(cfg Config, log *slog.Logger) (persistence.Journal, error) {
	if cfg.Journal.Driver == DriverMemory {
		return memory.New(memory.Config{}), nil
	}
	// Others may read nothing in it: it holds conversations.
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	j, err := bolt.Open(bolt.Config{
		Path: filepath.Join(cfg.DataDir, journalFile), LockTimeout: lockTimeout, Logger: log,
		// The end of a run holds its whole answer, in its record and in the index.
		MaxRecordBytes: cfg.Runs.MaxAnswerBytes + recordMargin,
		MaxBatchBytes:  4 * (cfg.Runs.MaxAnswerBytes + recordMargin),
	})
	if errors.Is(err, persistence.ErrLocked) {
		return nil, fmt.Errorf("another server uses the data folder %s (stop it, or set data_dir to another folder): %w", cfg.DataDir, err)
	}
	if err != nil {
		return nil, err
	}
	return j, nil
}
