//go:build unix

package files_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/files"
)

func TestW45OnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	root, dir, _ := open(t, map[string]string{"a": "a"}, nil)
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink("pipe", filepath.Join(dir, "link")))
	listener, err := net.Listen("unix", filepath.Join(dir, "socket")) //nolint:noctx // it is closed at once
	require.NoError(t, err)
	defer listener.Close()
	require.Equal(t, []string{"not_regular", "not_regular", "not_regular"}, resolved(t, root, ask("pipe", "link", "socket")))

	require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0))
	if os.Geteuid() != 0 {
		require.Equal(t, []string{"unreadable"}, resolved(t, root, ask("a")))
	}
	const zero = 1<<8 | 5
	if err := syscall.Mknod(filepath.Join(dir, "zero"), syscall.S_IFCHR|0o600, zero); err == nil {
		require.Equal(t, []string{"not_regular"}, resolved(t, root, ask("zero")))
	}
}

func TestW45FilesWithASecondNameAreDropped(t *testing.T) {
	t.Parallel()
	root, dir, outside := open(t, nil, nil)
	require.NoError(t, os.Link(outside, filepath.Join(dir, "hard")))
	require.Equal(t, []string{"hard_link"}, resolved(t, root, ask("hard")))
}

// W45: whatever is put into a file's place between the look and the reading, the secret outside is never read.
func TestW45SwappedFilesNeverGetOut(t *testing.T) {
	t.Parallel()
	root, dir, outside := open(t, map[string]string{"d/secret.txt": "public", "e/secret.txt": "public"}, nil)
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	file, folder := filepath.Join(dir, "e", "secret.txt"), filepath.Join(dir, "d")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swap := func(step func() error) {
		swapping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := step(); err != nil {
						t.Errorf("swap: %v", err)
						return
					}
				}
			}
		})
	}
	// A file, a link to the secret and a pipe take turns under one name.
	swap(func() error {
		for _, other := range []string{"link", "pipe"} {
			if err := exchange(file, filepath.Join(dir, other)); err != nil {
				return err
			}
			if err := exchange(file, filepath.Join(dir, other)); err != nil {
				return err
			}
		}
		return nil
	})
	// And so do a directory and a link to the one that the secret is in.
	swap(func() error { return exchange(folder, filepath.Join(dir, "up")) })
	var seen bytes.Buffer
	sent := 0
	for range 400 {
		set := root.Resolve(t.Context(), ask("e/secret.txt", "d/secret.txt"))
		for _, f := range set.Files {
			sent++
			_, err := f.WriteTo(&seen)
			require.NoError(t, err)
		}
		for _, d := range set.Dropped {
			require.NotEqual(t, files.ReasonLate, d.Reason, "a pipe held the check")
		}
		set.Close()
	}
	close(stop)
	swapping.Wait()
	require.Positive(t, sent)
	require.Equal(t, bytes.Repeat([]byte("public"), sent), seen.Bytes())
}

// exchange swaps two names, by a third.
func exchange(a, b string) error {
	third := a + ".swap"
	for _, move := range [][2]string{{a, third}, {b, a}, {third, b}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			return err
		}
	}
	return nil
}

// What was checked is what is read: not more, not another file, and a part is an error.
func TestW45TheFileThatWasCheckedIsRead(t *testing.T) {
	t.Parallel()
	root, dir, outside := open(t, map[string]string{"grows": "12345", "moves": "12345", "shrinks": "12345"}, nil)
	set := root.Resolve(t.Context(), ask("grows", "moves", "shrinks"))
	defer set.Close()
	require.Len(t, set.Files, 3)
	grown, err := os.OpenFile(filepath.Join(dir, "grows"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = grown.WriteString("6789")
	require.NoError(t, err)
	require.NoError(t, grown.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "moves")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "moves")))
	require.NoError(t, os.Truncate(filepath.Join(dir, "shrinks"), 3))
	for i, f := range set.Files {
		var content bytes.Buffer
		n, err := f.WriteTo(&content)
		if i == 2 {
			require.ErrorIs(t, err, files.ErrChanged)
			require.Equal(t, int64(3), n)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "12345", content.String())
	}
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.NoError(t, os.Symlink("/", dir))
	require.Equal(t, []string{"outside", "missing"}, resolved(t, root, ask(outside, "secret.txt")), "the root is the one that was opened")
}
