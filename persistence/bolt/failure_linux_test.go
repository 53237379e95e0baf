package bolt

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/persistence"
)

// provokeFailed makes a real sync fail: /dev/null takes every write and refuses to be synced.
func provokeFailed(t *testing.T) error {
	t.Helper()
	j := openForTest(t, configForTest(t))
	w := newOwner(t, j, "s")
	require.NoError(t, w.append(1))
	swapFile(t, j.cfg.Path, os.DevNull)
	return w.append(1)
}

// swapFile makes this process's descriptor of a file one of another file, and gives it.
func swapFile(t *testing.T, path, other string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err != nil || target != path {
			continue
		}
		fd, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		swapDescriptor(t, fd, other)
		return fd
	}
	t.Fatalf("%s is not open", path)
	return -1
}

func swapDescriptor(t *testing.T, fd int, other string) {
	t.Helper()
	f, err := os.OpenFile(other, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(f.Fd()), fd, syscall.O_CLOEXEC))
	require.NoError(t, f.Close())
}

func TestAFailedSyncStopsTheJournalUntilItIsOpenedAgain(t *testing.T) {
	t.Parallel()
	cfg := configForTest(t)
	j := openForTest(t, cfg)
	w := newOwner(t, j, "s")
	require.NoError(t, w.append(5))
	follower := make(chan error, 1)
	go func() {
		for _, err := range j.Feed(t.Context(), persistence.Position{}, true) {
			if err != nil {
				follower <- err
				return
			}
		}
	}()
	swapFile(t, cfg.Path, os.DevNull)
	require.ErrorIs(t, w.append(1), persistence.ErrFailed)
	require.ErrorIs(t, w.append(1), persistence.ErrFailed, "no later append succeeds")
	require.ErrorIs(t, j.Healthy(), persistence.ErrFailed)
	require.ErrorIs(t, <-follower, persistence.ErrFailed)
	_, err := j.Claim(t.Context(), w.key, persistence.Owner{})
	require.ErrorIs(t, err, persistence.ErrFailed)
	_, err = j.Session(t.Context(), w.key)
	require.ErrorIs(t, err, persistence.ErrFailed, "what is read now may not be on disk")
	require.NoError(t, j.Close())
	again := openForTest(t, cfg)
	require.Equal(t, 5, count(t, again, w.key), "all that was acknowledged, nothing else")
}

func TestAFullDiskRefusesAndGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	j := openForTest(t, configForTest(t))
	w := newOwner(t, j, "s")
	require.NoError(t, w.append(5))
	fd := swapFile(t, j.cfg.Path, "/dev/full")
	err := w.append(1)
	require.ErrorIs(t, err, persistence.ErrFull)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, j.Healthy())
	require.Equal(t, 5, count(t, j, w.key), "reads go on")
	// A claim that waits together with an append that finds no room still tells the true heads.
	done := make(chan error, 1)
	w.start(1, done)
	c, err := j.Claim(t.Context(), w.key, persistence.Owner{})
	require.NoError(t, err)
	require.ErrorIs(t, <-done, persistence.ErrFull)
	require.Equal(t, uint64(5), c.EventHead)
	swapDescriptor(t, fd, j.cfg.Path)
	w.expect = persistence.Expect{Epoch: c.Epoch, EventHead: 5}
	require.NoError(t, w.append(1))
	require.Equal(t, 6, count(t, j, w.key))
}

func TestARemovedFileIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	cfg := configForTest(t)
	j, err := Open(cfg)
	require.NoError(t, err)
	w := newOwner(t, j, "s")
	require.NoError(t, w.append(1))
	require.NoError(t, os.Remove(cfg.Path))
	require.ErrorIs(t, w.append(1), persistence.ErrFailed)
	require.NoError(t, j.Close())
}
