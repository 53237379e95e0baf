package slots_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/slots"
)

// worker works under every ticket that it is granted, in a goroutine of its own.
type worker struct{ work func(*slots.Ticket) }

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(slots.Granted); ok {
		go w.work(m.Ticket)
	}
}

func TestManyGoroutinesNeverExceedTheLimits(t *testing.T) {
	t.Parallel()
	const (
		limit, limitOfOne = 8, 3
		goroutines, asks  = 32, 200
	)
	p := newProcess(t, slots.Config{Max: limit, PerProvider: map[string]int{"one": limitOfOne}})
	var (
		all, one atomic.Int64
		talk     sync.Mutex
		open     sync.WaitGroup // tickets that were asked for
	)
	work := func(need slots.Need, ticket *slots.Ticket) {
		defer ticket.Release()
		if all.Add(1) > limit {
			t.Error("more than all slots")
		}
		defer all.Add(-1)
		if need.Provider == "one" {
			if one.Add(1) > limitOfOne {
				t.Error("more than the provider's slots")
			}
			defer one.Add(-1)
		}
		if need.Lease != "" {
			if !talk.TryLock() {
				t.Error("two have the lease")
				return
			}
			defer talk.Unlock()
		}
	}
	var needs sync.Map // ticket → need
	pid, err := p.sys.Spawn(p.sys.Props(func() actor.Actor {
		return &worker{work: func(ticket *slots.Ticket) {
			for ; ; runtime.Gosched() {
				if need, ok := needs.Load(ticket); ok { // Ask may tell before it returns
					if ticket.Adopt() {
						work(need.(slots.Need), ticket)
						open.Done()
					}
					return
				}
			}
		}}
	}, kernel.PropsOptions{MailboxLimit: -1}))
	require.NoError(t, err)
	var askers sync.WaitGroup
	for seed := range uint64(goroutines) {
		askers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable on purpose
			for range asks {
				need := slots.Need{Provider: []string{"", "one", "two"}[r.IntN(3)], Lease: []string{"", "", "talk"}[r.IntN(3)]}
				if r.IntN(2) == 0 {
					if ticket := p.Try(need, pid); ticket != nil && ticket.Adopt() {
						work(need, ticket)
					}
					continue
				}
				open.Add(1)
				ticket := p.Ask(need, pid)
				if r.IntN(4) == 0 && ticket.Cancel() {
					open.Done() // its owner may have been told already, and finds that it must not begin
				}
				needs.Store(ticket, need)
			}
		})
	}
	askers.Wait()
	open.Wait()
	p.empty()
}

func BenchmarkTryAdoptRelease(b *testing.B) {
	for _, waiters := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			p := newProcess(b, slots.Config{Max: 64, PerProvider: map[string]int{"full": 1}})
			p.try(slots.Need{Provider: "full"})
			for range waiters {
				p.ask(slots.Need{Provider: "full"})
			}
			b.ReportAllocs()
			for b.Loop() {
				ticket := p.try(slots.Need{Provider: "free"})
				ticket.Adopt()
				ticket.Release()
			}
		})
	}
}

// BenchmarkAskGrantRelease hands the one slot through a queue that stays as long as it is.
func BenchmarkAskGrantRelease(b *testing.B) {
	for _, waiters := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			p := newProcess(b, slots.Config{Max: 1})
			queue := make([]*slots.Ticket, 0, waiters+1)
			for range waiters {
				queue = append(queue, p.ask(slots.Need{}))
			}
			b.ReportAllocs()
			for b.Loop() {
				queue = append(queue, p.ask(slots.Need{}))
				queue[0].Release()
				queue = queue[1:]
			}
		})
	}
}
