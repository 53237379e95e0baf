package testkit

import (
	"context"
	"time"

	"github.com/correx/correx-actors/inference"
)

// Step is one thing that a scripted call does. A call ends with its first step that fails, or completes after its last one.
type Step struct {
	run func(ctx context.Context, c *calling) error
}

// calling is a call that runs its script.
type calling struct {
	provider   *ScriptedProvider
	report     func(inference.Event) error
	connected  bool
	completion inference.Completion
}

// Connect accepts the call. It is implied by the first Stream or Active, and by a completion.
func Connect() Step {
	return Step{func(_ context.Context, c *calling) error { return c.connect() }}
}

// Stream reports each text as one delta.
func Stream(texts ...string) Step {
	return Step{func(ctx context.Context, c *calling) error {
		if err := c.connect(); err != nil {
			return err
		}
		for _, text := range texts {
			if ctx.Err() != nil {
				return inference.Canceled(ctx, c.provider.Name())
			}
			if err := c.report(inference.Delta{Text: text}); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Active reports bytes without visible text, as a keep-alive or reasoning does.
func Active() Step {
	return Step{func(_ context.Context, c *calling) error {
		if err := c.connect(); err != nil {
			return err
		}
		return c.report(inference.Activity{})
	}}
}

// Delay waits, or ends the call when it is canceled meanwhile.
func Delay(d time.Duration) Step {
	return Step{func(ctx context.Context, c *calling) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return inference.Canceled(ctx, c.provider.Name())
		}
	}}
}

// WaitFor waits until gate is closed or gives a value, or ends the call when it is canceled meanwhile. In a synctest bubble
// make the gate in the bubble.
func WaitFor(gate <-chan struct{}) Step {
	return Step{func(ctx context.Context, c *calling) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return inference.Canceled(ctx, c.provider.Name())
		}
	}}
}

// HangUntilCancel waits until the call is canceled: an upstream that never says anything more.
func HangUntilCancel() Step { return WaitFor(nil) }

// HangDespiteCancel waits for gate and does not look at the context: a provider that breaks its contract. What it does
// afterwards comes late.
func HangDespiteCancel(gate <-chan struct{}) Step {
	return Step{func(context.Context, *calling) error {
		<-gate
		return nil
	}}
}

// Fail ends the call with an error of this kind.
func Fail(kind inference.Kind) Step {
	return FailWith(&inference.Error{Kind: kind, Message: "scripted failure"})
}

// FailWith ends the call with this error; an empty Provider becomes the provider's name.
func FailWith(err *inference.Error) Step {
	return Step{func(_ context.Context, c *calling) error {
		failure := *err
		if failure.Provider == "" {
			failure.Provider = c.provider.Name()
		}
		return &failure
	}}
}

// Finish sets the reason that the completion gives; without it that is inference.FinishStop.
func Finish(reason string) Step {
	return Step{func(_ context.Context, c *calling) error {
		c.completion.FinishReason = reason
		return nil
	}}
}

// Usage sets the tokens that the completion reports; without it they are unknown.
func Usage(input, output uint64) Step {
	return Step{func(_ context.Context, c *calling) error {
		c.completion.Usage = inference.Usage{InputTokens: input, OutputTokens: output, Known: true}
		return nil
	}}
}

// Resume sets the token that the completion reports.
func Resume(token string) Step {
	return Step{func(_ context.Context, c *calling) error {
		c.completion.Resume = token
		return nil
	}}
}

// Panic panics with value in the goroutine of the call.
func Panic(value any) Step {
	return Step{func(context.Context, *calling) error { panic(value) }}
}

func (c *calling) connect() error {
	if c.connected {
		return nil
	}
	c.connected = true
	return c.report(inference.Connected{})
}

// CallTools makes the completion call these tools; what the run does with them is in the Rounds of the next call's request.
func CallTools(calls ...inference.ToolCall) Step {
	return Step{func(_ context.Context, c *calling) error {
		c.completion.Calls, c.completion.FinishReason = calls, "tool_calls"
		return nil
	}}
}
