package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/correx/correx-actors/inference"
)

// Config of a Router.
type Config struct {
	// Providers, the one for those who name no model first.
	Providers []Provider
	Rules     Rules
	Breaker   Breaker
	// Logger is told when a provider is paused and when it is back; nil = nobody is.
	Logger *slog.Logger
}

// Standard gives the documented rules: two retries, waits of half a minute at most.
func Standard() (Rules, Breaker) {
	return Rules{Retries: 2, MaxWait: 30 * time.Second}, Breaker{Failures: 5, Pause: 30 * time.Second}
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	var faults []error
	if _, err := newCatalogue(c.Providers); err != nil {
		faults = append(faults, err)
	}
	if c.Rules.Retries < 0 || c.Rules.MaxWait < 0 {
		faults = append(faults, errors.New("retries and the longest wait cannot be negative"))
	}
	if c.Breaker.Failures < 1 || c.Breaker.Pause <= 0 {
		faults = append(faults, errors.New("a breaker needs at least one failure and a pause"))
	}
	return errors.Join(faults...)
}

// Router is an inference.Planner over a catalogue of providers. Safe for concurrent use: it holds the breakers and limits that
// all runs of the process share.
type Router struct {
	catalogue *catalogue
	rules     Rules
	backends  map[string]*backend
}

var _ inference.Planner = (*Router)(nil)

// New makes a Router. Errors: *inference.Error of KindConfig.
func New(c Config) (*Router, error) {
	if err := c.Validate(); err != nil {
		return nil, &inference.Error{Kind: inference.KindConfig, Message: inference.CleanMessage(err.Error()), Err: err}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	known, err := newCatalogue(c.Providers)
	if err != nil {
		return nil, err
	}
	r := &Router{catalogue: known, rules: c.Rules, backends: make(map[string]*backend, len(c.Providers))}
	for _, p := range known.providers {
		r.backends[p.Name] = newBackend(p, c.Breaker, c.Logger)
	}
	return r, nil
}

// Route implements inference.Router: the provider and model that a run would try first, whatever their health.
func (r *Router) Route(ctx context.Context, model string) (inference.Route, error) {
	return r.First(ctx, inference.Ask{Model: model})
}

// First implements inference.Planner.
func (r *Router) First(_ context.Context, ask inference.Ask) (inference.Route, error) {
	targets, err := r.targets(ask)
	if err != nil {
		return inference.Route{}, err
	}
	return r.route(targets[0], targets[0].how), nil
}

// Plan implements inference.Planner.
func (r *Router) Plan(_ context.Context, ask inference.Ask) (inference.Plan, error) {
	targets, err := r.targets(ask)
	if err != nil {
		return nil, err
	}
	return newPlan(r, ask, targets), nil
}

func (r *Router) targets(ask inference.Ask) ([]target, error) {
	targets := r.catalogue.targets(ask.Model, ask.Engine)
	if targets == nil {
		return nil, &inference.Error{
			Kind: inference.KindConfig, Message: inference.CleanMessage(fmt.Sprintf("no provider serves model %q", ask.Model)),
		}
	}
	return targets, nil
}

// Serves says whether a model's name can mean a model of a provider. Its answer never changes.
func (r *Router) Serves(provider, model string) bool {
	at, ok := r.catalogue.index[provider]
	if ok {
		_, ok = r.catalogue.own(r.catalogue.providers[at], model)
	}
	return ok
}

func (r *Router) route(t target, reason string) inference.Route {
	return inference.Route{
		Provider: r.backends[t.provider].Provider, Model: t.model, Reason: reason, Window: t.window,
		MaxOutput: t.maxOutput, Counter: t.counter,
	}
}

// PerProvider gives the limits on concurrent calls, by the name of the provider that Route gives; one without a limit is missing.
func (r *Router) PerProvider() map[string]int {
	limits := make(map[string]int)
	for _, p := range r.catalogue.providers {
		if p.Limits.Concurrent > 0 {
			limits[p.Backend.Name()] = p.Limits.Concurrent
		}
	}
	return limits
}

// State is how a provider's breaker stands.
type State string

// States.
const (
	// StateClosed lets every call through.
	StateClosed State = "closed"
	// StateOpen refuses calls after failures.
	StateOpen State = "open"
	// StateTrying lets one call through, which decides.
	StateTrying State = "trying"
)

// Valid says whether s is one of the states.
func (s State) Valid() bool {
	switch s {
	case StateClosed, StateOpen, StateTrying:
		return true
	}
	return false
}

// Health is the state of one provider.
type Health struct {
	Provider string
	State    State
	// NextTry is when an open breaker lets a call through again.
	NextTry time.Time
}

// Health tells the state of every provider, in the order of the catalogue.
func (r *Router) Health() []Health {
	list := make([]Health, 0, len(r.catalogue.providers))
	for _, p := range r.catalogue.providers {
		b := r.backends[p.Name]
		h := Health{Provider: p.Name}
		switch b.breaker.State() {
		case gobreaker.StateClosed:
			h.State = StateClosed
		case gobreaker.StateHalfOpen:
			h.State = StateTrying
		case gobreaker.StateOpen:
			h.State, h.NextTry = StateOpen, time.Unix(0, b.opens.Load())
		}
		list = append(list, h)
	}
	return list
}
