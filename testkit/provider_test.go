package testkit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/testkit"
)

// infer makes one call and gives what was reported.
func infer(ctx context.Context, p inference.Provider) (events []inference.Event, done inference.Completion, err error) {
	done, err = p.Infer(ctx, inference.Request{RunID: "run_1", Model: "m"}, func(e inference.Event) error {
		events = append(events, e)
		return nil
	})
	return events, done, err
}

func TestProviderPlaysOneScriptForEachCall(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t,
		testkit.Script(testkit.Stream("Hel", "lo"), testkit.Active(), testkit.Usage(3, 2), testkit.Finish(inference.FinishLength)),
		testkit.Script(),
	).Call(testkit.Stream("a"), testkit.Fail(inference.KindOverloaded)).Otherwise(testkit.Stream("again"))

	events, done, err := infer(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, []inference.Event{
		inference.Connected{}, inference.Delta{Text: "Hel"}, inference.Delta{Text: "lo"}, inference.Activity{},
	}, events)
	require.Equal(t, inference.Completion{
		FinishReason: inference.FinishLength, Model: "m", Usage: inference.Usage{InputTokens: 3, OutputTokens: 2, Known: true},
	}, done)

	events, done, err = infer(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, []inference.Event{inference.Connected{}}, events, "an empty answer")
	require.Equal(t, inference.FinishStop, done.FinishReason)

	events, _, err = infer(t.Context(), p)
	require.Equal(t, inference.KindOverloaded, inference.KindOf(err))
	require.Len(t, events, 2)

	for range 2 {
		events, _, err = infer(t.Context(), p)
		require.NoError(t, err)
		require.Contains(t, events, inference.Delta{Text: "again"})
	}
	require.Len(t, p.ExpectCalls(5), 5)
}

func TestProviderIsCanceledWithTheCause(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for name, step := range map[string]func() testkit.Step{
		"hang":  testkit.HangUntilCancel,
		"delay": func() testkit.Step { return testkit.Delay(time.Hour) },
		"gate":  func() testkit.Step { return testkit.WaitFor(make(chan struct{})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := testkit.NewProvider(t, testkit.Script(testkit.Connect(), step(), testkit.Stream("never")))
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(stop) })
				events, _, err := infer(ctx, p)
				require.ErrorIs(t, err, stop)
				require.Equal(t, inference.KindCanceled, inference.KindOf(err))
				require.Equal(t, []inference.Event{inference.Connected{}}, events)
				call := p.ExpectCanceled()
				require.Equal(t, stop, call.Cause)
				require.Equal(t, time.Minute, call.Ended.Sub(call.Started))
			})
		})
	}
}

func TestProviderStopsWhenReportRefuses(t *testing.T) {
	t.Parallel()
	refuse := errors.New("refused")
	p := testkit.NewProvider(t, testkit.Script(testkit.Stream("a", "b")))
	_, err := p.Infer(t.Context(), inference.Request{}, func(e inference.Event) error {
		if _, ok := e.(inference.Delta); ok {
			return refuse
		}
		return nil
	})
	require.Equal(t, refuse, err)
	require.Equal(t, refuse, p.ExpectCalls(1)[0].Err)
}

func TestProviderPanicsAndRemembersIt(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t, testkit.Script(testkit.Panic("boom")))
	require.PanicsWithValue(t, "boom", func() { _, _, _ = infer(t.Context(), p) })
	require.True(t, p.ExpectCalls(1)[0].Panicked)
}

func TestProviderReportsWhatTheTestDidNotExpect(t *testing.T) {
	t.Parallel()
	fake := newFakeTB(t)
	p := testkit.NewProvider(fake)
	_, _, err := infer(t.Context(), p)
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
	require.Contains(t, fake.fails(func() { p.ExpectCalls(0) }), "want 0 provider calls, got 1")
	fake.cleanup()
	require.Contains(t, fake.text(), "1 calls without a script")

	synctest.Test(t, func(t *testing.T) {
		fake := newFakeTB(t)
		p := testkit.NewProvider(fake)
		require.Contains(t, fake.fails(func() { p.ExpectCalls(1) }), "want 1 provider calls, got none")
		require.Contains(t, fake.fails(func() { p.ExpectCanceled() }), "want one more canceled provider call")
	})
}

func TestRouteSendsEveryModelToTheProvider(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t).Named("p")
	route, err := testkit.Route(p).Route(t.Context(), "any")
	require.NoError(t, err)
	require.Equal(t, "p", route.Provider.Name())
	require.Equal(t, "any", route.Model)
	require.Panics(t, func() { testkit.Route(nil) })
}
