package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

// probing is how long others stay away while one call tries a provider that was paused. It ends with that call's first text,
// of which no time is known.
const probing = time.Second

// Breaker is when a provider is paused.
type Breaker struct {
	// Failures in a row that pause it.
	Failures int
	// Pause is how long; then one call tries it.
	Pause time.Duration
}

// backend is a provider with what the whole process shares of it. Safe for concurrent use.
type backend struct {
	inference.Provider
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	// opens is when the breaker lets a call through again, in nanoseconds; gobreaker tells only that it does not now.
	opens atomic.Int64
	// calls in progress, and how many of them may be those of runs that fell back to it; 0 = any number.
	calls      atomic.Int64
	concurrent int64
	// requests and tokens are nil without such a limit.
	requests, tokens *rate.Limiter
	// holds are the models that it asked to be left alone with.
	holds *holds
}

func newBackend(p Provider, breaker Breaker, log *slog.Logger) *backend {
	b := &backend{
		Provider: p.Backend, concurrent: int64(p.Limits.Concurrent),
		holds: &holds{provider: p.Name, log: log, byModel: make(map[string]*hold)},
	}
	if n := p.Limits.RequestsPerMinute; n > 0 {
		// A tenth at once: providers count shorter windows than their minute.
		b.requests = rate.NewLimiter(perMinute(n), max(n/10, 1))
	}
	if n := p.Limits.TokensPerMinute; n > 0 {
		b.tokens = rate.NewLimiter(perMinute(n), n)
	}
	// No Interval: at its border gobreaker forgets the calls in progress, and an answer may well take longer than any window.
	// A success in between ends a row of failures.
	b.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        p.Name,
		MaxRequests: 1,
		Timeout:     breaker.Pause,
		ReadyToTrip: func(n gobreaker.Counts) bool { return int64(n.ConsecutiveFailures) >= int64(breaker.Failures) },
		IsExcluded: func(err error) bool {
			var e *inference.Error
			return errors.As(err, &e) && !counted(e)
		},
		OnStateChange: func(name string, from, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.opens.Store(time.Now().Add(breaker.Pause).UnixNano())
			}
			log.LogAttrs(context.Background(), slog.LevelWarn, "provider's breaker changed", slog.String(messages.AttrProvider, name),
				slog.String(messages.AttrState, to.String()), slog.String(messages.AttrReason, "it was "+from.String()))
		},
	})
	return b
}

func perMinute(n int) rate.Limit { return rate.Limit(float64(n) / time.Minute.Seconds()) }

// paused tells for how long the breaker refuses calls; 0 = it does not.
func (b *backend) paused(now time.Time) time.Duration {
	if b.breaker.State() != gobreaker.StateOpen {
		return 0
	}
	return max(time.Unix(0, b.opens.Load()).Sub(now), time.Millisecond)
}

// full says whether it has all the calls that it may have at once.
func (b *backend) full() bool { return b.concurrent > 0 && b.calls.Load() >= b.concurrent }

// enter counts a call in; false = there is no room. A run whose slot is of this provider has its room already: slots are given
// out by the same limit.
func (b *backend) enter(slotted bool) bool {
	if n := b.calls.Add(1); slotted || b.concurrent == 0 || n <= b.concurrent {
		return true
	}
	b.leave()
	return false
}

func (b *backend) leave() { b.calls.Add(-1) }

// place is what one call has reserved within a provider's limits.
type place struct {
	reserved []*rate.Reservation
	// due is when the call may be made, and what it waits for until then.
	due time.Time
	why string
	// tokens that were reserved.
	tokens int
}

// reserve takes a place for a call.
func (b *backend) reserve(now time.Time, tokens int) *place {
	p := &place{due: now}
	take := func(limiter *rate.Limiter, n int, what string) {
		if limiter == nil {
			return
		}
		got := limiter.ReserveN(now, n)
		p.reserved = append(p.reserved, got)
		if due := now.Add(got.DelayFrom(now)); due.After(p.due) {
			p.due, p.why = due, fmt.Sprintf("its limit of %.0f %s a minute is reached", float64(limiter.Limit())*time.Minute.Seconds(), what)
		}
	}
	take(b.requests, 1, "requests")
	if b.tokens != nil {
		// A prompt beyond the limit itself waits for the whole minute, not for ever.
		p.tokens = min(max(tokens, 1), b.tokens.Burst())
		take(b.tokens, p.tokens, "tokens")
	}
	return p
}

// giveBack undoes a reservation that no call used. In reverse, as they were taken.
func (p *place) giveBack(now time.Time) {
	for i := len(p.reserved) - 1; i >= 0; i-- {
		p.reserved[i].CancelAt(now)
	}
}

// charge takes from the limit on tokens what a call used beyond its reservation. Nobody waits for it but the next call.
func (b *backend) charge(now time.Time, used inference.Usage, reserved int) {
	if b.tokens == nil || !used.Known {
		return
	}
	burst := uint64(b.tokens.Burst())                                  //nolint:gosec // positive
	total, had := used.InputTokens+used.OutputTokens, uint64(reserved) //nolint:gosec // not negative
	if total > had {
		b.tokens.ReserveN(now, int(min(total-had, burst))) //nolint:gosec // at most the burst
	}
}
