// Package queue decides which turn of a session runs next, and what a new one does to the active run. Pure: a rule (Decide,
// Fallback, Full) says where a turn goes, the fold (Put, Return, Take, Remove) carries a recorded placement out, so that replay
// asks no rule again.
//
// It knows no run but whether one is active and may be steered; slots and leases are not its business.
package queue

import (
	"slices"
	"time"

	"github.com/correx/correx-actors/messages"
)

// Queue is what waits in one session. It is immutable: every change gives a new one.
type Queue struct {
	// Waiting entries, next first. Each becomes one run.
	Waiting []Entry
	// Offered turns wait for the active run's word, in the order of their offers.
	Offered []*messages.Turn
}

// Entry is one or more merged turns that one run will answer; the first one leads and gives the run its id.
type Entry struct {
	Turns []*messages.Turn
	// Joined is when the last followup joined, from which its merge window is counted; zero for entries of other modes.
	Joined time.Time
}

// Lead is the turn that leads the entry.
func (e Entry) Lead() *messages.Turn { return e.Turns[0] }

// Len counts the turns that wait, each merged part by itself, the offered ones not.
func (q Queue) Len() int {
	n := 0
	for _, e := range q.Waiting {
		n += len(e.Turns)
	}
	return n
}

// Empty says whether nothing waits and nothing is offered.
func (q Queue) Empty() bool { return len(q.Waiting) == 0 && len(q.Offered) == 0 }

// Find looks for a turn that has not started: where its entry stands, or offered.
func (q Queue) Find(match func(*messages.Turn) bool) (turn *messages.Turn, entry int, offered bool) {
	for i, e := range q.Waiting {
		for _, t := range e.Turns {
			if match(t) {
				return t, i, false
			}
		}
	}
	for _, t := range q.Offered {
		if match(t) {
			return t, 0, true
		}
	}
	return nil, 0, false
}

// Before counts the turns in front of an entry.
func (q Queue) Before(entry int) int {
	n := 0
	for _, e := range q.Waiting[:entry] {
		n += len(e.Turns)
	}
	return n
}

// Turns lists all turns that wait, entry by entry, and then the offered ones.
func (q Queue) Turns() []*messages.Turn {
	var all []*messages.Turn
	for _, e := range q.Waiting {
		all = append(all, e.Turns...)
	}
	return append(all, q.Offered...)
}

// Put carries a placement out. A merge into an entry that is not there becomes an entry of its own: replay refuses nothing.
func (q Queue) Put(turn *messages.Turn, placement Place, into messages.TurnID, at time.Time) Queue {
	alone := Entry{Turns: []*messages.Turn{turn}}
	if Family(turn) == messages.QueueFollowup {
		alone.Joined = at
	}
	switch placement {
	case PlaceFront:
		q.Waiting = slices.Insert(slices.Clone(q.Waiting), 0, alone)
		return q
	case PlaceOffered:
		q.Offered = append(slices.Clone(q.Offered), turn)
		return q
	case PlaceMerged:
		for i, e := range q.Waiting {
			if e.Lead().GetTurnId() == into {
				q.Waiting = slices.Clone(q.Waiting)
				q.Waiting[i] = Entry{Turns: append(slices.Clone(e.Turns), turn), Joined: alone.Joined}
				return q
			}
		}
	case PlaceBack:
	}
	q.Waiting = append(slices.Clone(q.Waiting), alone)
	return q
}

// Return takes an offered turn back into the queue; reason is why it did not steer.
func (q Queue) Return(id messages.TurnID, placement Place, into messages.TurnID, reason string, at time.Time) Queue {
	turn, _, offered := q.Find(func(t *messages.Turn) bool { return t.GetTurnId() == id })
	if !offered {
		return q
	}
	if reason != "" {
		turn = messages.WithReason(turn, reason)
	}
	return q.Remove(id).Put(turn, placement, into, at)
}

// Remove takes a turn out, wherever it is. If it led its entry, the next part leads, and the entry keeps its place.
func (q Queue) Remove(id messages.TurnID) Queue {
	gone := func(t *messages.Turn) bool { return t.GetTurnId() == id }
	waiting := make([]Entry, 0, len(q.Waiting))
	for _, e := range q.Waiting {
		if slices.ContainsFunc(e.Turns, gone) {
			e.Turns = slices.DeleteFunc(slices.Clone(e.Turns), gone)
		}
		if len(e.Turns) > 0 {
			waiting = append(waiting, e)
		}
	}
	q.Waiting = waiting
	q.Offered = slices.DeleteFunc(slices.Clone(q.Offered), gone)
	return q
}

// Take removes the turns that a run takes and gives them in the order of ids.
func (q Queue) Take(ids []string) (Queue, []*messages.Turn) {
	var taken []*messages.Turn
	for _, id := range ids {
		turn, _, _ := q.Find(func(t *messages.Turn) bool { return t.GetTurnId() == id })
		if turn != nil {
			taken = append(taken, turn)
			q = q.Remove(id)
		}
	}
	return q, taken
}
