package testkit_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence"
	"github.com/correx/correx-actors/testkit"
)

// threeAppends is a process that does not go on before it is told that an append is stored. It gives how many it was told of.
func threeAppends(t *testing.T, c *testkit.Crash) (told int) {
	t.Helper()
	w := newWriter(t, c.Journal())
	for range 3 {
		answered := make(chan persistence.Appended, 1)
		c.Journal().Append(w.key, w.expect, batch(t), func(res persistence.Appended, _ error) { answered <- res })
		select {
		case res := <-answered:
			w.expect.LedgerHead = res.LedgerHead
			told++
		case <-time.After(time.Hour):
			return told
		}
	}
	return told
}

func TestCrashEveryStopsBeforeAndAfterEveryAppend(t *testing.T) {
	t.Parallel()
	var seen [][2]int // told, stored
	testkit.CrashEvery(t, func(t *testing.T, c *testkit.Crash) {
		told := threeAppends(t, c)
		require.Equal(t, told < 3, c.Died())
		c.Restart(func() {
			stored, err := testkit.ReadAll(t.Context(), c.Journal(), messages.NewKey("s"), messages.StreamLedger)
			require.NoError(t, err)
			seen = append(seen, [2]int{told, len(stored)})
			if len(stored) == 0 {
				require.Equal(t, 3, threeAppends(t, c), "the next process can write")
			}
		})
	})
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 2}, {2, 3}, {3, 3}}, seen)
}

func TestCrashFaults(t *testing.T) {
	t.Parallel()
	switch os.Getenv(faulty) {
	case "lossy":
		testkit.CrashEvery(t, func(t *testing.T, c *testkit.Crash) {
			told := threeAppends(t, c)
			c.Restart(func() { require.NotEqual(t, 1, told) })
		})
	case "no restart":
		testkit.CrashEvery(t, func(t *testing.T, c *testkit.Crash) { threeAppends(t, c) })
	}
}

func TestAFailureTellsWhereTheProcessDied(t *testing.T) {
	t.Parallel()
	out := failing(t, "TestCrashFaults", "lossy")
	require.Contains(t, out, "FAIL: TestCrashFaults/before_append_2")
	require.Contains(t, out, "the process died before append 2 was stored; its appends were:")
	require.Contains(t, out, "1. default/s ledger: output_reserved\n")
	require.Contains(t, out, "2. default/s ledger: output_reserved (lost)\n")
	require.NotContains(t, out, "append_3")
	require.Contains(t, failing(t, "TestCrashFaults", "no restart"), "does not restart")
}
