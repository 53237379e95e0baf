package telemetry_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

// stream reports the same delta as often as it is told to.
type stream struct{ deltas int }

func (stream) Name() string { return "stream" }

func (s stream) Infer(_ context.Context, req inference.Request, report func(inference.Event) error) (inference.Completion, error) {
	var delta inference.Event = inference.Delta{Text: "word"}
	for range s.deltas {
		if err := report(delta); err != nil {
			return inference.Completion{}, err
		}
	}
	return inference.Completion{Model: req.Model, Usage: inference.Usage{InputTokens: 1, OutputTokens: 1, Known: true}}, nil
}

func take(inference.Event) error { return nil }

// A delta costs no allocation: it comes as often as a word.
func TestADeltaAllocatesNothing(t *testing.T) {
	w := watch(t, false)
	few, many := w.around(stream{deltas: 1}, "m"), w.around(stream{deltas: 10_000}, "m")
	measure := func(p inference.Provider) float64 {
		return testing.AllocsPerRun(20, func() {
			_, err := p.Infer(t.Context(), inference.Request{Model: "m"}, take)
			require.NoError(t, err)
		})
	}
	require.InDelta(t, measure(few), measure(many), 3)
}

// BenchmarkDelta is one delta, BenchmarkCall a call with a single one; both bare and watched.
func BenchmarkDelta(b *testing.B) {
	bench(b, func(b *testing.B, around func(inference.Provider) inference.Provider) {
		b.Helper()
		p := around(stream{deltas: b.N})
		b.ResetTimer()
		_, err := p.Infer(b.Context(), inference.Request{Model: "m"}, take)
		require.NoError(b, err)
	})
}

func BenchmarkCall(b *testing.B) {
	bench(b, func(b *testing.B, around func(inference.Provider) inference.Provider) {
		b.Helper()
		p := around(stream{deltas: 1})
		for b.Loop() {
			_, err := p.Infer(b.Context(), inference.Request{Model: "m", SessionID: "s"}, take)
			require.NoError(b, err)
		}
	})
}

func bench(b *testing.B, run func(*testing.B, func(inference.Provider) inference.Provider)) {
	b.Helper()
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		run(b, func(p inference.Provider) inference.Provider { return p })
	})
	b.Run("metrics", func(b *testing.B) {
		b.ReportAllocs()
		w := measured(b)
		run(b, func(p inference.Provider) inference.Provider { return w.Watch(p, "m") })
	})
}
