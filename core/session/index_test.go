package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// A key that is remembered finds its turn: what the index holds of a turn outlives what it holds of the turn's key.
func TestIndexEntriesExpireAndATurnOutlivesItsKey(t *testing.T) {
	t.Parallel()
	kit := testkit.NewSessionKit(t)
	cfg := kit.Config()
	do := func(cmd session.Command) session.Decision {
		t.Helper()
		d := kit.Decide(cmd)
		kit.Run(cmd)
		require.Len(t, d.Index, 1, "a key at its turn's admission, a turn at its end")
		return d
	}
	admitted := do(session.Submit{Request: &messages.SubmitTurn{Text: "one", IdempotencyKey: "k"}})
	key := admitted.Index[0]
	require.Equal(t, "k", key.Key)
	require.Equal(t, admitted.At.Add(cfg.IdempotencyWindow), key.Expires)
	require.Equal(t, key.Idempotency.GetExpiresAt().AsTime(), key.Expires)
	require.Equal(t, cfg.IdempotencyKeys, key.Keep)

	kit.Submit("two")
	withdrawn := do(session.Withdraw{TurnID: "turn_2"})
	ended := do(session.RunFinished{Outcome: messages.OutcomeCompleted, Content: "1"})
	for id, d := range map[string]session.Decision{"turn_2": withdrawn, "turn_1": ended} {
		require.Equal(t, id, d.Index[0].Turn.GetTurnId())
		require.Equal(t, d.At.Add(cfg.TurnRetention), d.Index[0].Expires)
		require.Zero(t, d.Index[0].Keep, "however many turns end")
		require.False(t, d.Index[0].Expires.Before(key.Expires))
	}
}

func TestConfigRefusesATurnThatIsForgottenBeforeItsKey(t *testing.T) {
	t.Parallel()
	cfg := session.DefaultConfig()
	cfg.TurnRetention = cfg.IdempotencyWindow
	require.NoError(t, cfg.Validate())
	cfg.TurnRetention -= time.Nanosecond
	require.ErrorContains(t, cfg.Validate(), "turns.retention")
	cfg = session.DefaultConfig()
	cfg.IdempotencyKeys = 0
	require.ErrorContains(t, cfg.Validate(), "idempotency.keys is 0")
}
