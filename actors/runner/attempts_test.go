package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/runner"
	"github.com/correx/correx-actors/core/contextpack"
	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
)

// seen is a subscriber that does what it is told: texts of an attempt follow each other, those of a new one replace them.
type seen struct {
	t       *testing.T
	attempt uint32
	text    string
	waits   []string
	retried []string
	end     core.RunFinished
	ended   bool
}

func (s *seen) take(msg any) {
	require.False(s.t, s.ended, "nothing comes after the end")
	switch m := msg.(type) {
	case core.RunPhased:
		require.Equal(s.t, s.attempt, m.Attempt)
		if m.Reason != "" {
			s.waits = append(s.waits, m.Reason)
		}
	case core.RunStreamed:
		require.Equal(s.t, s.attempt, m.Attempt)
		s.text += m.Text
	case core.RunRetried:
		require.Equal(s.t, s.attempt, m.Attempt)
		s.retried = append(s.retried, m.Reason)
		s.attempt, s.text = s.attempt+1, ""
	case core.RunFinished:
		require.Equal(s.t, s.attempt, m.Attempt)
		s.end, s.ended = m, true
	default:
		s.t.Fatalf("unknown report %T", msg)
	}
}

func deps(router inference.Router) *runner.Deps {
	return &runner.Deps{
		Router: router, Limits: runner.DefaultLimits(), Log: slog.New(slog.DiscardHandler),
		Counter: func(string) contextpack.TokenCounter { return contextpack.BytesCounter{} },
	}
}

func order() core.RunOrder {
	return core.RunOrder{
		RunID: "run_1", Attempt: 1, KeepLast: 6, TokenBudget: 4096,
		Turns: []contextpack.Turn{{Role: messages.RoleUser, Content: "what is the state of the build?"}},
	}
}

// watch makes a run and gives what its subscriber has seen.
func watch(ctx context.Context, t *testing.T, d *runner.Deps) *seen {
	t.Helper()
	s := &seen{t: t, attempt: 1}
	runner.Attempt(ctx, d, order(), s.take)
	require.True(t, s.ended)
	return s
}

// two are a provider and its fallback.
func two(t *testing.T) (big, small *testkit.ScriptedProvider, router *route.Router) {
	t.Helper()
	big, small = testkit.NewProvider(t).Named("big"), testkit.NewProvider(t).Named("small")
	rules, breaker := route.Standard()
	router, err := route.New(route.Config{
		Providers: []route.Provider{{Backend: big, Fallback: []string{"small"}}, {Backend: small}}, Rules: rules, Breaker: breaker,
	})
	require.NoError(t, err)
	return big, small, router
}

func TestB118RetryReplacesTheVisibleText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, _, router := two(t)
		big.Call(testkit.Stream("1", "2", "3", "4", "5"), testkit.Fail(inference.KindTruncated)).
			Call(testkit.Stream("the ", "whole"), testkit.Usage(8, 2))
		got := watch(t.Context(), t, deps(router))
		require.Equal(t, messages.OutcomeCompleted, got.end.Outcome)
		require.Equal(t, uint32(2), got.end.Attempt)
		require.Equal(t, "the whole", got.end.Content)
		require.Equal(t, "the whole", got.text)
		require.Len(t, got.retried, 1)
		require.Contains(t, got.retried[0], "provider big: truncated, next call in ")
	})
}

func TestB119DeadProviderIsLeftForTheHealthyOne(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		second  []testkit.Step
		attempt uint32
		source  messages.UsageSource
	}{
		"dead in mid-answer":   {[]testkit.Step{testkit.Fail(inference.KindUnavailable)}, 2, messages.UsageEstimated},
		"dies of every answer": {[]testkit.Step{testkit.Stream("a", "b"), testkit.Fail(inference.KindTruncated)}, 3, messages.UsageEstimated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				big, small, router := two(t)
				big.Call(testkit.Stream("a", "b"), testkit.Fail(inference.KindTruncated)).Call(row.second...)
				small.Call(testkit.Stream("one clean text"), testkit.Usage(10, 3))
				got := watch(t.Context(), t, deps(router))
				require.Equal(t, messages.OutcomeCompleted, got.end.Outcome)
				require.Equal(t, row.attempt, got.end.Attempt)
				require.Equal(t, "one clean text", got.end.Content)
				require.Equal(t, "one clean text", got.text)
				require.Equal(t, string(row.source), got.end.Usage.GetSource())
				require.Greater(t, got.end.Usage.GetInputTokens(), uint64(10), "what the dead provider was sent counts too")
				require.Greater(t, got.end.Usage.GetOutputTokens(), uint64(3))
			})
		})
	}
}

func TestTextThatNothingReplacedIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, small, router := two(t)
		big.Call(testkit.Stream("half an answer"), testkit.Fail(inference.KindTruncated)).Call(testkit.Fail(inference.KindUnavailable))
		small.Otherwise(testkit.Fail(inference.KindAuth))
		got := watch(t.Context(), t, deps(router))
		require.Equal(t, messages.OutcomeIncomplete, got.end.Outcome)
		require.Equal(t, "half an answer", got.end.Content)
		require.Equal(t, string(messages.CodeProviderAuth), got.end.Error.GetCode())
		require.Contains(t, got.end.Error.GetMessage(), "all providers: big: unavailable, 2 calls; small: auth")
	})
}

func TestWaitForALimitIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, _, router := two(t)
		big.Call(testkit.FailWith(&inference.Error{Kind: inference.KindRateLimited, RetryAfter: 20 * time.Second})).
			Call(testkit.Stream("ok"), testkit.Usage(5, 1))
		begin := time.Now()
		got := watch(t.Context(), t, deps(router))
		require.Equal(t, messages.OutcomeCompleted, got.end.Outcome)
		require.GreaterOrEqual(t, time.Since(begin), 20*time.Second)
		require.Empty(t, got.retried)
		require.Len(t, got.waits, 1)
		require.Contains(t, got.waits[0], "provider big: rate_limited, next call in 20")
		require.Equal(t, string(messages.UsageReported), got.end.Usage.GetSource(), "a refused call costs nothing")
		require.Equal(t, uint64(5), got.end.Usage.GetInputTokens())
	})
}

func TestSilenceIsTriedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, small, router := two(t)
		big.Otherwise(testkit.HangUntilCancel())
		small.Call(testkit.Stream("ok"))
		begin := time.Now()
		got := watch(t.Context(), t, deps(router))
		require.Equal(t, messages.OutcomeCompleted, got.end.Outcome)
		require.Len(t, big.Calls(), 3)
		require.InDelta(t, 6*time.Minute, time.Since(begin), float64(5*time.Second))
		require.Equal(t, string(messages.UsageUnknown), got.end.Usage.GetSource(), "the silent ones may have read the prompt")
	})
}

func TestWholeRunIsBoundedOverItsCalls(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]testkit.Step{
		"in a call": testkit.HangUntilCancel(),
		"in a wait": testkit.FailWith(&inference.Error{Kind: inference.KindRateLimited, RetryAfter: 25 * time.Second}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				big, _, router := two(t)
				big.Otherwise(step)
				d := deps(router)
				d.Limits.Whole = 10 * time.Second
				begin := time.Now()
				got := watch(t.Context(), t, d)
				require.Equal(t, 10*time.Second, time.Since(begin))
				require.Equal(t, messages.OutcomeFailed, got.end.Outcome)
				require.Equal(t, string(messages.CodeProviderTimeout), got.end.Error.GetCode())
				require.Contains(t, got.end.Error.GetMessage(), "the run took too long: stopped after 10s")
				require.Len(t, big.Calls(), 1)
			})
		})
	}
}

// Who ended a call is told by our own context: a provider that claims a cancel has failed, one that claims a failure was canceled.
func TestCancelIsToldByOurOwnContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, small, router := two(t)
		big.Otherwise(testkit.Fail(inference.KindCanceled))
		small.Call(testkit.Stream("ok"))
		require.Equal(t, messages.OutcomeCompleted, watch(t.Context(), t, deps(router)).end.Outcome)
		require.Len(t, big.Calls(), 3)
	})
	for name, step := range map[string]testkit.Step{
		"in a call": testkit.HangUntilCancel(),
		"in a wait": testkit.FailWith(&inference.Error{Kind: inference.KindRateLimited, RetryAfter: 25 * time.Second}),
	} {
		synctest.Test(t, func(t *testing.T) {
			big, _, router := two(t)
			big.Call(step)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(runner.ErrAborted) })
			got := watch(ctx, t, deps(router))
			require.Equal(t, messages.OutcomeCancelled, got.end.Outcome, name)
			require.Nil(t, got.end.Error)
			require.Len(t, big.Calls(), 1)
		})
	}
}

