package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/testkit"
)

func TestACallIsTimedAndItsTokensAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, false)
		model := w.around(testkit.NewProvider(t, testkit.Script(
			testkit.Delay(time.Second), testkit.Active(), testkit.Stream(""), testkit.Delay(500*time.Millisecond), testkit.Stream("all"),
			testkit.Delay(time.Second), testkit.Stream(" is well"), testkit.Delay(time.Second), testkit.Usage(120, 7), testkit.Finish(inference.FinishLength))), "fast")
		_, err := w.infer(t.Context(), model, inference.Request{Model: "fast", SessionID: "s1", RunID: "r1", MaxTokens: 9})
		require.NoError(t, err)

		labels := `gen_ai.operation.name=chat gen_ai.provider.name=scripted gen_ai.request.model=fast gen_ai.response.model=fast`
		require.Equal(t, map[string]float64{
			"gen_ai.client.operation.duration " + labels:                        3.5,
			"gen_ai.client.operation.time_to_first_chunk " + labels:             1.5,
			"gen_ai.client.token.usage " + labels + " gen_ai.token.type=input":  120,
			"gen_ai.client.token.usage " + labels + " gen_ai.token.type=output": 7,
		}, w.metrics())

		span := w.span()
		require.Equal(t, "chat fast", span.Name())
		require.Equal(t, trace.SpanKindClient, span.SpanKind())
		require.Equal(t, 3500*time.Millisecond, span.EndTime().Sub(span.StartTime()))
		require.Equal(t, codes.Unset, span.Status().Code)
		require.ElementsMatch(t, []attribute.KeyValue{
			attribute.String("gen_ai.operation.name", "chat"),
			attribute.String("gen_ai.provider.name", "scripted"),
			attribute.Bool("gen_ai.request.stream", true),
			attribute.String("gen_ai.request.model", "fast"),
			attribute.Int("gen_ai.request.max_tokens", 9),
			attribute.String("gen_ai.conversation.id", "s1"),
			attribute.String("correx.run.id", "r1"),
			attribute.String("gen_ai.response.model", "fast"),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{"length"}),
			attribute.Float64("gen_ai.response.time_to_first_chunk", 1.5),
			attribute.Int64("gen_ai.usage.input_tokens", 120),
			attribute.Int64("gen_ai.usage.output_tokens", 7),
		}, span.Attributes())
	})
}

// B122: usage that the provider did not report is missing; it is neither 0 nor an estimate.
func TestB122UnknownUsageIsNotRecorded(t *testing.T) {
	t.Parallel()
	w := watch(t, false)
	_, err := w.infer(t.Context(), w.around(testkit.NewProvider(t, testkit.Script(testkit.Stream("hi")))), inference.Request{})
	require.NoError(t, err)
	for series := range w.metrics() {
		require.NotContains(t, series, "token")
	}
	for _, attr := range w.span().Attributes() {
		require.NotContains(t, string(attr.Key), "usage")
	}
}

// expired is the cause of a context whose time ran out, as a runner gives it.
type expired struct{}

func (expired) Error() string { return "the answer paused for too long" }
func (expired) Timeout() bool { return true }

func TestEveryEndHasItsErrorType(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		script []testkit.Step
		cause  error // ends the context after a second
		report error
		want   string
		status codes.Code
	}{
		"answered":            {script: testkit.Script(testkit.Stream("hi"))},
		"refused":             {script: testkit.Script(testkit.Fail(inference.KindRateLimited)), want: "rate_limited", status: codes.Error},
		"cut":                 {script: testkit.Script(testkit.Stream("h"), testkit.Fail(inference.KindTruncated)), want: "truncated", status: codes.Error},
		"aborted":             {script: testkit.Script(testkit.HangUntilCancel()), cause: errors.New("aborted"), want: "canceled"},
		"too slow":            {script: testkit.Script(testkit.HangUntilCancel()), cause: fmt.Errorf("%w", expired{}), want: "timeout", status: codes.Error},
		"longer than wanted":  {script: testkit.Script(testkit.Stream("hi")), report: enough, want: "canceled"},
		"given up by itself":  {script: testkit.Script(testkit.Fail(inference.KindCanceled)), want: "provider", status: codes.Error},
		"a kind of its own":   {script: testkit.Script(testkit.Fail("odd")), want: "provider", status: codes.Error},
		"timed out by itself": {script: testkit.Script(testkit.Fail(inference.KindTimeout)), want: "timeout", status: codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, false)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cause != nil {
					time.AfterFunc(time.Second, func() { cancel(c.cause) })
				}
				model := w.around(testkit.NewProvider(t, c.script))
				_, err := model.Infer(ctx, inference.Request{}, func(inference.Event) error { return c.report })
				require.Equal(t, c.want == "", err == nil)
				require.Equal(t, c.status, w.span().Status().Code)
				require.Equal(t, c.want, w.errorType())
				require.Empty(t, w.span().Events(), "an exception event would quote the provider")
			})
		})
	}
}

