// Package bolt is the default journal driver: one bbolt file, one process.
//
// One goroutine, the committer, takes all appends that wait and writes them in one transaction with one pair of syncs; no
// timer delays it, so a lone writer pays for one commit and two thousand writers share one. What can be done before (encoding,
// checksums) is done on the caller's goroutine. Readers copy bounded chunks out of short transactions, and no transaction is
// open while foreign code runs: a long reader would make the file grow and could block the committer.
//
// The driver does not replicate and cannot be opened by two processes. docs/journal.md describes the file.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// Config of a Journal.
type Config struct {
	// Path of the file; its folder must exist. Required. No network file system: bbolt needs mmap and locks that hold.
	Path string
	// MaxRecordBytes bounds one record or index value; 0 is 4 MiB.
	MaxRecordBytes int
	// MaxBatchBytes bounds one append; 0 is 16 MiB. A commit holds all appends that wait, up to 4 MiB or one append.
	MaxBatchBytes int
	// QueueLimit bounds the appends that wait for the committer; 0 is 65536. More are refused with ErrFull.
	QueueLimit int
	// QueueBytes bounds them in memory; 0 is 64 MiB.
	QueueBytes int
	// LockTimeout is how long Open waits for another process to let go of the file; 0 is one second.
	LockTimeout time.Duration
	// Logger must be set.
	Logger *slog.Logger
}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("journal path is empty"))
	}
	if c.Logger == nil {
		errs = append(errs, errors.New("journal has no logger"))
	}
	if c.MaxRecordBytes < 0 || c.MaxBatchBytes < 0 || c.QueueLimit < 0 || c.QueueBytes < 0 || c.LockTimeout < 0 {
		errs = append(errs, errors.New("journal limits must not be negative"))
	}
	c = c.filled()
	if c.MaxBatchBytes < c.MaxRecordBytes || c.QueueBytes < c.MaxBatchBytes {
		errs = append(errs, fmt.Errorf("journal limits must not fall: record %d, batch %d, queue %d bytes",
			c.MaxRecordBytes, c.MaxBatchBytes, c.QueueBytes))
	}
	return errors.Join(errs...)
}

func (c Config) filled() Config {
	fill := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	fill(&c.MaxRecordBytes, 4<<20)
	fill(&c.MaxBatchBytes, max(16<<20, c.MaxRecordBytes))
	fill(&c.QueueLimit, 65536)
	fill(&c.QueueBytes, max(64<<20, c.MaxBatchBytes))
	if c.LockTimeout == 0 {
		c.LockTimeout = time.Second
	}
	return c
}

// Journal is a persistence.Journal in one bbolt file.
type Journal struct {
	cfg         Config
	db          *bbolt.DB
	file        os.FileInfo // identity of the open file
	incarnation string
	boot        uint64
	nosync      bool // tests only: shows that their power-loss checks can fail

	appends atomic.Uint64
	commits atomic.Uint64
	// failure is set once: the journal is fail-stop from then on.
	failure atomic.Pointer[error]

	// Owned by the committer's goroutine.
	counters counters
	rows     rowCache
	claims   map[messages.Key]uint64
	claimed  uint64 // claims given since the file was opened
	batch    batch  // what the transaction at work holds; its memory serves all
	wedged   bool   // a panic left bbolt's write lock held

	mu      sync.Mutex
	queue   []request
	waiting int           // bytes in queue
	closing bool          // nothing is admitted any more
	stopped bool          // the committer has ended
	wake    chan struct{} // capacity 1: queue or closing changed
	ended   chan struct{} // closed when the committer has ended
	grown   chan struct{} // closed and replaced when the feed grows, the journal fails or closes
	stats   counters      // what is committed, for Stats and Feed

	closeOnce sync.Once
	closeErr  error
}

var _ persistence.Journal = (*Journal)(nil)

// Open opens the file, or makes it. Errors: persistence.ErrLocked, ErrFormat, ErrCorrupt, those of Config.Validate and of the
// file system.
func Open(cfg Config) (*Journal, error) {
	return open(cfg, false)
}

func open(cfg Config, nosync bool) (*Journal, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open journal %q: %w", cfg.Path, err)
	}
	cfg = cfg.filled()
	j := &Journal{
		cfg:    cfg,
		nosync: nosync,
		claims: make(map[messages.Key]uint64),
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
		grown:  make(chan struct{}),
	}
	if err := j.openFile(); err != nil {
		return nil, fmt.Errorf("open journal %q: %w", cfg.Path, err)
	}
	writeOwner(cfg.Path)
	go j.committer()
	return j, nil
}

// Healthy implements persistence.Journal.
func (j *Journal) Healthy() error {
	if err := j.failed(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing {
		return persistence.ErrClosed
	}
	return nil
}

// Stats implements persistence.Journal.
func (j *Journal) Stats(ctx context.Context) (persistence.Stats, error) {
	if err := context.Cause(ctx); err != nil {
		return persistence.Stats{}, err
	}
	if err := j.Healthy(); err != nil {
		return persistence.Stats{}, fmt.Errorf("journal stats: %w", err)
	}
	j.mu.Lock()
	c := j.stats
	j.mu.Unlock()
	st := persistence.Stats{
		Driver:      "bolt",
		Incarnation: j.incarnation,
		Sessions:    c.sessions,
		Open:        c.open,
		Events:      c.events,
		FreeBytes:   int64(j.db.Stats().FreeAlloc),
		Appends:     j.appends.Load(),
		Commits:     j.commits.Load(),
	}
	if info, err := os.Stat(j.cfg.Path); err == nil {
		st.FileBytes = info.Size()
	}
	return st, nil
}

// Close implements persistence.Journal.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() {
		j.mu.Lock()
		j.closing = true
		j.mu.Unlock()
		j.signal()
		<-j.ended
		if j.wedged {
			// bbolt's write lock was lost in a panic and db.Close would wait for it: the file goes with the process.
			j.closeErr = j.failed()
			return
		}
		if err := j.db.Close(); err != nil {
			j.closeErr = fmt.Errorf("close journal %q: %w", j.cfg.Path, err)
		}
		removeOwner(j.cfg.Path)
		j.broadcast()
	})
	return j.closeErr
}

// failed is the reason for which the journal refuses everything, wrapping ErrFailed; nil if it does not.
func (j *Journal) failed() error {
	if err := j.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes the journal refuse everything from now on.
func (j *Journal) fail(err error) {
	if !j.failure.CompareAndSwap(nil, &err) {
		return
	}
	j.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "journal failed, it must be opened again",
		slog.String(messages.AttrPath, j.cfg.Path), slog.Any(messages.AttrError, err))
	j.broadcast()
}

// broadcast wakes all that follow the feed.
func (j *Journal) broadcast() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.grown)
	j.grown = make(chan struct{})
}

func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}
