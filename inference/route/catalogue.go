package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

// Provider is a provider of the catalogue.
type Provider struct {
	// Name in fallbacks and reasons; "" = the Backend's.
	Name    string
	Backend inference.Provider
	// Models it serves; the first is for those who name none. Empty: every name that no other provider lists.
	Models []Model
	// Standard is the model of those who name none, at a provider without Models; "" = the Backend knows one.
	Standard string
	Limits   Limits
	// Counter gives the counter of a model without an own one; nil = what is known of its name.
	Counter func(model string) contextpack.TokenCounter
	// Fallback names who takes over when it cannot answer, in order: PROVIDER, which takes the model under the same name if
	// it lists it, else its own first one, or PROVIDER/MODEL.
	Fallback []string
}

// Model is a model of a provider.
type Model struct {
	// Name is the provider's own.
	Name string
	// Aliases are further names under which clients may ask for it.
	Aliases []string
	// Window in tokens; 0 = what is known of the name (see Window).
	Window int
	// MaxOutput bounds an answer in tokens; 0 = the provider's limit.
	MaxOutput int
	// Counter of its tokens; nil = what the Provider gives.
	Counter contextpack.TokenCounter
}

// Limits of a provider; 0 = none.
type Limits struct {
	// Concurrent calls. Whoever gives out run slots holds it for the runs that begin here (Router.PerProvider), the router for
	// those that fall back to it.
	Concurrent        int
	RequestsPerMinute int
	TokensPerMinute   int
}

// target is one provider with one of its models.
type target struct {
	provider string
	// model is the provider's own name of it; "" = the driver's default.
	model     string
	window    int
	maxOutput int
	counter   contextpack.TokenCounter
	// how it was chosen, for people.
	how string
}

func (t target) String() string {
	if t.model == "" {
		return t.provider
	}
	return fmt.Sprintf("%s as %q", t.provider, t.model)
}

// catalogue answers which targets may serve a model.
type catalogue struct {
	providers []Provider
	index     map[string]int
}

func newCatalogue(providers []Provider) (*catalogue, error) {
	c := &catalogue{providers: slices.Clone(providers), index: make(map[string]int, len(providers))}
	var faults []error
	if len(providers) == 0 {
		faults = append(faults, errors.New("no provider"))
	}
	for i, p := range c.providers {
		if p.Backend == nil || cmp.Or(p.Name, p.Backend.Name()) == "" {
			faults = append(faults, fmt.Errorf("provider %d: no backend with a name", i+1))
			continue
		}
		p.Name = cmp.Or(p.Name, p.Backend.Name())
		if _, twice := c.index[p.Name]; twice {
			faults = append(faults, fmt.Errorf("provider %s: named twice", p.Name))
			continue
		}
		c.providers[i], c.index[p.Name] = p, i
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, p := range c.providers {
		if err := c.check(p); err != nil {
			faults = append(faults, fmt.Errorf("provider %s: %w", p.Name, err))
		}
	}
	return c, errors.Join(faults...)
}

// check says what is wrong with one provider.
func (c *catalogue) check(p Provider) error {
	var faults []error
	names := make(map[string]bool)
	for _, m := range p.Models {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			switch {
			case name == "":
				faults = append(faults, errors.New("a model without a name"))
			case names[name]:
				faults = append(faults, fmt.Errorf("model %q is named twice", name))
			}
			names[name] = true
		}
		if m.Window < 0 {
			faults = append(faults, fmt.Errorf("window of model %q is negative", m.Name))
		}
		if m.MaxOutput < 0 {
			faults = append(faults, fmt.Errorf("longest answer of model %q is negative", m.Name))
		}
	}
	if p.Limits.Concurrent < 0 || p.Limits.RequestsPerMinute < 0 || p.Limits.TokensPerMinute < 0 {
		faults = append(faults, errors.New("a limit is negative"))
	}
	for _, name := range p.Fallback {
		if name == p.Name {
			faults = append(faults, errors.New("it is its own fallback"))
		} else if _, ok := c.fallback(name, ""); !ok {
			faults = append(faults, fmt.Errorf("fallback %q names no provider with that model", name))
		}
	}
	return errors.Join(faults...)
}

