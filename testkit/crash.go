package testkit

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/correx/correx-actors/persistence/memory"
)

// maxCrashes bounds the appends of a scenario: one with more is not played as it was meant.
const maxCrashes = 1000

// CrashEvery plays a scenario again and again, each time in a synctest bubble and over an empty journal: the process dies
// before its first append, after it, before its second one, and so on, and at last not at all. Each is a subtest, so that one
// can be played alone. A failure tells where the process died and what it had stored.
//
// The scenario starts a process over Crash.Journal, does what clients do, who do not mind if the process dies, stops the
// process, and calls Crash.Restart with what starts the next process, drives it to the end and looks whether all is well.
// It ends with the first crash that fails.
func CrashEvery(t *testing.T, scenario func(t *testing.T, c *Crash)) {
	t.Helper()
	for n := 1; n <= maxCrashes; n++ {
		for _, after := range []bool{false, true} {
			died := false
			name := fmt.Sprintf("before append %d", n)
			if after {
				name = fmt.Sprintf("after append %d", n)
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { died = crash(t, n, after, scenario) })
			})
			if t.Failed() || !died {
				return
			}
		}
	}
	t.Errorf("the scenario has more than %d appends", maxCrashes)
}

func crash(t *testing.T, n int, after bool, scenario func(t *testing.T, c *Crash)) (died bool) {
	t.Helper()
	c := &Crash{t: t, journal: NewFaultyJournal(memory.New(memory.Config{}))}
	c.journal.DieAt(n, after)
	c.death = c.journal.death
	defer func() {
		if err := c.journal.Close(); err != nil {
			t.Errorf("close the journal: %v", err)
		}
		if t.Failed() {
			t.Log(c.story())
		}
	}()
	scenario(t, c)
	if !c.restarted {
		t.Errorf("the scenario does not restart")
	}
	return c.Died()
}

// Crash is one playing of a scenario by CrashEvery.
type Crash struct {
	t         *testing.T
	journal   *FaultyJournal
	death     *death
	restarted bool
}

// Journal is the journal of all processes of the scenario.
func (c *Crash) Journal() *FaultyJournal { return c.journal }

// Died says whether the first process died; if not, the scenario has fewer appends.
func (c *Crash) Died() bool {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	return c.death.seen >= c.death.at
}

// Restart says that the first process is gone, and runs what the next one does.
func (c *Crash) Restart(next func()) {
	c.t.Helper()
	c.journal.Revive()
	c.restarted = true
	next()
}

// story tells where the process died and what was stored before.
func (c *Crash) story() string {
	died := c.Died()
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	var b strings.Builder
	switch {
	case !died:
		b.WriteString("the process was stopped in peace")
	case c.death.after:
		fmt.Fprintf(&b, "the process died after append %d was stored and before it was told so", c.death.at)
	default:
		fmt.Fprintf(&b, "the process died before append %d was stored", c.death.at)
	}
	b.WriteString("; its appends were:")
	for i, text := range c.death.story {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, text)
	}
	if died && !c.death.after {
		b.WriteString(" (lost)")
	}
	return b.String()
}
