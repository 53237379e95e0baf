package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/correx/correx-actors/inference"
)

// scope names this package to meters and tracers.
const scope = "github.com/correx/correx-actors/inference/telemetry"

// Config says where what is seen goes.
type Config struct {
	// Meters takes the metrics; nil = nobody does.
	Meters metric.MeterProvider
	// Tracers takes the spans; nil = nobody does.
	Tracers trace.TracerProvider
	// Content puts prompts and answers into spans, cut to ContentLimit. Whoever can read the spans can then read conversations.
	Content bool
}

// Calls makes providers that are watched. Safe for concurrent use.
type Calls struct {
	duration   metric.Float64Histogram
	firstChunk metric.Float64Histogram
	tokens     metric.Int64Histogram
	tracer     trace.Tracer
	content    bool
}

// New makes the instruments. Errors: what the meter says.
func New(c Config) (*Calls, error) {
	if c.Meters == nil {
		c.Meters = noopmetric.NewMeterProvider()
	}
	if c.Tracers == nil {
		c.Tracers = nooptrace.NewTracerProvider()
	}
	meter := c.Meters.Meter(scope)
	calls := &Calls{tracer: c.Tracers.Tracer(scope), content: c.Content}
	var faults [3]error
	calls.duration, faults[0] = meter.Float64Histogram(metricDuration, metric.WithUnit("s"),
		metric.WithDescription("How long model calls took; those that succeeded have no error_type."),
		metric.WithExplicitBucketBoundaries(secondBounds...))
	calls.firstChunk, faults[1] = meter.Float64Histogram(metricFirstChunk, metric.WithUnit("s"),
		metric.WithDescription("How long it took from the request to the first text of the answer."),
		metric.WithExplicitBucketBoundaries(secondBounds...))
	calls.tokens, faults[2] = meter.Int64Histogram(metricTokens, metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of a call as the provider reported them; a call of which it said nothing is missing."),
		metric.WithExplicitBucketBoundaries(tokenBounds...))
	if err := errors.Join(faults[:]...); err != nil {
		return nil, fmt.Errorf("make the instruments of model calls: %w", err)
	}
	return calls, nil
}

// Watch gives a provider that does what p does and whose calls are recorded. Models are the names that may become labels before
// a call with them has succeeded: those of the configuration.
func (c *Calls) Watch(p inference.Provider, models ...string) inference.Provider {
	return &watched{Provider: p, calls: c, models: newNames(models), name: label(p.Name())}
}

// watched is a provider whose calls are recorded.
type watched struct {
	inference.Provider
	calls  *Calls
	models *names
	name   string
}

var _ inference.Provider = (*watched)(nil)

// CallsTools implements inference.ToolCaller, if the provider does.
func (w *watched) CallsTools() bool { return inference.CallsTools(w.Provider) }

// Infer implements inference.Provider.
func (w *watched) Infer(
	ctx context.Context, req inference.Request, report func(inference.Event) error,
) (done inference.Completion, err error) {
	ctx, seen := w.begin(ctx, req, report)
	returned := false
	defer func() { seen.end(ctx, done, err, returned) }()
	done, err = w.Provider.Infer(ctx, req, seen.report)
	returned = true
	return done, err
}
