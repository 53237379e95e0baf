package telemetry_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watcher is a whole pipeline: providers that are watched, and all that is exported of them.
type watcher struct {
	t      testing.TB
	calls  *telemetry.Calls
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
}

func watch(t testing.TB, content bool) *watcher {
	t.Helper()
	w := &watcher{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	var err error
	w.calls, err = telemetry.New(telemetry.Config{
		Meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)),
		Tracers: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)),
		Content: content,
	})
	require.NoError(t, err)
	return w
}

// measured is a pipeline without spans, as a server has it that no host takes them from.
func measured(t testing.TB) *telemetry.Calls {
	t.Helper()
	calls, err := telemetry.New(telemetry.Config{
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
	})
	require.NoError(t, err)
	return calls
}

func (w *watcher) around(p inference.Provider, models ...string) inference.Provider {
	return w.calls.Watch(p, models...)
}

func (w *watcher) infer(ctx context.Context, p inference.Provider, req inference.Request) (events []inference.Event, err error) {
	w.t.Helper()
	_, err = p.Infer(ctx, req, func(e inference.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// metrics gives the sum of each series, by its name and labels.
func (w *watcher) metrics() map[string]float64 {
	w.t.Helper()
	sums := make(map[string]float64)
	for _, m := range w.collect() {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				sums[series(m.Name, point.Attributes)] = point.Sum
			}
		case metricdata.Histogram[int64]:
			for _, point := range data.DataPoints {
				sums[series(m.Name, point.Attributes)] = float64(point.Sum)
			}
		default:
			require.FailNow(w.t, "an unknown kind of metric", "%s %T", m.Name, m.Data)
		}
	}
	return sums
}

func (w *watcher) collect() []metricdata.Metrics {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(w.t, w.reader.Collect(w.t.Context(), &all))
	var list []metricdata.Metrics
	for _, scope := range all.ScopeMetrics {
		list = append(list, scope.Metrics...)
	}
	return list
}

func series(name string, labels attribute.Set) string {
	parts := []string{name}
	for _, label := range labels.ToSlice() {
		parts = append(parts, string(label.Key)+"="+label.Value.String())
	}
	return strings.Join(parts, " ")
}

// span gives the only span.
func (w *watcher) span() sdktrace.ReadOnlySpan {
	w.t.Helper()
	spans := w.spans.Ended()
	require.Len(w.t, spans, 1)
	return spans[0]
}

// errorType is what metric and span say of the only call, which must be the same.
func (w *watcher) errorType() string {
	w.t.Helper()
	said := ""
	for _, attr := range w.span().Attributes() {
		if attr.Key == "error.type" {
			said = attr.Value.AsString()
		}
	}
	for series := range w.metrics() {
		if strings.HasPrefix(series, "gen_ai.client.operation.duration ") {
			rest := strings.TrimPrefix(series, "gen_ai.client.operation.duration ")
			measured := ""
			for label := range strings.FieldsSeq(rest) {
				if value, is := strings.CutPrefix(label, "error.type="); is {
					measured = value
				}
			}
			require.Equal(w.t, said, measured)
		} else {
			require.NotContains(w.t, series, "error.type")
		}
	}
	return said
}
