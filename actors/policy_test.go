package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/actors/slots"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// interrupted leaves a session with a run and a turn that waits, and starts the process again under a policy.
func interrupted(t *testing.T, policy core.RecoveryPolicy, scenario func(t *testing.T, c *crowd, running, waiting *messages.TurnAccepted)) {
	t.Helper()
	now := core.RecoveryResume
	withSlots(t, 1, func(d *session.Deps) { d.Core.RecoveryPolicy = now }, func(t *testing.T, c *crowd) {
		c.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("ok"))
		running, waiting := c.submit(key, "one", steering), c.submit(key, "two", steering)
		synctest.Wait()
		now = policy
		c.again()
		c.activate()
		scenario(t, c, running, waiting)
	})
}

// B34: what was accepted is the session's own over a stop, and goes on by itself, whoever is there.
func TestB34RecoveryResumesAcceptedTurnsByItself(t *testing.T) {
	interrupted(t, core.RecoveryResume, func(t *testing.T, c *crowd, running, waiting *messages.TurnAccepted) {
		require.Equal(t, "answered", c.end(key, running.GetTurnId()).GetState())
		require.Equal(t, "answered", c.end(key, waiting.GetTurnId()).GetState())
		require.Equal(t, []string{"one", "one", "two"}, c.asked())
	})
}

func TestRecoveryThatAsksWaitsForAWord(t *testing.T) {
	interrupted(t, core.RecoveryAsk, func(t *testing.T, c *crowd, running, waiting *messages.TurnAccepted) {
		sub := c.follow(key)
		time.Sleep(time.Minute)
		require.Len(t, c.asked(), 1, "nothing goes on")
		require.Equal(t, slots.Stats{}, c.stats(), "and nothing waits for a slot")
		require.Equal(t, "running", c.status(key, running.GetTurnId()).GetState())
		more := c.submit(key, "three")
		require.Equal(t, "queued", more.GetDisposition(), "it goes behind what is held")
		requireCode(t, messages.CodeUnknownRun, c.client.KeepRunAlive(t.Context(), key, "run_none", messages.KeepContinue))
		requireCode(t, messages.CodeInvalidField, c.client.KeepRunAlive(t.Context(), key, running.GetRunId(), "perhaps"))
		require.NoError(t, c.client.KeepRunAlive(t.Context(), key, running.GetRunId(), messages.KeepContinue))
		for _, accepted := range []*messages.TurnAccepted{running, waiting, more} {
			require.Equal(t, "answered", c.end(key, accepted.GetTurnId()).GetState())
		}
		require.Equal(t, []string{"one", "one", "two", "three"}, c.asked())
		sub.Close()
	})
}

// The word is about one run: the others wait for theirs, also over another stop.
func TestRecoveryThatAsksEndsWhatItsUserCancels(t *testing.T) {
	interrupted(t, core.RecoveryAsk, func(t *testing.T, c *crowd, running, waiting *messages.TurnAccepted) {
		require.NoError(t, c.client.KeepRunAlive(t.Context(), key, running.GetRunId(), messages.KeepCancel))
		require.Equal(t, "cancelled", c.end(key, running.GetTurnId()).GetState())
		time.Sleep(time.Minute)
		require.Equal(t, "queued", c.status(key, waiting.GetTurnId()).GetState())
		c.again()
		c.activate()
		time.Sleep(time.Minute)
		require.Equal(t, "queued", c.status(key, waiting.GetTurnId()).GetState())
		require.NoError(t, c.client.KeepRunAlive(t.Context(), key, waiting.GetRunId(), messages.KeepContinue))
		require.Equal(t, "answered", c.end(key, waiting.GetTurnId()).GetState())
		require.Equal(t, []string{"one", "two"}, c.asked())
	})
}

