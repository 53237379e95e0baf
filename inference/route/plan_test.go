package route_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/testkit"
)

// answer is what a run's user sees at its end.
type answer struct {
	text string
	// attempts, from 1: one more for each text that was replaced.
	attempts int
	// calls by provider, in order; waits as they were told.
	calls []string
	waits []string
	err   error
}

// run drives a plan to its end, as a runner does.
func run(t *testing.T, r inference.Router, ask inference.Ask) answer {
	t.Helper()
	plan, err := inference.PlanOf(t.Context(), r, ask)
	require.NoError(t, err)
	defer plan.Close()
	got := answer{attempts: 1}
	for {
		switch step := plan.Next().(type) {
		case inference.Wait:
			got.waits = append(got.waits, step.Reason)
			time.Sleep(step.For)
		case inference.Stop:
			got.err = step.Err
			return got
		case inference.Call:
			got.calls = append(got.calls, step.Provider.Name())
			if got.text != "" {
				got.text, got.attempts = "", got.attempts+1
			}
			got.text = call(t.Context(), plan, step)
		}
	}
}

func call(ctx context.Context, plan inference.Plan, step inference.Call) (text string) {
	done, err := step.Provider.Infer(ctx, inference.Request{Model: step.Model}, func(e inference.Event) error {
		if delta, ok := e.(inference.Delta); ok {
			plan.Begun()
			text += delta.Text
		}
		return nil
	})
	plan.Ended(inference.End{Err: err, Visible: text != "", Usage: done.Usage})
	return text
}

func TestB118CutTextIsReplacedByOneMoreCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t).Call(testkit.Stream("1", "2", "3"), testkit.Fail(inference.KindTruncated)).
			Call(testkit.Stream("whole"))
		got := run(t, router(t, route.Provider{Backend: p}), inference.Ask{Replace: true})
		require.NoError(t, got.err)
		require.Equal(t, "whole", got.text)
		require.Equal(t, 2, got.attempts)
	})
	synctest.Test(t, func(t *testing.T) { // without leave to replace there is no second call
		p := testkit.NewProvider(t).Call(testkit.Stream("1"), testkit.Fail(inference.KindTruncated))
		got := run(t, router(t, route.Provider{Backend: p}), inference.Ask{})
		require.Equal(t, inference.KindTruncated, inference.KindOf(got.err))
		require.Equal(t, "1", got.text)
	})
}

func TestB119DeadProviderGetsOneRetryThenTheFallback(t *testing.T) {
	t.Parallel()
	for name, second := range map[string][]testkit.Step{
		"dies again":      {testkit.Stream("a", "b"), testkit.Fail(inference.KindTruncated)},
		"refuses at once": {testkit.Fail(inference.KindUnavailable)},
	} {
		synctest.Test(t, func(t *testing.T) {
			big := testkit.NewProvider(t).Named("big").Call(testkit.Stream("a", "b"), testkit.Fail(inference.KindTruncated)).Call(second...)
			small := testkit.NewProvider(t).Named("small").Call(testkit.Stream("clean"))
			r := router(t, route.Provider{Backend: big, Fallback: []string{"small"}}, route.Provider{Backend: small})
			got := run(t, r, inference.Ask{Replace: true})
			require.NoError(t, got.err, name)
			require.Equal(t, "clean", got.text)
			require.Equal(t, []string{"big", "big", "small"}, got.calls)
		})
	}
}

func TestWaitsAreToldWithTheirReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &inference.Error{Kind: inference.KindRateLimited, RetryAfter: 10 * time.Second}
		p := testkit.NewProvider(t).Named("big").Call(testkit.FailWith(slow)).Call(testkit.Stream("ok"))
		begin := time.Now()
		got := run(t, router(t, route.Provider{Backend: p}), inference.Ask{})
		require.NoError(t, got.err)
		require.Len(t, got.waits, 1)
		require.Regexp(t, `^provider big: rate_limited, next call in 10\.[0-9]s$`, got.waits[0])
		require.GreaterOrEqual(t, time.Since(begin), 10*time.Second)
		require.LessOrEqual(t, time.Since(begin), 11*time.Second)
	})
}

