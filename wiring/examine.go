package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/persistence/bolt"
)

// JournalState is what a look at the journal shows without opening it for writing.
type JournalState struct {
	// Path of the file; "" = the journal is in memory.
	Path   string
	Exists bool
	// Holder is who has it open, so that nothing more can be seen; "" = nobody.
	Holder   string
	Size     int64
	Modified time.Time
	Boots    uint64
	Sessions uint64
	Events   uint64
	// OldMeta: the last commit may be missing, as after a power cut.
	OldMeta bool
}

// ExamineJournal looks at the journal that a server with this configuration would open, and changes nothing. One that another
// process has open, or that does not exist yet, is no error.
func (c Config) ExamineJournal() (JournalState, error) {
	if c.Journal.Driver == DriverMemory {
		return JournalState{}, nil
	}
	state := JournalState{Path: filepath.Join(c.DataDir, journalFile)}
	seen, err := bolt.Examine(state.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state, nil
	case errors.Is(err, persistence.ErrLocked):
		state.Exists, state.Holder = true, "another process"
		if _, holder, told := strings.Cut(err.Error(), persistence.ErrLocked.Error()+": "); told {
			state.Holder = holder
		}
		return state, nil
	case err != nil:
		state.Exists = true
		return state, fmt.Errorf("%s: %w", state.Path, err)
	}
	return JournalState{
		Path: state.Path, Exists: true, Size: seen.Size, Modified: seen.Modified,
		Boots: seen.Boots, Sessions: seen.Sessions, Events: seen.Events, OldMeta: seen.OldMeta,
	}, nil
}
