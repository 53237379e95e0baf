package inference

import (
	"context"
	"errors"
	"fmt"
)

// ModelRoute sends one model name to one provider.
type ModelRoute struct {
	// Model as clients ask for it; "" is the route of those who ask for none.
	Model string
	// Provider that serves it.
	Provider Provider
	// As is the provider's own name of the model; "" = the same name. It lets a configuration hide names that a driver
	// or a provider treats specially.
	As string
}

// Table is a Router whose routes do not change: a table of models and a provider for all others. Safe for concurrent use.
type Table struct {
	fallback Provider
	routes   map[string]ModelRoute
}

// NewTable makes a Table. Fallback takes every model that has no route, under the name that was asked for; nil: such
// models are refused. The error, for a route without a provider, a model with two routes or no provider at all, is an
// *Error of KindConfig.
func NewTable(fallback Provider, routes ...ModelRoute) (*Table, error) {
	table := &Table{fallback: fallback, routes: make(map[string]ModelRoute, len(routes))}
	var faults []error
	for _, route := range routes {
		if route.Provider == nil {
			faults = append(faults, fmt.Errorf("route of model %q: no provider", route.Model))
			continue
		}
		if other, ok := table.routes[route.Model]; ok {
			faults = append(faults, fmt.Errorf("model %q has two routes: %s and %s",
				route.Model, other.Provider.Name(), route.Provider.Name()))
			continue
		}
		table.routes[route.Model] = route
	}
	if fallback == nil && len(routes) == 0 {
		faults = append(faults, errors.New("no provider"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, &Error{Kind: KindConfig, Message: CleanMessage(err.Error()), Err: err}
	}
	return table, nil
}

// Route implements Router.
func (t *Table) Route(_ context.Context, model string) (Route, error) {
	if route, ok := t.routes[model]; ok {
		return explained(route), nil
	}
	if t.fallback == nil {
		text := fmt.Sprintf("no provider serves model %q", model)
		if model == "" {
			text = "no model was asked for and there is no default provider"
		}
		return Route{}, &Error{Kind: KindConfig, Message: CleanMessage(text)}
	}
	if model == "" {
		return Route{Provider: t.fallback, Reason: "no model was asked for: default provider " + t.fallback.Name()}, nil
	}
	return Route{
		Provider: t.fallback,
		Model:    model,
		Reason:   fmt.Sprintf("model %q has no route of its own: default provider %s", model, t.fallback.Name()),
	}, nil
}

func explained(route ModelRoute) Route {
	name := route.As
	if name == "" {
		name = route.Model
	}
	reason := fmt.Sprintf("model %q is routed to provider %s", route.Model, route.Provider.Name())
	if route.Model == "" {
		reason = "no model was asked for: routed to provider " + route.Provider.Name()
	}
	if name != route.Model {
		reason += fmt.Sprintf(" as %q", name)
	}
	return Route{Provider: route.Provider, Model: name, Reason: reason}
}
