package inference

import (
	"context"
	"errors"
	"time"
)

// Ask is what a run asks a Planner for.
type Ask struct {
	// Model as clients name it; "" = the default.
	Model string
	// Engine is the provider that keeps the conversation: it is the first to be called, whatever the model. "" = the model alone
	// decides.
	Engine string
	// Tokens that the prompt has by our own count: what a provider's limit on tokens is charged with before the call.
	Tokens int
	// Replace: the text of a call that was cut may be replaced by that of a further one. Without it a plan ends with a call
	// that failed after it showed text.
	Replace bool
}

// Planner is a Router that takes a run over several calls: retries, and fallbacks to other providers.
type Planner interface {
	Router
	// First gives the route that a plan would try first, whatever its health. Errors: as Route.
	First(ctx context.Context, ask Ask) (Route, error)
	// Plan errors: as Route.
	Plan(ctx context.Context, ask Ask) (Plan, error)
}

// Plan is the course of one run. Its caller does what Next says and tells how that went; after an end with ErrUnknownResume
// it calls without the token. It belongs to one goroutine.
type Plan interface {
	// Next says what to do now. After a Call it is asked again once that has Ended, after a Wait once that is over.
	Next() Step
	// Begun says that the running call has shown its first text.
	Begun()
	// Ended says how the running call ended.
	Ended(end End)
	// Close gives back what the plan holds: a place within a limit, a call that never ended. It may be called at any time,
	// and more than once.
	Close()
}

// End is how a call ended.
type End struct {
	// Err of the call; nil = it is complete. Whether the caller's own context ended it, and which of its limits, must be
	// told by KindCanceled and Error.Limit: a plan sees no context.
	Err error
	// Visible: text was shown.
	Visible bool
	// Usage as far as it is known.
	Usage Usage
}

// Step is what a plan says next.
//
//sumtype:decl
type Step interface{ isStep() }

// Call makes one call.
type Call struct {
	Route
	// Halve: the prompt was too long; send one of half the budget.
	Halve bool
}

// Wait waits before the next call.
type Wait struct {
	For time.Duration
	// Reason for people: what for, and which provider.
	Reason string
}

// Stop ends the run. Err is nil after a call that completed, else what to tell of the failure.
type Stop struct{ Err error }

func (Call) isStep() {}
func (Wait) isStep() {}
func (Stop) isStep() {}

// FirstOf gives the route that PlanOf would try first, with any router.
func FirstOf(ctx context.Context, router Router, ask Ask) (Route, error) {
	if planner, ok := router.(Planner); ok {
		return planner.First(ctx, ask)
	}
	return router.Route(ctx, ask.Model)
}

// PlanOf plans a run with any router: one that is no Planner gets a plan of a single call.
func PlanOf(ctx context.Context, router Router, ask Ask) (Plan, error) {
	if planner, ok := router.(Planner); ok {
		return planner.Plan(ctx, ask)
	}
	route, err := router.Route(ctx, ask.Model)
	if err != nil {
		return nil, err
	}
	return &single{route: route}, nil
}

// single is the plan of a router that knows no other provider.
type single struct {
	route  Route
	called bool
	// anew: the call is made once more since its resume token is not known.
	anew bool
	err  error
}

// Next implements Plan.
func (s *single) Next() Step {
	if s.called {
		return Stop{Err: s.err}
	}
	s.called = true
	return Call{Route: s.route}
}

// Begun implements Plan.
func (*single) Begun() {}

// Ended implements Plan.
func (s *single) Ended(end End) {
	s.err = end.Err
	if errors.Is(end.Err, ErrUnknownResume) && !end.Visible && !s.anew {
		s.anew, s.called = true, false
	}
}

// Close implements Plan.
func (*single) Close() {}
