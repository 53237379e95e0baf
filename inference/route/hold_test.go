package route_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/testkit"
)

func TestRetryAfterHoldsBackTheRunsOfAModelForAMinuteAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := testkit.FailWith(&inference.Error{Kind: inference.KindRateLimited, RetryAfter: time.Hour})
		p := testkit.NewProvider(t).Named("big").Call(slow)
		var log bytes.Buffer
		rules, breaker := route.Standard()
		r, err := route.New(route.Config{
			Providers: []route.Provider{{Backend: p}}, Rules: rules, Breaker: breaker, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		got := run(t, r, inference.Ask{Model: "m"})
		require.ErrorContains(t, got.err, "it asks for 1h0m0s before the next call", "the run is told what was said")
		time.Sleep(10 * time.Second)
		got = run(t, r, inference.Ask{Model: "m"})
		require.Empty(t, got.calls)
		require.ErrorContains(t, got.err, "big: it asked to be called more slowly, free in 50s")

		p.Call(testkit.Stream("ok"))
		require.NoError(t, run(t, r, inference.Ask{Model: "other"}).err, "a model's limit is no limit of others")

		time.Sleep(time.Minute)
		p.Call(slow)
		require.ErrorContains(t, run(t, r, inference.Ask{Model: "m"}).err, "it asks for 1h0m0s", "after a minute a call asks again")
		require.Empty(t, run(t, r, inference.Ask{Model: "m"}).calls)
		time.Sleep(2 * time.Minute)
		p.Call(testkit.Stream("ok")).Call(testkit.Stream("ok"))
		for range 2 {
			got = run(t, r, inference.Ask{Model: "m"})
			require.NoError(t, got.err)
			require.Empty(t, got.waits)
		}
		require.Equal(t, 1, strings.Count(log.String(), "asked to be called more slowly"), log.String())
		require.Contains(t, log.String(), "level=WARN")
	})
}

func TestAfterAHoldThatWasCutShortOneCallTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t).Call(testkit.FailWith(&inference.Error{Kind: inference.KindOverloaded, RetryAfter: time.Hour}))
		r := router(t, route.Provider{Backend: p})
		require.Error(t, run(t, r, inference.Ask{}).err)
		time.Sleep(2 * time.Minute)
		first, err := r.Plan(t.Context(), inference.Ask{})
		require.NoError(t, err)
		defer first.Close()
		require.IsType(t, inference.Call{}, first.Next())
		second, err := r.Plan(t.Context(), inference.Ask{})
		require.NoError(t, err)
		defer second.Close()
		require.IsType(t, inference.Wait{}, second.Next())
		first.Begun()
		require.IsType(t, inference.Call{}, second.Next(), "it answers: nobody need stay away")
	})
}

func TestOnlyLimitsAndOutagesHoldBackOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for kind, held := range map[inference.Kind]bool{
			inference.KindRateLimited: true, inference.KindOverloaded: true, inference.KindUnavailable: true,
			inference.KindBadRequest: false, inference.KindContextOverflow: false, inference.KindContentFiltered: false,
			inference.KindAuth: false, inference.KindQuota: false, inference.KindConfig: false, inference.KindTimeout: false,
			inference.KindTruncated: false, inference.KindProvider: false, inference.KindCanceled: false,
		} {
			p := testkit.NewProvider(t)
			r := router(t, route.Provider{Backend: p})
			plan, err := r.Plan(t.Context(), inference.Ask{})
			require.NoError(t, err)
			require.IsType(t, inference.Call{}, plan.Next())
			plan.Ended(inference.End{Err: &inference.Error{Kind: kind, RetryAfter: 24 * time.Hour}})
			plan.Close()
			other, err := r.Plan(t.Context(), inference.Ask{})
			require.NoError(t, err)
			_, called := other.Next().(inference.Call)
			require.Equal(t, !held, called, kind)
			other.Close()
		}
	})
}
