package slots

import (
	"container/list"

	"github.com/asynkron/protoactor-go/actor"
)

func (s *Slots) ticket(need Need, owner *actor.PID) *Ticket {
	s.next++
	return &Ticket{slots: s, owner: owner, need: need, lease: s.lineage(need.Lease), number: s.next}
}

// enqueue puts a ticket where it must wait first.
func (s *Slots) enqueue(t *Ticket) {
	if t.lease == "" {
		s.waitForSlot(t)
		return
	}
	l := s.leases[t.lease]
	if l == nil {
		s.leases[t.lease] = &lease{holder: t}
		s.waitForSlot(t)
		return
	}
	t.state, t.place = waitsForLease, inOrder(&l.waiting, t)
	if t.need.Interrupts {
		s.want(l.holder)
	}
}

// want tells who works under a lease that an interrupt waits for it. One that waits for its slot is told when it has it.
func (s *Slots) want(holder *Ticket) {
	if holder.state == granted || holder.state == adopted {
		s.sys.Tell(holder.owner, Wanted{Ticket: holder})
	}
}

func (s *Slots) waitForSlot(t *Ticket) {
	queue := s.waiting[t.need.Provider]
	if queue == nil {
		queue = list.New()
		s.waiting[t.need.Provider] = queue
	}
	t.state, t.place = waitsForSlot, inOrder(queue, t)
}

// inOrder puts a ticket before those that were asked for later: one that waited for its lease, or whose need has changed, keeps
// its place.
func inOrder(queue *list.List, t *Ticket) *list.Element {
	at := queue.Back()
	for at != nil && number(at) > t.number {
		at = at.Prev()
	}
	if at == nil {
		return queue.PushFront(t)
	}
	return queue.InsertAfter(t, at)
}

func number(e *list.Element) uint64 { return value(e).number }

func value(e *list.Element) *Ticket {
	t, _ := e.Value.(*Ticket)
	return t
}

// room says whether one more run of the provider may go on.
func (s *Slots) room(provider string) bool {
	limit := s.cfg.PerProvider[provider]
	return s.used < s.cfg.Max && (limit == 0 || s.usedBy[provider] < limit)
}

// dispatch grants what can be granted, the oldest first. A provider at its limit holds up nobody but those who wait for it.
func (s *Slots) dispatch() {
	for {
		var oldest *list.Element
		for provider, queue := range s.waiting {
			if first := queue.Front(); first != nil && s.room(provider) && (oldest == nil || number(first) < number(oldest)) {
				oldest = first
			}
		}
		if oldest == nil {
			return
		}
		t := value(oldest)
		s.leaveQueue(t)
		s.take(t)
		s.sys.Tell(t.owner, Granted{Ticket: t})
		s.remind(t)
	}
}

// remind tells a ticket that an interrupt waited for its lease already before it was granted.
func (s *Slots) remind(t *Ticket) {
	if s.wanted(t) {
		s.want(t)
	}
}

func (s *Slots) wanted(t *Ticket) bool {
	l := s.leases[t.lease]
	if l == nil || l.holder != t {
		return false
	}
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		if value(e).need.Interrupts {
			return true
		}
	}
	return false
}

func (s *Slots) take(t *Ticket) {
	t.state = granted
	s.used++
	if t.need.Provider != "" {
		s.usedBy[t.need.Provider]++
	}
}

func (s *Slots) leaveQueue(t *Ticket) {
	queue := s.waiting[t.need.Provider]
	queue.Remove(t.place)
	t.place = nil
	if queue.Len() == 0 {
		delete(s.waiting, t.need.Provider)
	}
}

// end gives everything back, which others may get.
func (s *Slots) end(t *Ticket) {
	s.leave(t)
	s.dispatch()
}

// leave gives back what the ticket holds, the slot before the lease, or takes it out of its queue. The slot is not passed on yet.
func (s *Slots) leave(t *Ticket) {
	was := t.state
	t.state = released
	switch was {
	case released:
		return
	case waitsForLease:
		s.leases[t.lease].waiting.Remove(t.place)
		return
	case waitsForSlot:
		s.leaveQueue(t)
	case granted, adopted:
		s.giveBack(t)
	}
	s.passLease(t)
}

func (s *Slots) giveBack(t *Ticket) {
	s.used--
	if name := t.need.Provider; name != "" {
		if s.usedBy[name]--; s.usedBy[name] == 0 {
			delete(s.usedBy, name)
		}
	}
}

// passLease gives the lease to who waits for it first.
func (s *Slots) passLease(t *Ticket) {
	if t.lease == "" {
		return
	}
	l := s.leases[t.lease]
	first := l.waiting.Front()
	if first == nil {
		delete(s.leases, t.lease)
		return
	}
	next := value(first)
	l.waiting.Remove(first)
	l.holder = next
	s.waitForSlot(next)
}

// Granted says whether the ticket has all that it asked for and nobody has begun to work under it.
func (t *Ticket) Granted() bool {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	return t.state == granted
}

// Wanted says whether an interrupt of another session waits for the lease that the ticket holds, for an owner that could not do
// anything about it when it was told.
func (t *Ticket) Wanted() bool {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	return t.slots.wanted(t)
}

// Change asks for something else under the same ticket. It keeps its place; what is granted already and not needed is given back.
// It says whether the ticket is granted as it stands.
func (t *Ticket) Change(need Need) (stillGranted bool) {
	s := t.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.state == adopted || t.state == released {
		return false
	}
	if s.lineage(need.Lease) != t.lease {
		s.leave(t)
		t.need, t.lease = need, s.lineage(need.Lease)
		s.enqueue(t)
		s.dispatch() // only now: the slot that it gave back may be its own again
		return false
	}
	if t.state == waitsForLease {
		urgent := need.Interrupts && !t.need.Interrupts
		if t.need = need; urgent {
			s.want(s.leases[t.lease].holder)
		}
		return false
	}
	if need.Provider == t.need.Provider {
		t.need = need
		return t.state == granted
	}
	if t.state == granted {
		s.giveBack(t)
	} else {
		s.leaveQueue(t)
	}
	t.need = need
	s.waitForSlot(t)
	s.dispatch()
	return false
}

// Adopt is said by whoever works under a granted ticket: from now on only Release ends it. False: it was canceled meanwhile, and
// the work must not begin.
func (t *Ticket) Adopt() bool {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	if t.state != granted {
		return false
	}
	t.state = adopted
	return true
}

// Release gives everything back, when the work under the ticket has really ended. A second time it does nothing.
func (t *Ticket) Release() {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	t.slots.end(t)
}

// Cancel ends a ticket that nobody has adopted: it leaves its queue, or gives back what it was granted. It says whether it did:
// false means that work goes on under it, or that it has ended.
func (t *Ticket) Cancel() bool {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	if t.state == adopted || t.state == released {
		return false
	}
	t.slots.end(t)
	return true
}
