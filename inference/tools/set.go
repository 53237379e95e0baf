package tools

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/correx/correx-actors/messages"
)

// Set is the tools of one model call: no name twice, in a stable order. It is immutable; nil is the empty set.
type Set struct {
	tools  []*Tool
	byName map[string]*Tool
}

// NewSet makes a set; its order is that of the arguments.
func NewSet(list ...*Tool) (*Set, error) {
	s := &Set{byName: make(map[string]*Tool, len(list))}
	for _, t := range list {
		if !s.add(t) {
			return nil, fmt.Errorf("two tools have the name %q", t.spec.Name)
		}
	}
	return s, nil
}

func (s *Set) add(t *Tool) bool {
	if _, taken := s.byName[t.spec.Name]; taken {
		return false
	}
	s.tools, s.byName[t.spec.Name] = append(s.tools, t), t
	return true
}

// Specs tell of the tools, in order. The slice is the caller's.
func (s *Set) Specs() []Spec {
	if s == nil {
		return nil
	}
	specs := make([]Spec, 0, len(s.tools))
	for _, t := range s.tools {
		specs = append(specs, t.spec)
	}
	return specs
}

// Len is how many there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.tools)
}

// Lookup finds a tool by its name.
func (s *Set) Lookup(name string) (*Tool, bool) {
	if s == nil {
		return nil, false
	}
	t, found := s.byName[name]
	return t, found
}

// Source offers tools that come and go. Tools gives those of now in a stable order; it returns at once, and the slice is not changed
// afterwards.
type Source interface {
	// Name is for logs.
	Name() string
	Tools() []*Tool
}

// Registry knows what is offered: the tools that were registered, then those of the sources. It is safe for concurrent use.
type Registry struct {
	log     *slog.Logger
	fixed   []*Tool
	sources []Source

	mu sync.Mutex
	// hidden are the tools of sources that were left out, by name, so that each is logged once.
	hidden map[string]bool
}

// NewRegistry makes a registry. It fails if two registered tools have one name.
func NewRegistry(log *slog.Logger, fixed []*Tool, sources ...Source) (*Registry, error) {
	if _, err := NewSet(fixed...); err != nil {
		return nil, err
	}
	return &Registry{log: log, fixed: fixed, sources: sources, hidden: make(map[string]bool)}, nil
}

// Set is what is offered now. A tool of a source whose name is taken is left out: what a server calls its tools must not stop a run,
// and may not replace what the host has registered.
func (r *Registry) Set() *Set {
	s := &Set{byName: make(map[string]*Tool, len(r.fixed))}
	for _, t := range r.fixed {
		s.add(t)
	}
	for _, source := range r.sources {
		for _, t := range source.Tools() {
			if !s.add(t) {
				r.hide(source, t.spec.Name)
			}
		}
	}
	return s
}

func (r *Registry) hide(source Source, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := source.Name() + "\x00" + name
	if r.hidden[key] {
		return
	}
	r.hidden[key] = true
	r.log.LogAttrs(context.Background(), slog.LevelWarn, "tool left out, its name is taken",
		slog.String(messages.AttrComponent, source.Name()), slog.String(messages.AttrTool, name))
}
