package telemetry

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/correx/correx-actors/inference"
)

// errorPanic is the type of a call that ended by a panic: the one end that is no inference.Kind.
const errorPanic = "panic"

// call is what was seen of one call. Like its reports it belongs to the goroutine of its Infer.
type call struct {
	of    *watched
	next  func(inference.Event) error
	span  trace.Span
	begun time.Time
	// first is when the first text came, since begun; 0 = none has.
	first time.Duration
	// stopped: our own side wanted no more of the answer.
	stopped bool
	// model that was asked for.
	model string
	// answer is collected only for spans that hold content.
	answer *clipped
}

func (w *watched) begin(ctx context.Context, req inference.Request, next func(inference.Event) error) (context.Context, *call) {
	c := &call{of: w, next: next, model: req.Model}
	name := operationChat
	if req.Model != "" {
		name += " " + label(req.Model)
	}
	ctx, c.span = w.calls.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	if c.span.IsRecording() {
		c.describe(req)
	}
	c.begun = time.Now()
	return ctx, c
}

// describe tells the span what is asked for.
func (c *call) describe(req inference.Request) {
	c.span.SetAttributes(
		attribute.String(attrOperation, operationChat), attribute.String(AttrProvider, c.of.name), attribute.Bool(attrStream, true))
	for _, known := range []struct{ key, value string }{
		{attrRequestModel, label(req.Model)}, {attrConversation, req.SessionID}, {attrRun, req.RunID},
	} {
		if known.value != "" {
			c.span.SetAttributes(attribute.String(known.key, known.value))
		}
	}
	if req.MaxTokens > 0 {
		c.span.SetAttributes(attribute.Int(attrMaxTokens, req.MaxTokens))
	}
	if c.of.calls.content {
		c.span.SetAttributes(attribute.String(attrInputMessages, prompt(req.Pack)))
		c.answer = new(clipped)
	}
}

// report is called for every piece of an answer: it must cost nothing.
func (c *call) report(e inference.Event) error {
	if delta, ok := e.(inference.Delta); ok && delta.Text != "" {
		if c.first == 0 {
			c.first = max(time.Since(c.begun), 1) // 0 means none
		}
		if c.answer != nil {
			c.answer.add(delta.Text)
		}
	}
	err := c.next(e)
	c.stopped = c.stopped || err != nil
	return err
}

func (c *call) end(ctx context.Context, done inference.Completion, err error, returned bool) {
	took := time.Since(c.begun)
	failure := errorPanic
	if returned {
		failure = c.failure(ctx, err)
	}
	c.measure(ctx, done, failure, took)
	if c.span.IsRecording() {
		c.conclude(done, failure)
	}
	c.span.End()
}

// failure is the type of the error with which a call ended; "" = it succeeded. Whether our own side ended it is told by the
// context and by our reports, never by the error: a provider that gives up by itself has failed, whatever it calls that.
func (c *call) failure(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	if cause := context.Cause(ctx); cause != nil {
		var out interface{ Timeout() bool }
		if errors.As(cause, &out) && out.Timeout() {
			return string(inference.KindTimeout)
		}
		return string(inference.KindCanceled)
	}
	kind := inference.KindOf(err)
	switch {
	case c.stopped:
		kind = inference.KindCanceled
	case kind == inference.KindCanceled || !kind.Valid():
		kind = inference.KindProvider
	}
	return string(kind)
}

// measure records the metrics. No attribute here may come from a session.
func (c *call) measure(ctx context.Context, done inference.Completion, failure string, took time.Duration) {
	answered := failure == ""
	labels := make([]attribute.KeyValue, 0, 6)
	labels = append(labels, attribute.String(attrOperation, operationChat), attribute.String(AttrProvider, c.of.name))
	for _, model := range []struct{ key, name string }{{attrRequestModel, c.model}, {attrResponseModel, done.Model}} {
		if name := c.of.models.label(model.name, answered); name != "" {
			labels = append(labels, attribute.String(model.key, name))
		}
	}
	calls, known := c.of.calls, attribute.NewSet(labels...)
	if c.first > 0 {
		calls.firstChunk.Record(ctx, c.first.Seconds(), metric.WithAttributeSet(known))
	}
	if done.Usage.Known {
		calls.tokens.Record(ctx, count(done.Usage.InputTokens), metric.WithAttributeSet(with(labels, attrTokenType, tokensInput)))
		calls.tokens.Record(ctx, count(done.Usage.OutputTokens), metric.WithAttributeSet(with(labels, attrTokenType, tokensOutput)))
	}
	if !answered {
		known = with(labels, attrErrorType, failure)
	}
	calls.duration.Record(ctx, took.Seconds(), metric.WithAttributeSet(known))
}

// with is a set of the labels and one more.
func with(labels []attribute.KeyValue, key, value string) attribute.Set {
	all := append(make([]attribute.KeyValue, 0, len(labels)+1), labels...)
	return attribute.NewSet(append(all, attribute.String(key, value))...)
}

// count is a number of tokens for an instrument that takes no larger ones.
func count(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // bounded

// conclude tells the span how the call ended. A call that we ended ourselves is no error. Of all others the status says the kind:
// a provider's own message may quote the prompt.
func (c *call) conclude(done inference.Completion, failure string) {
	if done.Model != "" {
		c.span.SetAttributes(attribute.String(attrResponseModel, label(done.Model)))
	}
	if done.FinishReason != "" {
		c.span.SetAttributes(attribute.StringSlice(attrFinishReasons, []string{label(done.FinishReason)}))
	}
	if done.Usage.Known {
		c.span.SetAttributes(attribute.Int64(attrInputTokens, count(done.Usage.InputTokens)),
			attribute.Int64(attrOutputTokens, count(done.Usage.OutputTokens)))
	}
	if c.first > 0 {
		c.span.SetAttributes(attribute.Float64(attrFirstChunk, c.first.Seconds()))
	}
	if c.answer != nil {
		c.span.SetAttributes(attribute.String(attrOutputMessages, c.answer.message(done.FinishReason)))
	}
	if failure == "" {
		return
	}
	c.span.SetAttributes(attribute.String(attrErrorType, failure))
	if failure != string(inference.KindCanceled) {
		c.span.SetStatus(codes.Error, failure)
	}
}
