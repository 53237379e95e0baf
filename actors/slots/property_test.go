package slots_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/actors/slots"
)

// twin is the same rules by plain slices that are searched from the start each time.
type twin struct {
	cfg      slots.Config
	tickets  []*twinTicket // in the order in which they were asked for
	lineages map[string]string
	told     []any
}

type twinTicket struct {
	real  *slots.Ticket
	need  slots.Need
	lease string
	// lock: it holds its lease, or needs none.
	lock, slot, adopted, ended bool
}

func (w *twin) find(match func(*twinTicket) bool) *twinTicket {
	for _, t := range w.tickets {
		if !t.ended && match(t) {
			return t
		}
	}
	return nil
}

func (w *twin) count(match func(*twinTicket) bool) (n int) {
	for _, t := range w.tickets {
		if !t.ended && match(t) {
			n++
		}
	}
	return n
}

func (w *twin) first(token string) string {
	for w.lineages[token] != "" {
		token = w.lineages[token]
	}
	return token
}

func (w *twin) holder(lease string) *twinTicket {
	return w.find(func(t *twinTicket) bool { return lease != "" && t.lease == lease && t.lock })
}

func (w *twin) room(provider string) bool {
	limit := w.cfg.PerProvider[provider]
	if limit == 0 {
		limit = w.cfg.Max
	}
	return w.count(func(t *twinTicket) bool { return t.slot }) < w.cfg.Max &&
		(provider == "" || w.count(func(t *twinTicket) bool { return t.slot && t.need.Provider == provider }) < limit)
}

func (w *twin) free(need slots.Need) bool {
	first := w.find(func(t *twinTicket) bool { return t.lock && !t.slot && t.need.Provider == need.Provider })
	return first == nil && w.room(need.Provider) && w.holder(w.first(need.Lease)) == nil
}

// serve gives out what is free, the oldest first: leases, then slots.
func (w *twin) serve() {
	for _, t := range w.tickets {
		if !t.ended && !t.lock && w.holder(t.lease) == nil {
			t.lock = true
		}
	}
	for {
		t := w.find(func(t *twinTicket) bool { return t.lock && !t.slot && w.room(t.need.Provider) })
		if t == nil {
			return
		}
		t.slot = true
		w.told = append(w.told, slots.Granted{Ticket: t.real})
		if w.wanted(t) {
			w.told = append(w.told, slots.Wanted{Ticket: t.real})
		}
	}
}

func (w *twin) wanted(t *twinTicket) bool {
	return !t.ended && t.lock && w.find(func(o *twinTicket) bool {
		return !o.lock && o.lease == t.lease && o.need.Interrupts
	}) != nil
}

// waits notes that t has begun to wait for its lease, or has become urgent.
func (w *twin) waits(t *twinTicket) {
	if h := w.holder(t.lease); !t.lock && t.need.Interrupts && h != nil && h.slot {
		w.told = append(w.told, slots.Wanted{Ticket: h.real})
	}
}

func (w *twin) add(ticket *slots.Ticket, need slots.Need) *twinTicket {
	t := &twinTicket{real: ticket, need: need, lease: w.first(need.Lease)}
	w.lockIfFree(t)
	w.tickets = append(w.tickets, t)
	return t
}

func (w *twin) lockIfFree(t *twinTicket) { t.lock = t.lease == "" || w.holder(t.lease) == nil }

func (w *twin) change(t *twinTicket, need slots.Need) (stillGranted bool) {
	if t.ended || t.adopted {
		return false
	}
	urgent := need.Interrupts && !t.need.Interrupts
	before := t.need
	t.need = need
	switch lease := w.first(need.Lease); {
	case lease != t.lease:
		t.lock, t.slot = false, false
		old := t.lease
		t.lease = lease
		if next := w.find(func(o *twinTicket) bool { return o.lease == old && old != "" }); next != nil && w.holder(old) == nil {
			next.lock = true
		}
		w.lockIfFree(t)
		w.waits(t)
	case !t.lock:
		if urgent {
			w.waits(t)
		}
		return false
	case need.Provider == before.Provider:
		return t.slot
	default:
		t.slot = false
	}
	w.serve()
	return false
}

func (w *twin) link(token, lineage string) {
	if token == lineage {
		return
	}
	delete(w.lineages, token)
	first := w.first(lineage)
	if first == token {
		return
	}
	w.lineages[token] = lineage
	if w.holder(token) == nil || w.holder(first) != nil {
		return
	}
	for _, t := range w.tickets {
		if !t.ended && t.lease == token {
			t.lease = first
		}
	}
}

