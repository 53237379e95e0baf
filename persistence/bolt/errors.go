package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/correx/correx-actors/persistence"
)

// commitError sorts the error of a commit. Only what surely left the file as it was, so that a later commit may succeed, is
// ErrFull: a write, or the growing of the file, that found no room. All else is ErrFailed, above all every failed sync:
// the kernel marks the pages clean after it, so a second sync that succeeds proves nothing.
func commitError(err error) error {
	if noRoom(err) {
		return fmt.Errorf("commit: %w: %w", persistence.ErrFull, err)
	}
	return fmt.Errorf("commit: %w: %w", persistence.ErrFailed, err)
}

func noRoom(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	// bbolt gives a write's error as *fs.PathError and a sync's as a bare errno; a lack of room found by a sync is not ErrFull.
	var path *fs.PathError
	if errors.As(err, &path) {
		return outOfRoom(path.Err)
	}
	// The error of growing the file has been turned to text.
	text := err.Error()
	if !strings.Contains(text, "file resize error") {
		return false
	}
	for _, errno := range roomErrors {
		if strings.Contains(text, errno.Error()) {
			return true
		}
	}
	return false
}

func outOfRoom(err error) bool {
	for _, errno := range roomErrors {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// roomErrors say that disk, quota or file-size limit are used up.
var roomErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// readError sorts the error of a read transaction.
func readError(err error) error {
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return persistence.ErrClosed
	}
	return err
}