func TestAPanicIsRecordedAndGoesOn(t *testing.T) {
	t.Parallel()
	w := watch(t, false)
	model := w.around(testkit.NewProvider(t, testkit.Script(testkit.Stream("h"), testkit.Panic("broken"))))
	require.PanicsWithValue(t, "broken", func() { _, _ = w.infer(t.Context(), model, inference.Request{}) })
	require.Equal(t, "panic", w.errorType())
	require.Equal(t, codes.Error, w.span().Status().Code)
}

// A watched provider is the provider: same name, same events, same result.
func TestAWatchedProviderDoesWhatTheProviderDoes(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		w := watch(t, content)
		fail := &inference.Error{Kind: inference.KindQuota, Provider: "own", Message: "used up"}
		model := w.around(testkit.NewProvider(t,
			testkit.Script(testkit.Active(), testkit.Stream("a", "", "b"), testkit.Usage(1, 2)), testkit.Script(testkit.FailWith(fail))).Named("own"))
		require.Equal(t, "own", model.Name())
		events, err := w.infer(t.Context(), model, inference.Request{Model: "m"})
		require.NoError(t, err)
		require.Equal(t, []inference.Event{
			inference.Connected{}, inference.Activity{}, inference.Delta{Text: "a"}, inference.Delta{}, inference.Delta{Text: "b"},
		}, events)
		_, err = w.infer(t.Context(), model, inference.Request{Model: "m"})
		require.Equal(t, fail, err)
	}
}

// A thousand sessions, and as many names of models and kinds of runs as clients can think of, make no series beyond the bound.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	w := watch(t, false)
	inner := testkit.NewProvider(t).Otherwise(testkit.Stream("hi"), testkit.Usage(3, 1))
	model := w.around(inner, "fast")
	call := func(name string, n int) {
		_, err := w.infer(t.Context(), model, inference.Request{
			Model: name, SessionID: fmt.Sprintf("session-%d", n), RunID: fmt.Sprintf("run-%d", n),
		})
		require.NoError(t, err)
	}
	call("fast", 0)
	first := len(w.metrics())
	for n := range 1000 {
		call("fast", n)
	}
	require.Len(t, w.metrics(), first, "a session is no label")

	for n := range 1000 {
		call(fmt.Sprintf("model-%d-%s\xff", n, strings.Repeat("x", 500)), n)
	}
	require.LessOrEqual(t, len(w.metrics()), first*70)
	for series := range w.metrics() {
		require.NotContains(t, series, "session-")
		require.NotContains(t, series, "run-")
		require.Less(t, len(series), 600)
		require.True(t, utf8.ValidString(series), series)
	}
}

// A name that nobody configured becomes a label when somebody answers to it: what clients make up does not take the places.
func TestOnlyModelsThatAnswerBecomeLabels(t *testing.T) {
	t.Parallel()
	w := watch(t, false)
	model := w.around(testkit.NewProvider(t, testkit.Script(testkit.Fail(inference.KindBadRequest)), testkit.Script(testkit.Stream("hi")),
		testkit.Script(testkit.Fail(inference.KindBadRequest)), testkit.Script(testkit.Fail(inference.KindBadRequest))), "listed")
	for _, name := range []string{"guess", "free", "free", "listed"} {
		_, _ = w.infer(t.Context(), model, inference.Request{Model: name})
	}
	labels := make(map[string]bool)
	for series := range w.metrics() {
		_, rest, _ := strings.Cut(series, "gen_ai.request.model=")
		name, _, _ := strings.Cut(rest, " ")
		labels[name] = true
	}
	require.Equal(t, map[string]bool{"_OTHER": true, "free": true, "listed": true}, labels)
}