// targets gives who may serve a model, the one to try first in front: the engine that keeps the conversation, if one does.
func (c *catalogue) targets(asked, engine string) []target {
	found := c.primaries(asked)
	if at, ok := c.index[engine]; ok {
		found = []target{c.engine(c.providers[at], asked)}
	}
	if len(found) == 0 {
		return nil
	}
	for _, name := range c.providers[c.index[found[0].provider]].Fallback {
		if t, ok := c.fallback(name, asked); ok {
			found = append(found, t)
		}
	}
	var unique []target
	for _, t := range found {
		if !slices.ContainsFunc(unique, func(u target) bool { return u.provider == t.provider && u.model == t.model }) {
			unique = append(unique, t)
		}
	}
	return unique
}

// primaries are those to whom the name itself leads.
func (c *catalogue) primaries(asked string) []target {
	if asked == "" {
		t := c.first(c.providers[0])
		t.how = "no model was asked for: default provider " + t.String()
		return []target{t}
	}
	var found []target
	for _, p := range c.providers {
		if t, ok := c.listed(p, asked); ok {
			found = append(found, t)
		}
	}
	if found != nil {
		return found
	}
	if name, model, ok := strings.Cut(asked, "/"); ok {
		if t, ok := c.named(name, model); ok {
			t.how = fmt.Sprintf("model %q was asked for by its provider's name: %s", asked, t)
			return []target{t}
		}
	}
	for _, p := range c.providers {
		if len(p.Models) == 0 {
			t := c.passed(p, asked)
			t.how = fmt.Sprintf("model %q has no route of its own: provider %s takes every name", asked, t.provider)
			return []target{t}
		}
	}
	return nil
}

// engine is the target of a conversation that p keeps. A model of others is no name for it to try.
func (c *catalogue) engine(p Provider, asked string) target {
	t, ok := c.own(p, asked)
	if !ok {
		t = c.first(p)
	}
	t.how = fmt.Sprintf("the conversation is kept by provider %s", t)
	return t
}

// own finds a model of p by any name that can mean one.
func (c *catalogue) own(p Provider, asked string) (target, bool) {
	if t, ok := c.listed(p, asked); ok || asked == "" {
		return t, ok
	}
	if name, ok := strings.CutPrefix(asked, p.Name+"/"); ok {
		return c.named(p.Name, name)
	}
	foreign := slices.ContainsFunc(c.providers, func(q Provider) bool {
		_, listed := c.listed(q, asked)
		return q.Name != p.Name && (listed || strings.HasPrefix(asked, q.Name+"/"))
	})
	if len(p.Models) > 0 || foreign {
		return target{}, false
	}
	return c.passed(p, asked), true
}

// first is the target of those who ask for no model.
func (c *catalogue) first(p Provider) target {
	if len(p.Models) == 0 {
		return c.passed(p, p.Standard)
	}
	return model(p, p.Models[0])
}

// listed finds a model by its name or an alias.
func (c *catalogue) listed(p Provider, name string) (target, bool) {
	at := slices.IndexFunc(p.Models, func(m Model) bool { return m.Name == name || slices.Contains(m.Aliases, name) })
	if at < 0 {
		return target{}, false
	}
	t := model(p, p.Models[at])
	t.how = fmt.Sprintf("model %q is routed to provider %s", name, t.provider)
	if t.model != name {
		t.how += fmt.Sprintf(" as %q", t.model)
	}
	return t, true
}

// named finds a model at a provider of that name.
func (c *catalogue) named(provider, name string) (target, bool) {
	at, ok := c.index[provider]
	if !ok || name == "" {
		return target{}, false
	}
	p := c.providers[at]
	if len(p.Models) == 0 {
		return c.passed(p, name), true
	}
	return c.listed(p, name)
}

// fallback finds who a fallback means. A provider that lists nothing gets no foreign name: it has a default of its own.
func (c *catalogue) fallback(name, asked string) (target, bool) {
	at, ok := c.index[name]
	if !ok {
		provider, model, _ := strings.Cut(name, "/")
		return c.named(provider, model)
	}
	if t, ok := c.listed(c.providers[at], asked); ok {
		return t, true
	}
	return c.first(c.providers[at]), true
}

func (c *catalogue) passed(p Provider, name string) target {
	return model(p, Model{Name: name})
}

func model(p Provider, m Model) target {
	t := target{
		provider: p.Name, model: m.Name, window: cmp.Or(m.Window, Window(m.Name)), maxOutput: m.MaxOutput, counter: m.Counter,
	}
	if t.counter == nil && p.Counter != nil {
		t.counter = p.Counter(m.Name)
	}
	return t
}