func TestBreakerPausesAProviderAndOneCallTriesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big := testkit.NewProvider(t).Named("big").Otherwise(testkit.Fail(inference.KindUnavailable))
		small := testkit.NewProvider(t).Named("small").Otherwise(testkit.Stream("ok"))
		r := router(t, route.Provider{Backend: big, Fallback: []string{"small"}}, route.Provider{Backend: small})
		for range 2 { // five failures in a row, then it is left alone
			require.NoError(t, run(t, r, inference.Ask{}).err)
		}
		require.Len(t, big.Calls(), 5)
		require.Equal(t, []string{"small"}, run(t, r, inference.Ask{}).calls)
		health := r.Health()
		require.Equal(t, route.StateOpen, health[0].State)
		require.Equal(t, route.Health{Provider: "small", State: route.StateClosed}, health[1])

		time.Sleep(time.Until(health[0].NextTry) + time.Millisecond)
		require.Equal(t, route.StateTrying, r.Health()[0].State)
		gate := make(chan struct{})
		big.Call(testkit.WaitFor(gate), testkit.Stream("back"), testkit.WaitFor(gate))
		plan, err := r.Plan(t.Context(), inference.Ask{})
		require.NoError(t, err)
		trial, ok := plan.Next().(inference.Call)
		require.True(t, ok)
		text := make(chan string)
		go func() { text <- call(t.Context(), plan, trial) }()
		synctest.Wait()
		require.Equal(t, []string{"small"}, run(t, r, inference.Ask{}).calls, "one call tries it, the others stay away")
		gate <- struct{}{}
		synctest.Wait()
		require.Equal(t, route.StateClosed, r.Health()[0].State, "its first text shows that it is back")
		gate <- struct{}{}
		require.Equal(t, "back", <-text)
	})
}

func TestBreakerCountsATrialThatBeganAndThenFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t).Otherwise(testkit.Fail(inference.KindUnavailable))
		rules, breaker := route.Standard()
		rules.Retries, breaker.Failures = 0, 2
		r, err := route.New(route.Config{Providers: []route.Provider{{Backend: p}}, Rules: rules, Breaker: breaker})
		require.NoError(t, err)
		for range 2 {
			run(t, r, inference.Ask{})
		}
		time.Sleep(breaker.Pause + time.Millisecond)
		p.Call(testkit.Stream("a"), testkit.Fail(inference.KindTruncated))
		require.Equal(t, "a", run(t, r, inference.Ask{}).text)
		require.Equal(t, route.StateClosed, r.Health()[0].State)
		run(t, r, inference.Ask{})
		require.Equal(t, route.StateOpen, r.Health()[0].State, "its second failure in a row")
	})
}

func TestBreakerCountsOnlyTheProvidersFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t)
		rules, breaker := route.Standard()
		rules.Retries = 0
		r, err := route.New(route.Config{Providers: []route.Provider{{Backend: p}}, Rules: rules, Breaker: breaker})
		require.NoError(t, err)
		for range 3 {
			for _, kind := range []inference.Kind{
				inference.KindAuth, inference.KindQuota, inference.KindBadRequest, inference.KindConfig, inference.KindContentFiltered,
				inference.KindCanceled, inference.KindRateLimited,
			} {
				p.Call(testkit.Fail(kind))
				require.Equal(t, kind, inference.KindOf(run(t, r, inference.Ask{}).err))
			}
		}
		require.Equal(t, route.StateClosed, r.Health()[0].State)
		for range 5 {
			p.Call(testkit.Fail(inference.KindProvider))
			require.Error(t, run(t, r, inference.Ask{}).err)
		}
		got := run(t, r, inference.Ask{})
		require.ErrorContains(t, got.err, "paused after failures, next try in 30s")
		require.Empty(t, got.calls)
		var failure *inference.Error
		require.ErrorAs(t, got.err, &failure)
		require.Equal(t, 30*time.Second, failure.RetryAfter.Round(time.Millisecond))
	})
}