// told is a router whose plans write down what they are told.
type told struct {
	inference.Planner
	begun int
	ends  []inference.End
}

type toldPlan struct {
	inference.Plan
	told *told
}

// Plan implements inference.Planner.
func (p *told) Plan(ctx context.Context, ask inference.Ask) (inference.Plan, error) {
	plan, err := p.Planner.Plan(ctx, ask)
	return toldPlan{plan, p}, err
}

// Begun implements inference.Plan.
func (p toldPlan) Begun() { p.told.begun++ }

// Ended implements inference.Plan.
func (p toldPlan) Ended(end inference.End) {
	p.told.ends = append(p.told.ends, end)
	p.Plan.Ended(end)
}

func TestPlanIsToldWhatHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, _, router := two(t)
		big.Call(testkit.Stream("a", "b"), testkit.HangUntilCancel()).Call(testkit.HangUntilCancel())
		plans := &told{Planner: router}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Minute, func() { cancel(runner.ErrAborted) })
		watch(ctx, t, deps(plans))
		require.Equal(t, 1, plans.begun)
		require.Len(t, plans.ends, 2)
		require.True(t, plans.ends[0].Visible)
		require.False(t, plans.ends[1].Visible)
		var silent *inference.Error
		require.ErrorAs(t, plans.ends[0].Err, &silent)
		require.Equal(t, inference.KindTimeout, silent.Kind)
		require.Equal(t, inference.LimitToken, silent.Limit)
		require.Equal(t, inference.KindCanceled, inference.KindOf(plans.ends[1].Err))
		require.ErrorIs(t, plans.ends[1].Err, runner.ErrAborted)
	})
}

func TestOverflowIsSentAgainWithHalfTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big, _, router := two(t)
		big.Call(testkit.Fail(inference.KindContextOverflow)).Call(testkit.Stream("ok"))
		d, o := deps(router), order()
		for i := range 4 {
			o.Turns = append([]contextpack.Turn{{Role: messages.RoleRouter, Content: fmt.Sprint(i, strings.Repeat(" word", 100))}}, o.Turns...)
		}
		o.TokenBudget = 400
		s := &seen{t: t, attempt: 1}
		runner.Attempt(t.Context(), d, o, s.take)
		require.Equal(t, messages.OutcomeCompleted, s.end.Outcome)
		calls := big.ExpectCalls(2)
		require.Less(t, calls[1].Request.Pack.Tokens, calls[0].Request.Pack.Tokens)
	})
}

func TestWindowIsThatOfTheModelAtHand(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t).Named("big")
	rules, breaker := route.Standard()
	router, err := route.New(route.Config{
		Providers: []route.Provider{{Backend: p, Models: []route.Model{{Name: "tiny", Window: 3}}}}, Rules: rules, Breaker: breaker,
	})
	require.NoError(t, err)
	got := watch(t.Context(), t, deps(router))
	require.Equal(t, string(messages.CodeContextOverflow), got.end.Error.GetCode())
	require.Contains(t, got.end.Error.GetMessage(), "the model's window has room for 3")
	require.True(t, runner.Pack(deps(router), order()).Overflow)
}

func TestPanicOfAProviderEndsTheRunAlone(t *testing.T) {
	t.Parallel()
	big, _, router := two(t)
	big.Call(testkit.Panic(errors.New("boom")))
	got := watch(t.Context(), t, deps(router))
	require.Equal(t, string(messages.CodeInternal), got.end.Error.GetCode())
	require.NotContains(t, got.end.Error.GetMessage(), "boom")
}

// patient is a router whose plans wait a few times for the same thing and then give up.
type patient struct{ inference.Planner }

type patientPlan struct {
	inference.Plan
	left int
}

// Plan implements inference.Planner.
func (patient) Plan(context.Context, inference.Ask) (inference.Plan, error) {
	return &patientPlan{left: 3}, nil
}

// Next implements inference.Plan.
func (p *patientPlan) Next() inference.Step {
	if p.left == 0 {
		return inference.Stop{Err: &inference.Error{Kind: inference.KindUnavailable}}
	}
	p.left--
	return inference.Wait{For: time.Second, Reason: "it is full"}
}

// Close implements inference.Plan.
func (*patientPlan) Close() {}

func TestWaitThatGoesOnIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, router := two(t)
		got := watch(t.Context(), t, deps(patient{router}))
		require.Len(t, got.waits, 1)
		require.Equal(t, string(messages.CodeProviderUnavailable), got.end.Error.GetCode())
	})
}
