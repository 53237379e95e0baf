package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// checkpoints counts the checkpoints and their parts that are stored.
func checkpoints(kit *testkit.SessionKit) (whole, parts int) {
	for _, rec := range kit.Stored(messages.StreamLedger) {
		switch rec.Type {
		case "ledger_checkpoint":
			whole++
		case "checkpoint_part":
			parts++
		}
	}
	return whole, parts
}

func answered(kit *testkit.SessionKit, size int) {
	kit.Submit("more")
	kit.Answer(strings.Repeat("x", size))
}

// A checkpoint of much is several records of one append; the kit checks that they fold to the same state, also after a restart.
func TestLargeCheckpointIsStoredInParts(t *testing.T) {
	t.Parallel()
	cfg := session.DefaultConfig()
	cfg.CheckpointEvery, cfg.CheckpointMaxBytes = 8, 64<<20
	kit := testkit.NewSessionKit(t, testkit.WithConfig(cfg))
	for range 12 {
		answered(kit, 700<<10)
	}
	whole, parts := checkpoints(kit)
	require.Zero(t, whole)
	require.GreaterOrEqual(t, parts, 2)
	require.Len(t, kit.Replay().Ledger.Finals.After(0, start), 12)
	kit.Submit("open")
	kit.Restart()
	require.Len(t, kit.State().Ledger.Finals.After(0, start), 12)
}

// A session that holds more than fits into a checkpoint goes on without one, and gets one when it holds less.
func TestSessionThatHoldsTooMuchForACheckpointGoesOn(t *testing.T) {
	t.Parallel()
	cfg := session.DefaultConfig()
	cfg.CheckpointEvery, cfg.CheckpointMaxBytes = 8, 100<<10
	kit := testkit.NewSessionKit(t, testkit.WithConfig(cfg))
	for range 20 {
		answered(kit, 20<<10)
	}
	whole, parts := checkpoints(kit)
	require.LessOrEqual(t, whole+parts, 1)
	kit.Submit("open")
	kit.Restart()
	kit.Answer("short")
	kit.Run(session.Ack{Seq: kit.State().Live.NextSeq})
	for range 20 {
		answered(kit, 10)
	}
	kept := len(kit.Stored(messages.StreamLedger))
	whole, _ = checkpoints(kit)
	require.Equal(t, 1, whole)
	require.Less(t, kept, 40, "what lies before the checkpoint is pruned")
}

func TestRememberedTextIsBounded(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	answered(kit, 1<<20)
	history := kit.State().Ledger.History
	require.Less(t, len(history[len(history)-1].Content), 300<<10)
	require.Len(t, kit.State().Ledger.Finals.After(0, start)[0].GetContent(), 1<<20, "the answer itself is whole")
}
