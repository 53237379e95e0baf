package session_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// rapidTB lets the kit fail a rapid case, so that rapid can shrink it.
type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (r rapidTB) Helper()                           { r.rt.Helper() }
func (r rapidTB) Errorf(format string, args ...any) { r.rt.Errorf(format, args...) }
func (r rapidTB) Fatalf(format string, args ...any) { r.rt.Fatalf(format, args...) }
func (r rapidTB) FailNow()                          { r.rt.FailNow() }

func drawn(rt *rapid.T) func(n int) int {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "pick") }
}

// The invariants hold whatever comes in whatever order, over crashes, stops and clocks that jump; see walk.
func TestInvariantsHoldForRandomCommands(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWalk(rapidTB{t, rt}, drawn(rt))
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			w.step()
		}
		w.settle()
	})
}

// A longer walk than rapid takes, fifty thousand steps; CORREX_SOAK=1 makes it a million.
func TestInvariantsHoldInALongWalk(t *testing.T) {
	t.Parallel()
	const each = 1000
	sessions := walkSessions
	if os.Getenv("CORREX_SOAK") != "" {
		sessions = 1000
	}
	seed := uint64(time.Now().UnixNano())
	for i := range sessions {
		// Printed if the test fails, and enough to repeat it.
		t.Logf("session %d: seed %d", i, seed)
		rnd := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a test's dice
		w := newWalk(t, rnd.IntN)
		for range each {
			w.step()
		}
		w.settle()
	}
}

// B46: a prefix that was folded before is not changed by what is folded on top of it, and folding the rest gives the same state
// as folding all; the two streams may be folded in any order relative to each other.
func TestReplayOfPrefixAndRestIsReplayOfAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWalk(rapidTB{t, rt}, drawn(rt))
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			w.step()
		}
		cfg := w.kit.Config()
		all := fold(rt, session.New(w.kit.State().Key), cfg, w.log)
		require.Empty(rt, testkit.DiffStates(all, w.kit.State()), "replay is the state")
		require.Empty(rt, testkit.DiffStates(all, w.kit.Replay()), "replay of the pruned ledger is replay of the whole one")

		cut := rapid.IntRange(0, len(w.log)).Draw(rt, "cut")
		prefix := fold(rt, session.New(all.Key), cfg, w.log[:cut])
		once := fold(rt, prefix, cfg, w.log[cut:])
		require.Empty(rt, testkit.DiffStates(all, once), "after %d of %d records", cut, len(w.log))
		again := fold(rt, session.New(all.Key), cfg, w.log[:cut])
		require.Empty(rt, testkit.DiffStates(prefix, again), "folding on changed the prefix")

		var events, ledger []messages.Record
		for _, rec := range w.log {
			if rec.Stream == messages.StreamEvents {
				events = append(events, rec)
			} else {
				ledger = append(ledger, rec)
			}
		}
		require.Empty(rt, testkit.DiffStates(all, fold(rt, session.New(all.Key), cfg, append(ledger, events...))))
	})
}

// A checkpoint is the fold of what lies before it: leaving all checkpoints out gives the same state but for the answers that
// checkpoints drop, of which there are none here.
func TestCheckpointsChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWalk(rapidTB{t, rt}, drawn(rt))
		checkpoints := 0
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			w.step()
		}
		var without []messages.Record
		for _, rec := range w.log {
			if rec.Type == "ledger_checkpoint" || rec.Type == "checkpoint_part" {
				checkpoints++
				continue
			}
			without = append(without, rec)
		}
		got, want := fold(rt, session.New(w.kit.State().Key), w.kit.Config(), without), w.kit.State()
		got.Ledger.Head, got.Ledger.SinceCheckpoint = want.Ledger.Head, want.Ledger.SinceCheckpoint
		oldest := want.Ledger.LastTime.Add(-w.kit.Config().FinalTTL)
		require.Equal(rt, finalsAfter(want, oldest), finalsAfter(got, oldest), "%d checkpoints", checkpoints)
		got.Ledger.Finals = want.Ledger.Finals
		require.Empty(rt, testkit.DiffStates(got, want), "%d checkpoints", checkpoints)
	})
}

func finalsAfter(s session.State, oldest time.Time) string {
	var text strings.Builder
	for _, run := range s.Ledger.Finals.After(0, oldest) {
		fmt.Fprintf(&text, "%d %s %s\n", run.GetFinalSeq(), run.GetRunId(), run.GetOutcome())
	}
	return text.String()
}

func fold(t require.TestingT, s session.State, cfg session.Config, records []messages.Record) session.State {
	var err error
	for _, rec := range records {
		s, err = session.Reduce(s, cfg, rec)
		require.NoError(t, err)
	}
	return s
}
