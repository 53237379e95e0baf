package session_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// What a run was asked is its input: a further attempt has the question and all that steered it, although memory keeps less.
func TestFurtherAttemptHasItsQuestionHoweverMuchSteeredIt(t *testing.T) {
	t.Parallel()
	for _, steers := range []int{0, 1, 2, 5} {
		cfg := session.DefaultConfig()
		cfg.KeepLast = 2
		kit := testkit.NewSessionKit(t, testkit.WithConfig(cfg))
		kit.Submit("before")
		kit.Answer("ok")
		kit.Submit("question")
		want := []string{"before", "ok", "question"}
		for i := range steers {
			text := fmt.Sprint("steer ", i)
			want = append(want, text)
			kit.Submit(text, inMode(messages.QueueSteer))
			kit.Run(session.SteerAsked{TurnID: fmt.Sprintf("turn_%d", i+3), BeforeCall: 2})
		}
		order, ok := kit.Restart().Started()
		require.True(t, ok)
		var got []string
		for _, turn := range order.Turns {
			got = append(got, turn.Content)
		}
		asked := 1 + steers
		require.Equal(t, want[len(want)-max(asked, min(len(want), 2*cfg.KeepLast)):], got, "%d steers", steers)
		require.Equal(t, max(cfg.KeepLast, asked), order.KeepLast, "the pack takes all of it")
		require.LessOrEqual(t, len(kit.State().Ledger.History), 2*cfg.KeepLast)
	}
}
