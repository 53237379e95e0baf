package bolt

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/correx/correx-actors/persistence"
)

// Examination is what a look at a journal's file shows.
type Examination struct {
	// Size of the file in bytes and time of its last change.
	Size     int64
	Modified time.Time
	// Format of the file; an older one is upgraded by the next Open.
	Format uint32
	// Boots counts the times that it was opened for writing.
	Boots    uint64
	Sessions uint64
	Events   uint64
	// OldMeta: one of two meta pages is damaged, so the last commit may be missing. Normal after a power cut.
	OldMeta bool
}

// Examine looks at the file at path and changes nothing: its structure is checked, not each record. It holds the file's lock
// meanwhile. Errors: fs.ErrNotExist, ErrLocked (with the holder) while a process has it open, ErrFormat, ErrCorrupt.
func Examine(path string) (Examination, error) {
	var seen Examination
	opts := boltOptions()
	opts.ReadOnly = true
	opts.Timeout = time.Second
	opts.OpenFile = func(name string, _ int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, os.O_RDONLY, mode)
		if err != nil {
			return nil, err
		}
		if err := seen.inspect(f, path); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	db, err := bbolt.Open(path, 0o600, opts)
	if err != nil {
		return seen, fmt.Errorf("examine journal: %w", err)
	}
	var j Journal
	err = db.View(func(tx *bbolt.Tx) error {
		h, err := j.readMeta(tx)
		seen.Format = h.format
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return seen, fmt.Errorf("examine journal: %w", err)
	}
	seen.Boots, seen.Sessions, seen.Events = j.counters.boot, j.counters.sessions, j.counters.events
	return seen, nil
}

// inspect runs before bbolt touches the file, as in openFile.
func (e *Examination) inspect(f *os.File, path string) error {
	if err := lock(f, 0); err != nil {
		if errors.Is(err, errLocked) {
			return lockedError(path)
		}
		return fmt.Errorf("lock: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%w: it is a folder", persistence.ErrFormat)
	}
	e.Size, e.Modified = info.Size(), info.ModTime()
	e.OldMeta, err = verify(f, info.Size())
	return err
}
