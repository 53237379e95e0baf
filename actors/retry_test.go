package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/persistence/memory"
	"github.com/correx/correx-actors/testkit"
)

// withFallback runs a scenario whose model has a fallback.
func withFallback(t *testing.T, scenario func(t *testing.T, h *host, small *testkit.ScriptedProvider)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := testkit.NewFaultyJournal(memory.New(memory.Config{}))
		big, small := testkit.NewProvider(t).Named("big"), testkit.NewProvider(t).Named("small")
		rules, breaker := route.Standard()
		router, err := route.New(route.Config{
			Providers: []route.Provider{{Backend: big, Fallback: []string{"small"}}, {Backend: small}}, Rules: rules, Breaker: breaker,
		})
		require.NoError(t, err)
		h := start(t, journal, big, func(deps *session.Deps) { deps.Runner.Router = router })
		defer func() {
			h.stop()
			require.NoError(t, journal.Close())
		}()
		scenario(t, h, small)
	})
}

func TestB118RetryIsANewAttemptThatReplacesTheText(t *testing.T) {
	withFallback(t, func(t *testing.T, h *host, _ *testkit.ScriptedProvider) {
		h.model.Call(testkit.Stream("1 2 3 4 5"), testkit.Fail(inference.KindTruncated)).Call(testkit.Stream("the whole"))
		sub := h.subscribe(0)
		defer sub.Close()
		h.submit("hi")
		items := h.items(sub)
		require.Equal(t, []string{
			"phase accepted", "phase waiting_for_slot", "phase dispatched", "phase starting_engine", "phase streaming", "delta 1 2 3 4 5",
			"phase dispatched", "phase starting_engine", "phase streaming", "delta the whole",
			"phase finalizing", "finalize the whole", "turn answered", "phase completed", "response completed the whole",
		}, show(items))
		again := items[6].(*messages.DeliveryIntent).Intent().(*messages.RunPhaseChanged)
		require.EqualValues(t, 2, again.GetAttempt())
		require.Contains(t, again.GetReason(), "provider big: truncated, next call in")
		whole := items[9].(*messages.DeliveryIntent).Intent().(*messages.StreamDelta)
		require.EqualValues(t, 2, whole.GetAttempt())
		require.Zero(t, whole.GetOffset(), "it begins anew")
	})
}

func TestB119DeadProviderBesideAHealthyOneGivesOneCleanText(t *testing.T) {
	withFallback(t, func(t *testing.T, h *host, small *testkit.ScriptedProvider) {
		h.model.Call(testkit.Stream("half "), testkit.Fail(inference.KindTruncated)).Otherwise(testkit.Fail(inference.KindUnavailable))
		small.Call(testkit.Stream("clean"), testkit.Usage(9, 1))
		sub := h.subscribe(0)
		defer sub.Close()
		accepted := h.submit("hi")
		require.Equal(t, "clean", h.end(accepted.GetTurnId()).GetContent())
		items := h.items(sub)
		response := items[len(items)-1].(*messages.DeliveryIntent).GetRouterResponse()
		require.Equal(t, "clean", response.GetContent())
		require.Equal(t, "estimated", response.GetUsage().GetSource(), "both attempts count")
		require.Greater(t, response.GetUsage().GetOutputTokens(), uint64(1))
		require.Contains(t, show(items), "finalize clean")
		history := h.state().GetConversationHistory()
		require.Equal(t, "clean", history[len(history)-1].GetContent())
		require.Len(t, h.model.Calls(), 2, "one retry, then the fallback")
	})
}

func TestWaitForALimitIsAPhaseWithItsReason(t *testing.T) {
	withFallback(t, func(t *testing.T, h *host, _ *testkit.ScriptedProvider) {
		h.model.Call(testkit.FailWith(&inference.Error{Kind: inference.KindRateLimited, RetryAfter: 3 * time.Second})).
			Call(testkit.Stream("ok"))
		sub := h.subscribe(0)
		defer sub.Close()
		h.submit("hi")
		items := h.items(sub)
		require.Equal(t, []string{"phase starting_engine", "phase starting_engine", "phase streaming"}, show(items)[3:6])
		wait := items[4].(*messages.DeliveryIntent).Intent().(*messages.RunPhaseChanged)
		require.Regexp(t, `^provider big: rate_limited, next call in 3\.[0-9]s$`, wait.GetReason())
		require.EqualValues(t, 1, wait.GetAttempt())
	})
}

func TestRetriedRunGoesOnAfterARestart(t *testing.T) {
	withFallback(t, func(t *testing.T, h *host, small *testkit.ScriptedProvider) {
		for range 2 {
			h.model.Call(testkit.Stream("a"), testkit.Fail(inference.KindTruncated))
		}
		small.Call(testkit.Stream("b"), testkit.HangUntilCancel())
		accepted := h.submit("hi")
		time.Sleep(5 * time.Second) // virtual: it is at its third attempt
		h.model.Call(testkit.Stream("after the restart"))
		next := h.restart()
		*h = *next
		status := h.end(accepted.GetTurnId())
		require.Equal(t, "answered", status.GetState())
		require.Equal(t, "after the restart", status.GetContent())
	})
}
