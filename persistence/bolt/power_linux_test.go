package bolt

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// disk is an ext4 file system in a file, whose power can be cut: all that was not synced is gone.
type disk struct{ image, dir string }

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	d := &disk{image: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
	require.NoError(t, os.WriteFile(d.image, nil, 0o600))
	require.NoError(t, os.Truncate(d.image, 64<<20))
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("no mkfs.ext4 here: %v: %s", err, out)
	}
	if err := d.mount(); err != nil {
		t.Skipf("no loop mounts here: %v", err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", d.dir).Run() }) //nolint:noctx // t's context has ended
	return d
}

func (d *disk) mount() error {
	out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput() //nolint:noctx // short
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// cut drops all writes that no sync has made durable, and those to come, as a loss of power does.
func (d *disk) cut(t *testing.T) {
	t.Helper()
	const shutdown, noLogFlush = 0x8004587D, 2 // EXT4_IOC_SHUTDOWN
	f, err := os.Open(d.dir)
	require.NoError(t, err)
	flags := uint32(noLogFlush)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))) //nolint:gosec // an ioctl
	require.NoError(t, f.Close())
	if errno != 0 {
		t.Skipf("this kernel cannot shut a file system down: %v", errno)
	}
}

func (d *disk) remount(t *testing.T) {
	t.Helper()
	require.NoError(t, exec.CommandContext(t.Context(), "umount", d.dir).Run())
	require.NoError(t, d.mount())
}

// cutUnderLoad runs a child that writes, cuts the power, and gives what was acknowledged before.
func cutUnderLoad(t *testing.T, d *disk, path string, env ...string) (acked [childWriters]uint64) {
	t.Helper()
	cmd, out := startChild(t, path, env...)
	enough := 400
	for out.Scan() {
		if enough--; enough == 0 {
			d.cut(t)
			time.AfterFunc(50*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		var i int
		var head uint64
		if n, err := fmt.Sscanf(out.Text(), "%d %d", &i, &head); err == nil && n == 2 {
			acked[i] = max(acked[i], head)
		}
	}
	require.Error(t, cmd.Wait(), "killed, or stopped by its failed journal")
	d.remount(t)
	return acked
}

func TestPowerLossLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	path := filepath.Join(d.dir, "journal.db")
	for cycle := range 3 {
		acked := cutUnderLoad(t, d, path)
		check(t, path)
		verifyAcked(t, path, acked, cycle)
	}
}

// The control: without syncs the same test must find losses, else it proves nothing.
func TestPowerLossWithoutSyncLosesAcknowledgedRecords(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	path := filepath.Join(d.dir, "journal.db")
	acked := cutUnderLoad(t, d, path, childNoSync+"=1")
	j, err := Open(Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return // the whole file is lost
	}
	lost := 0
	for i, head := range acked {
		info, err := j.Session(t.Context(), messages.NewKey(messages.SessionID(fmt.Sprintf("s%d", i))))
		if err != nil || info.EventHead < head {
			lost++
		}
	}
	require.NoError(t, j.Close())
	require.Positive(t, lost)
}

const childLimit = "CORREX_TEST_FILE_LIMIT"

// TestChildWithFileLimit is no test: a limit of file sizes holds for a whole process.
func TestChildWithFileLimit(t *testing.T) {
	path := os.Getenv(childLimit)
	if path == "" {
		t.Skip("runs in a child process only")
	}
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	j, err := Open(Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4 << 20, Max: before.Max}))
	o := newOwner(t, j, "s")
	stored := 0
	for err = o.append(100); err == nil; err = o.append(100) {
		stored += 100
	}
	require.ErrorIs(t, err, persistence.ErrFull)
	require.NotErrorIs(t, err, syscall.EFBIG, "bbolt turns this one to text; when it no longer does, drop the text match")
	require.NoError(t, j.Healthy())
	require.Equal(t, stored, count(t, j, o.key))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, o.append(100), "there is room again")
	require.Equal(t, stored+100, count(t, j, o.key))
	require.NoError(t, j.Close())
}

func TestAFileSizeLimitRefusesAndGoesOnWhenItIsRaised(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildWithFileLimit$") //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), childLimit+"="+path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	check(t, path)
}