func TestRecoveryThatDropsEndsWhatWasOpenAndTellsWhy(t *testing.T) {
	interrupted(t, core.RecoveryDrop, func(t *testing.T, c *crowd, running, waiting *messages.TurnAccepted) {
		ended, expired := c.end(key, running.GetTurnId()), c.end(key, waiting.GetTurnId())
		require.Equal(t, "interrupted", ended.GetState())
		require.Equal(t, "expired", expired.GetState())
		require.Equal(t, core.ReasonDropped, ended.GetReason())
		require.Equal(t, core.ReasonDropped, expired.GetReason())
		require.Equal(t, []string{"one"}, c.notes(), "of the one that a run took")
		require.Len(t, c.asked(), 1)
		next := c.submit(key, "three")
		require.Equal(t, "answered", c.end(key, next.GetTurnId()).GetState())
	})
}

// A replay in place is no stop: the policy does not see it.
func TestReplayInPlaceAsksNobody(t *testing.T) {
	for _, policy := range []core.RecoveryPolicy{core.RecoveryAsk, core.RecoveryDrop} {
		t.Run(string(policy), func(t *testing.T) {
			withSlots(t, 1, func(d *session.Deps) { d.Core.RecoveryPolicy = policy }, func(t *testing.T, c *crowd) {
				c.model.Call(testkit.HangUntilCancel()).Otherwise(testkit.Stream("ok"))
				running, waiting := c.submit(key, "one"), c.submit(key, "two")
				synctest.Wait()
				c.journal.ConflictNext()
				_, err := c.client.Record(t.Context(), key, nil, &messages.StageStarted{StageId: "s"})
				require.NoError(t, err)
				require.Equal(t, "answered", c.end(key, running.GetTurnId()).GetState())
				require.Equal(t, "answered", c.end(key, waiting.GetTurnId()).GetState())
			})
		})
	}
}

// B04: the acknowledgment of the first closes no window: the second comes after it and joins.
func TestB04FollowupsThatSettleAreOneRun(t *testing.T) {
	for _, pause := range []time.Duration{50 * time.Millisecond, 90 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			withSlots(t, 1, func(d *session.Deps) { d.Core.Settle = 300 * time.Millisecond }, func(t *testing.T, c *crowd) {
				c.model.Otherwise(testkit.Stream("both"))
				first := c.submit(key, "a", mode(messages.QueueFollowup))
				require.Equal(t, "queued", first.GetDisposition(), "it is acknowledged at once")
				require.Equal(t, slots.Stats{}, c.stats(), "while it settles it waits for no slot")
				time.Sleep(pause)
				second := c.submit(key, "b", mode(messages.QueueFollowup))
				require.Equal(t, "merged", second.GetDisposition())
				require.Equal(t, first.GetRunId(), second.GetRunId())
				require.Equal(t, "answered", c.end(key, first.GetTurnId()).GetState())
				require.Equal(t, "both", c.end(key, second.GetTurnId()).GetContent())
				require.Equal(t, []string{"a\nb"}, c.asked())
			})
		})
	}
}

// Only followups settle, and what cannot join ends the time of the one that waits.
func TestSettlingHoldsUpNothingElse(t *testing.T) {
	withSlots(t, 9, func(d *session.Deps) { d.Core.Settle = time.Hour }, func(t *testing.T, c *crowd) {
		c.model.Otherwise(testkit.Stream("ok"))
		require.Equal(t, "started", c.submit(named(0), "collect").GetDisposition())
		settles := c.submit(key, "a", mode(messages.QueueFollowup))
		time.Sleep(time.Minute)
		require.Equal(t, "queued", c.status(key, settles.GetTurnId()).GetState())
		c.end(key, c.submit(key, "b").GetTurnId())
		require.Equal(t, "answered", c.status(key, settles.GetTurnId()).GetState(), "it went first")
		last := c.submit(key, "c", mode(messages.QueueFollowup))
		c.again() // a start waits for nobody
		c.activate()
		require.Equal(t, "answered", c.end(key, last.GetTurnId()).GetState())
	})
}