// TestSlotsAreTheirPlainTwin compares both after each of many random steps, and what their owners were told.
func TestSlotsAreTheirPlainTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		cfg := slots.Config{Max: rapid.IntRange(1, 4).Draw(rt, "max"), PerProvider: map[string]int{
			"a": rapid.IntRange(0, 2).Draw(rt, "a"), "b": rapid.IntRange(0, 5).Draw(rt, "b"),
		}}
		p, w := newProcess(t, cfg), &twin{cfg: cfg, lineages: make(map[string]string)}
		defer p.stop()
		tokens := rapid.SampledFrom([]string{"t1", "t2", "t3"})
		needs := rapid.Custom(func(rt *rapid.T) slots.Need {
			return slots.Need{
				Provider:   rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "provider"),
				Lease:      rapid.SampledFrom([]string{"", "", "t1", "t2", "t3"}).Draw(rt, "lease"),
				Interrupts: rapid.Bool().Draw(rt, "interrupts"),
			}
		})
		pick := func() *twinTicket {
			if len(w.tickets) == 0 {
				rt.Skip("no ticket")
			}
			return rapid.SampledFrom(w.tickets).Draw(rt, "ticket")
		}
		end := func(ticket *twinTicket) {
			ticket.ended = true
			w.serve()
		}
		rt.Repeat(map[string]func(*rapid.T){
			"try": func(rt *rapid.T) {
				need := needs.Draw(rt, "need")
				free := w.free(need)
				require.Equal(rt, free, p.Free(need))
				ticket := p.try(need)
				require.Equal(rt, free, ticket != nil)
				if free {
					w.add(ticket, need).slot = true
				}
			},
			"ask": func(rt *rapid.T) {
				need := needs.Draw(rt, "need")
				w.waits(w.add(p.ask(need), need))
				w.serve()
			},
			"change": func(rt *rapid.T) {
				ticket, need := pick(), needs.Draw(rt, "need")
				require.Equal(rt, w.change(ticket, need), ticket.real.Change(need))
			},
			"adopt": func(rt *rapid.T) {
				ticket := pick()
				can := ticket.slot && !ticket.adopted && !ticket.ended
				require.Equal(rt, can, ticket.real.Adopt())
				ticket.adopted = ticket.adopted || can
			},
			"cancel": func(rt *rapid.T) {
				ticket := pick()
				can := !ticket.adopted && !ticket.ended
				require.Equal(rt, can, ticket.real.Cancel())
				if can {
					end(ticket)
				}
			},
			"release": func(*rapid.T) {
				ticket := pick()
				ticket.real.Release()
				end(ticket)
			},
			"continue": func(rt *rapid.T) {
				token, lineage := tokens.Draw(rt, "token"), tokens.Draw(rt, "lineage")
				p.Continue(token, lineage)
				w.link(token, lineage)
			},
			"forget": func(rt *rapid.T) {
				token := tokens.Draw(rt, "token")
				p.Forget(token)
				delete(w.lineages, token)
			},
			"": func(rt *rapid.T) {
				require.Equal(rt, w.take(), p.told())
				require.Equal(rt, w.stats(), p.Stats())
				for _, ticket := range w.tickets {
					require.Equal(rt, ticket.slot && !ticket.adopted && !ticket.ended, ticket.real.Granted())
					require.Equal(rt, w.wanted(ticket), ticket.real.Wanted())
				}
				w.keepsItsPromises(rt)
			},
		})
		for _, ticket := range rapid.Permutation(w.tickets).Draw(rt, "order") {
			ticket.real.Release()
		}
		require.Equal(rt, slots.Stats{}, p.Stats())
	})
}

func (w *twin) take() []any {
	told := w.told
	w.told = nil
	return told
}

func (w *twin) stats() slots.Stats {
	leases := make(map[string]bool)
	for _, t := range w.tickets {
		if !t.ended && t.lease != "" {
			leases[t.lease] = true
		}
	}
	return slots.Stats{
		Used:            w.count(func(t *twinTicket) bool { return t.slot }),
		Waiting:         w.count(func(t *twinTicket) bool { return t.lock && !t.slot }),
		Leases:          len(leases),
		WaitingForLease: w.count(func(t *twinTicket) bool { return !t.lock }),
	}
}

// keepsItsPromises holds the twin itself to what slots are for.
func (w *twin) keepsItsPromises(rt *rapid.T) {
	require.LessOrEqual(rt, w.stats().Used, w.cfg.Max)
	for provider, limit := range w.cfg.PerProvider {
		used := w.count(func(t *twinTicket) bool { return t.slot && t.need.Provider == provider })
		require.True(rt, limit == 0 || used <= limit, provider)
	}
	for i, t := range w.tickets {
		if t.ended {
			continue
		}
		require.False(rt, !t.lock && t.slot, "who waits for a lease holds no slot")
		require.False(rt, t.lock && !t.slot && w.room(t.need.Provider), "nobody waits for what is free")
		require.False(rt, slices.ContainsFunc(w.tickets[i+1:], func(o *twinTicket) bool {
			return !o.ended && o.lock && t.lock && t.lease != "" && o.lease == t.lease
		}), "one holder of each lineage")
	}
}
