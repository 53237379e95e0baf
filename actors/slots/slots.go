// Package slots bounds what goes on at once in a process: run slots, of which each provider may have its own number, and leases,
// one for each conversation that an engine keeps, so that two sessions never resume one at the same time.
//
// A run first takes its lease and then its slot, and gives them back in reverse: who waits for a lease holds no slot. Both are
// served in the order in which they were asked for; a session asks for one run at a time, so slots go round among sessions.
package slots

import (
	"container/list"
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
)

// DefaultMax is how many runs go on at once unless configured.
const DefaultMax = 64

// Config bounds the runs of a process.
type Config struct {
	// Max is how many go on at once.
	Max int
	// PerProvider bounds those of one provider, by its name; 0 or none = Max.
	PerProvider map[string]int
}

// Validate reports what cannot be.
func (c Config) Validate() error {
	var errs []error
	if c.Max <= 0 {
		errs = append(errs, fmt.Errorf("runs.max_concurrent is %d, want more than 0", c.Max))
	}
	for name, limit := range c.PerProvider {
		if limit < 0 {
			errs = append(errs, fmt.Errorf("provider %s may have %d runs at once, want 0 (no limit of its own) or more", name, limit))
		}
	}
	return errors.Join(errs...)
}

// Need is what a run must hold while it works.
type Need struct {
	// Provider whose limit counts; "" = none.
	Provider string
	// Lease is the conversation that the run resumes; "" = none.
	Lease string
	// Interrupts: who holds the lease is asked to end.
	Interrupts bool
}

// Granted tells a ticket's owner that it has all that it asked for.
type Granted struct{ Ticket *Ticket }

// ControlMessage implements kernel.Control.
func (Granted) ControlMessage() {}

// Wanted tells the owner of a ticket that holds a lease that an interrupt of another session waits for it.
type Wanted struct{ Ticket *Ticket }

// ControlMessage implements kernel.Control.
func (Wanted) ControlMessage() {}

// Slots hands tickets out. Safe for concurrent use; nothing blocks.
type Slots struct {
	sys *kernel.System
	cfg Config

	mu sync.Mutex
	// used slots, and those of each provider.
	used   int
	usedBy map[string]int
	// waiting for a slot, by provider, each in the order of their numbers.
	waiting map[string]*list.List
	leases  map[string]*lease
	// lineages: a token's text → the lineage that it continues.
	lineages map[string]string
	next     uint64
}

// lease is a conversation that is in use.
type lease struct {
	holder  *Ticket
	waiting list.List
}

// New makes the slots of a process.
func New(sys *kernel.System, cfg Config) *Slots {
	return &Slots{
		sys: sys, cfg: cfg, usedBy: make(map[string]int), waiting: make(map[string]*list.List),
		leases: make(map[string]*lease), lineages: make(map[string]string),
	}
}

// Ticket is the place of one run: it waits, is granted, is adopted by whoever works under it, and is released.
type Ticket struct {
	slots *Slots
	owner *actor.PID
	need  Need
	// lease is need.Lease with its lineage followed.
	lease  string
	number uint64
	state  ticketState
	place  *list.Element
}

type ticketState int

const (
	waitsForLease ticketState = iota
	waitsForSlot
	granted
	adopted
	released
)

// Try gives a granted ticket if all that is needed is free now and nobody waits for it; else nil.
func (s *Slots) Try(need Need, owner *actor.PID) *Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.free(need) {
		return nil
	}
	t := s.ticket(need, owner)
	if t.lease != "" {
		s.leases[t.lease] = &lease{holder: t}
	}
	s.take(t)
	return t
}

// Free says whether Try would give a ticket now.
func (s *Slots) Free(need Need) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free(need)
}

// free needs to look at nobody who waits: whatever they could have was given to them when it came free.
func (s *Slots) free(need Need) bool {
	return s.leases[s.lineage(need.Lease)] == nil && s.room(need.Provider)
}

// Ask gives a ticket that is granted when its turn comes: its owner is told by Granted.
func (s *Slots) Ask(need Need, owner *actor.PID) *Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.ticket(need, owner)
	s.enqueue(t)
	s.dispatch()
	return t
}

// Continue notes that a resume token goes on with a lineage, so that a run of another session that is given the token waits for
// the lineage's lease. A run that was given the token before holds that lease from now on. Forget it when the token is replaced.
func (s *Slots) Continue(token, lineage string) {
	if token == lineage || token == "" || lineage == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lineages, token)
	first := s.lineage(lineage)
	if first == token {
		return // the lineage goes on with the token
	}
	s.lineages[token] = lineage
	if l := s.leases[token]; l != nil && s.leases[first] == nil {
		delete(s.leases, token)
		s.leases[first] = l
		l.holder.lease = first
		for e := l.waiting.Front(); e != nil; e = e.Next() {
			value(e).lease = first
		}
	}
}

// Forget drops what Continue noted of a token.
func (s *Slots) Forget(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lineages, token)
}

// lineage follows a conversation to the first token of its lineage.
func (s *Slots) lineage(conversation string) string {
	for range len(s.lineages) { // Continue keeps the notes free of circles; this keeps a mistake from hanging
		first, ok := s.lineages[conversation]
		if !ok {
			break
		}
		conversation = first
	}
	return conversation
}

// Stats is what goes on.
type Stats struct {
	// Used slots; Waiting for one; Leases that are held; WaitingForLease.
	Used, Waiting, Leases, WaitingForLease int
}

// Stats tells what goes on now.
func (s *Slots) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Used: s.used, Leases: len(s.leases)}
	for _, queue := range s.waiting {
		stats.Waiting += queue.Len()
	}
	for _, l := range s.leases {
		stats.WaitingForLease += l.waiting.Len()
	}
	return stats
}
