// Package inference is the port to models: what a provider is, how a request is routed to one, and the kinds of errors that
// the rest of the product distinguishes. Drivers (openai, offline) live in folders below.
//
// The only thing of a session that a provider ever sees is a contextpack.Pack: a type that cannot hold a raw event, an
// artifact or a tool output (I3).
package inference

import (
	"context"

	"github.com/correx/correx-actors/core/contextpack"
)

// Request is one model call.
type Request struct {
	// RunID and SessionID are for logs and traces only.
	RunID     string
	SessionID string
	// Model is the provider's name of the model; empty: the provider's default.
	Model string
	Pack  contextpack.Pack
	// MaxTokens bounds the answer; 0: the provider's default.
	MaxTokens int
	// Resume is the token of a conversation that the provider keeps; Pack then holds only what is new to it. "" = Pack is all.
	Resume string
	// Tools that the model may call; only a ToolCaller gets any.
	Tools []ToolSpec
	// Rounds are what the run has done since Pack: what the model called, and what it got. They are of this run alone, and nothing
	// of them outlives it (I3).
	Rounds []Round
}

// Event is what a call reports while it runs.
//
//sumtype:decl
type Event interface{ isEvent() }

// Connected says that the provider has accepted the call (response headers are here).
type Connected struct{}

// Activity says that bytes came which carry no visible text (keep-alive, reasoning). Any activity resets the stall clock.
type Activity struct{}

// Delta is visible text.
type Delta struct{ Text string }

func (Connected) isEvent() {}
func (Activity) isEvent()  {}
func (Delta) isEvent()     {}

// FinishReason is why the model stopped, in the provider's words; these two are acted on.
const (
	FinishStop   = "stop"
	FinishLength = "length"
)

// Completion is a whole answer; its text is the sum of the deltas.
type Completion struct {
	FinishReason string
	Usage        Usage
	// Model that answered, as the provider named it.
	Model string
	// Calls are the tools that the model calls, each with an id of its own: it goes on when it has their answers. None = the answer
	// is whole.
	Calls []ToolCall
	// Resume is the token with which a later call goes on after this answer; "" = the provider keeps nothing.
	Resume string
}

// Usage counts tokens. Known false means that the provider did not say.
type Usage struct {
	InputTokens  uint64
	OutputTokens uint64
	Known        bool
}

// Provider is a model backend. Infer calls report, on its own goroutine and never after it returned, for everything that
// comes; it returns when the answer is whole or the call has failed. When ctx ends it closes the upstream call at once and returns an
// *Error of KindCanceled (I10); every other failure is an *Error too. A report that returns an error stops the call with that error.
type Provider interface {
	// Name identifies the provider in logs, routes and errors.
	Name() string
	Infer(ctx context.Context, req Request, report func(Event) error) (Completion, error)
}

// Route is a routed request: which provider takes it, under which model name, and why.
type Route struct {
	Provider Provider
	Model    string
	Reason   string
	// Window of the model in tokens; 0 = unknown.
	Window int
	// MaxOutput bounds the answer in tokens, which the prompt leaves free in the window; 0 = neither is set for this model.
	MaxOutput int
	// Counter of the model's tokens; nil = the one that is known by its name.
	Counter contextpack.TokenCounter
}

// Router chooses a provider for a model name ("" = the default).
type Router interface {
	// Route errors: *Error of KindConfig when no provider serves the model.
	Route(ctx context.Context, model string) (Route, error)
}
