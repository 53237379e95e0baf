package wiring

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/fx"

	"github.com/correx/correx-actors/inference/telemetry"
	"github.com/correx/correx-actors/messages"
)

// maxSeries bounds the series of one metric. All labels are of closed or bounded sets, which stay far below; beyond it one series
// with the label otel_metric_overflow takes the rest.
const maxSeries = 1000

// watching provides what sees. A host decorates trace.TracerProvider to get the spans of model calls, and metric.MeterProvider to
// take the metrics into a pipeline of its own, in place of /metrics.
var watching = fx.Options(
	fx.Provide(newMeters, func() trace.TracerProvider { return nooptrace.NewTracerProvider() }, newCalls),
	fx.Invoke(observe),
)

// exposed serves the metrics; nil = nobody does.
type exposed http.Handler

// newMeters keeps the metrics in a registry of their own: nothing of ours is global, so that two runtimes fit into one process.
// They are read when asked for: there is nothing to start, to flush or to stop.
func newMeters(cfg Config, log *slog.Logger) (metric.MeterProvider, exposed, error) {
	if !cfg.Metrics.Enabled {
		return noopmetric.NewMeterProvider(), nil, nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, &StartError{Part: "the metrics", Err: err}
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(resource.Empty()),
		sdkmetric.WithCardinalityLimit(maxSeries))
	return meters, promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{log}, ErrorHandling: promhttp.ContinueOnError,
	}), nil
}

func newCalls(cfg Config, meters metric.MeterProvider, tracers trace.TracerProvider) (*telemetry.Calls, error) {
	calls, err := telemetry.New(telemetry.Config{Meters: meters, Tracers: tracers, Content: cfg.Telemetry.Content})
	if err != nil {
		return nil, &StartError{Part: "the metrics", Err: err}
	}
	return calls, nil
}

// scrapeLog takes what goes wrong while metrics are gathered.
type scrapeLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (s scrapeLog) Println(v ...any) {
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "metrics are incomplete", slog.String(messages.AttrError, fmt.Sprint(v...)))
}