// A breaker with a window forgets the calls in progress at its border: those that fail slowly would never count.
func TestBreakerCountsCallsThatFailSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t).Otherwise(testkit.Delay(7*time.Minute), testkit.Fail(inference.KindTimeout))
		r := router(t, route.Provider{Backend: p})
		for range 2 {
			require.Error(t, run(t, r, inference.Ask{}).err)
		}
		require.Len(t, p.Calls(), 5)
		require.Equal(t, route.StateOpen, r.Health()[0].State)
	})
}

func TestLimitOnRequestsIsWaitedForAndGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t).Named("big").Otherwise(testkit.Stream("ok"))
		r := router(t, route.Provider{Backend: p, Limits: route.Limits{RequestsPerMinute: 6}})
		require.Empty(t, run(t, r, inference.Ask{}).waits)
		begin := time.Now()
		for range 3 { // runs that were canceled while they waited leave their place to others
			plan, err := r.Plan(t.Context(), inference.Ask{})
			require.NoError(t, err)
			require.Equal(t, inference.Wait{
				For: 10 * time.Second, Reason: "provider big: its limit of 6 requests a minute is reached, next call in 10s",
			}, plan.Next())
			plan.Close()
		}
		require.Len(t, run(t, r, inference.Ask{}).waits, 1)
		require.Equal(t, 10*time.Second, time.Since(begin).Round(time.Millisecond))
	})
}

// counting is a provider that knows how many calls it had at once.
type counting struct {
	inference.Provider
	now, most atomic.Int64
}

// Infer implements inference.Provider.
func (c *counting) Infer(
	ctx context.Context, req inference.Request, report func(inference.Event) error,
) (inference.Completion, error) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	return c.Provider.Infer(ctx, req, report)
}

func TestFallbackHasNoMoreCallsAtOnceThanItMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big := testkit.NewProvider(t).Named("big").Otherwise(testkit.Fail(inference.KindAuth))
		small := testkit.NewProvider(t).Named("small").Otherwise(testkit.Stream("a"), testkit.Delay(5*time.Second))
		busy := &counting{Provider: small}
		r := router(t, route.Provider{Backend: big, Fallback: []string{"small"}},
			route.Provider{Backend: busy, Limits: route.Limits{Concurrent: 2}})
		var runs sync.WaitGroup
		for range 8 {
			runs.Go(func() {
				plan, err := r.Plan(t.Context(), inference.Ask{})
				if err != nil {
					t.Error(err)
					return
				}
				defer plan.Close()
				for {
					switch step := plan.Next().(type) {
					case inference.Wait:
						time.Sleep(step.For)
					case inference.Call:
						call(t.Context(), plan, step)
					case inference.Stop:
						if step.Err != nil {
							t.Error(step.Err)
						}
						return
					}
				}
			})
		}
		runs.Wait()
		require.Len(t, small.Calls(), 8, "those for which there was no room have waited")
		require.EqualValues(t, 2, busy.most.Load())
	})
}

func TestLimitOnTokensCountsWhatWasUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := testkit.NewProvider(t).Named("big").Call(testkit.Stream("long"), testkit.Usage(100, 500)).Call(testkit.Stream("ok"))
		r := router(t, route.Provider{Backend: p, Limits: route.Limits{TokensPerMinute: 600}})
		require.Empty(t, run(t, r, inference.Ask{Tokens: 100}).waits)
		begin := time.Now()
		require.Equal(t, []string{"provider big: its limit of 600 tokens a minute is reached, next call in 10s"},
			run(t, r, inference.Ask{Tokens: 100}).waits)
		require.Equal(t, 10*time.Second, time.Since(begin).Round(time.Millisecond))
	})
}

func TestPlanThatIsClosedInACallBlamesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := router(t, route.Provider{Backend: testkit.NewProvider(t)})
		for range 10 { // a driver that panics
			plan, err := r.Plan(t.Context(), inference.Ask{})
			require.NoError(t, err)
			require.IsType(t, inference.Call{}, plan.Next())
			plan.Close()
			plan.Close()
			require.IsType(t, inference.Stop{}, plan.Next())
			plan.Ended(inference.End{Err: errors.New("late")})
		}
		require.Equal(t, route.StateClosed, r.Health()[0].State)
	})
}
