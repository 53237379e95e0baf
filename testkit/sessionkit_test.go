package testkit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

func TestSessionKitIsTheShellOfASession(t *testing.T) {
	t.Parallel()
	cfg := session.DefaultConfig()
	cfg.QueueLimit = 1
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := messages.NewKey("mine")
	kit := testkit.NewSessionKit(t, testkit.WithConfig(cfg), testkit.WithKey(key), testkit.StartingAt(begin)).
		Given(&messages.WorkflowStarted{WorkflowId: "w"})

	require.Equal(t, key, kit.State().Key)
	require.Equal(t, uint64(1), kit.State().Router.EventSequence)
	r := kit.Submit("one", func(r *messages.SubmitTurn) { r.IdempotencyKey = "k" })
	order, ok := r.Started()
	require.True(t, ok)
	require.Equal(t, "run_1", order.RunID)
	require.Len(t, r.Records, 3)
	require.Len(t, r.Published(), 3)
	require.Equal(t, uint64(1), r.State.Live.Epoch)

	r = kit.Submit("two")
	_, ok = r.Started()
	require.False(t, ok)
	kit.Submit("refused")
	kit.Advance(time.Minute)
	require.Equal(t, begin.Add(time.Minute), kit.Now())

	before := kit.State()
	d := kit.Decide(session.Abort{Request: &messages.Abort{}})
	require.True(t, d.Durable())
	require.Empty(t, testkit.DiffStates(before, kit.State()))
	require.NotEmpty(t, testkit.DiffStates(before, d.Next))

	kit.Answer("1")
	kit.Submit("three")
	status, ok := kit.Turn("turn_1")
	require.True(t, ok)
	require.Equal(t, "answered", status.GetState())
	r = kit.Restart()
	require.Equal(t, uint64(2), r.State.Live.Epoch)
	require.Equal(t, "run_2", r.State.Ledger.Active.ID)
	require.Equal(t, "turn_3", r.State.Ledger.Queue.Waiting[0].Lead().GetTurnId(), "a refused turn uses up no id")
	require.Empty(t, testkit.DiffStates(kit.Replay(), kit.State()))
	require.Len(t, kit.Stored(messages.StreamEvents), 1)

	again := kit.Submit("one", func(r *messages.SubmitTurn) { r.IdempotencyKey = "k" }).Reply
	require.Equal(t, "duplicate", again.(*messages.TurnAccepted).GetDisposition())
	gone := kit.Run(session.Abort{Request: &messages.Abort{RunId: "run_1"}}).Reply
	require.Empty(t, gone.(*messages.Aborted).GetRunIds())
}

func TestSessionKitFailsWithTheCommandsThatLedToIt(t *testing.T) {
	t.Parallel()
	fake := newFakeTB(t)
	kit := testkit.NewSessionKit(fake)
	kit.Submit("one")
	require.Contains(t, fake.fails(func() { kit.Given(&messages.WorkflowCompleted{}) }), "Given after the first command")
	kit.Run(session.RunFinished{RunID: "run_1", Attempt: 1, Outcome: messages.OutcomeCompleted, Content: "done"})
	text := fake.fails(func() { kit.Run(session.Submit{Request: &messages.SubmitTurn{Text: "two"}, TurnID: "turn_1"}) })
	require.Contains(t, text, "session kit: turn turn_1 is admitted a second time\nthe last commands were:")
	require.Contains(t, text, "00:00:00.000 session.Recover{Epoch:1 InPlace:false Draining:false}")
	require.Contains(t, text, `session.Submit{Request:text:"one"`)
	require.Contains(t, fake.fails(func() { testkit.NewSessionKit(fake, testkit.WithConfig(session.Config{})) }), "keep_last is 0")
}

func TestLegalPhases(t *testing.T) {
	t.Parallel()
	require.True(t, testkit.LegalPhase(messages.PhaseAccepted, messages.PhaseQueued))
	require.True(t, testkit.LegalPhase(messages.PhaseStreaming, messages.PhaseAborted))
	require.False(t, testkit.LegalPhase(messages.PhaseFinalizing, messages.PhaseAborted))
	require.False(t, testkit.LegalPhase(messages.PhaseCompleted, messages.PhaseFailed))
	require.False(t, testkit.LegalPhase("", messages.PhaseFailed))
}
