package bolt

import (
	"bufio"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
)

// childPath, when set, makes this test binary the writing process of the tests below.
const (
	childPath    = "CORREX_TEST_JOURNAL"
	childNoSync  = "CORREX_TEST_JOURNAL_NO_SYNC"
	childWriters = 8
	childKeeps   = 5 // index entries of each writer
)

// TestChild is no test: it appends until it is killed, and prints what was acknowledged.
func TestChild(t *testing.T) {
	path := os.Getenv(childPath)
	if path == "" {
		t.Skip("runs in a child process only")
	}
	j, err := open(Config{Path: path, Logger: slog.New(slog.DiscardHandler)}, os.Getenv(childNoSync) != "")
	require.NoError(t, err)
	lines := make(chan string, childWriters)
	for i := range childWriters {
		w := newOwner(t, j, messages.SessionID(fmt.Sprintf("s%d", i)))
		w.keeps = childKeeps
		go func() {
			for n := 1; ; n++ {
				if err := w.append(1 + n%5); err != nil {
					lines <- "error " + err.Error()
					return
				}
				lines <- fmt.Sprintf("%d %d", i, w.expect.EventHead)
			}
		}()
	}
	for line := range lines {
		fmt.Println(line)
	}
}

// startChild runs a writing child and gives its output line by line.
func startChild(t *testing.T, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v=false") //nolint:gosec // this binary
	cmd.Env = append(append(os.Environ(), childPath+"="+path), env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

func TestKilledWriterLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	const cycles = 25
	total := 0
	for cycle := range cycles {
		cmd, out := startChild(t, path)
		var acked [childWriters]uint64
		life := time.Duration(1+rand.IntN(40)) * time.Millisecond
		var killer *time.Timer
		for out.Scan() {
			if killer == nil { // its first append is acknowledged
				killer = time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
			}
			var i int
			var head uint64
			n, err := fmt.Sscanf(out.Text(), "%d %d", &i, &head)
			require.False(t, strings.HasPrefix(out.Text(), "error"), out.Text())
			if err == nil && n == 2 {
				acked[i] = max(acked[i], head)
			}
		}
		require.Error(t, cmd.Wait(), "killed")
		check(t, path)
		total += verifyAcked(t, path, acked, cycle)
	}
	t.Logf("%d kills, %d records at last", cycles, total)
}

// verifyAcked reopens the journal: what was acknowledged is stored, whole and readable (Replay checks sums and holes), and
// the feed has every record.
func verifyAcked(t *testing.T, path string, acked [childWriters]uint64, cycle int) int {
	t.Helper()
	j, err := Open(Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	total := 0
	for i, head := range acked {
		key := messages.NewKey(messages.SessionID(fmt.Sprintf("s%d", i)))
		stored := count(t, j, key)
		require.LessOrEqual(t, head, uint64(stored), "cycle %d, session %d", cycle, i)
		total += stored
		kept := 0
		for head := max(1, stored-100); head <= stored; head++ {
			if has(t, j, key, strconv.Itoa(head)) {
				kept++
			}
		}
		if stored >= 5*childKeeps {
			require.Equal(t, childKeeps, kept, "an index and its order are written together")
			require.True(t, has(t, j, key, strconv.Itoa(stored)))
		}
	}
	inFeed := 0
	for _, err := range j.Feed(t.Context(), persistence.Position{}, false) {
		require.NoError(t, err)
		inFeed++
	}
	require.Equal(t, total, inFeed)
	st, err := j.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(total), st.Events)
	require.NoError(t, j.Close())
	return total
}

func TestASecondProcessIsRefusedAndToldOfTheFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	cmd, out := startChild(t, path)
	require.True(t, out.Scan())
	_, err := Open(Config{Path: path, Logger: slog.New(slog.DiscardHandler), LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, persistence.ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", cmd.Process.Pid))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	// A killed process leaves its owner file, but no lock.
	j, err := Open(Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, j.Close())
}
