//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package bolt

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lock takes the lock that bbolt takes later on the same open file, so that the file is inspected under it.
func lock(f *os.File, limit time.Duration) error {
	const poll = 20 * time.Millisecond
	for end := time.Now().Add(limit); ; time.Sleep(poll) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a file descriptor
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return errLocked
		}
	}
}
