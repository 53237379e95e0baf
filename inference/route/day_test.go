package route_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
)

// weather is a provider that has outages. In one it fails in the outage's own way, else it answers.
type weather struct {
	name string
	mu   sync.Mutex
	rng  *rand.Rand
	// until is when the current outage ends; kind is how it fails; late: after it showed text.
	until time.Time
	kind  inference.Kind
	late  bool
}

var errStopped = errors.New("the user stopped it")

// Name implements inference.Provider.
func (w *weather) Name() string { return w.name }

// Infer implements inference.Provider.
func (w *weather) Infer(ctx context.Context, _ inference.Request, report func(inference.Event) error) (inference.Completion, error) {
	kind, late, after := w.now()
	if err := pause(ctx, 100*time.Millisecond); err != nil {
		return inference.Completion{}, inference.Canceled(ctx, w.name)
	}
	failure := &inference.Error{Kind: kind, Provider: w.name, RetryAfter: after}
	if kind != "" && !late {
		return inference.Completion{}, failure
	}
	if err := report(inference.Delta{Text: "text"}); err != nil {
		return inference.Completion{}, err
	}
	if err := pause(ctx, 2*time.Second); err != nil {
		return inference.Completion{}, inference.Canceled(ctx, w.name)
	}
	if kind != "" {
		return inference.Completion{}, failure
	}
	return inference.Completion{FinishReason: inference.FinishStop}, nil
}

// now tells how a call goes.
func (w *weather) now() (kind inference.Kind, late bool, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().After(w.until) {
		return "", false, 0
	}
	if w.kind == inference.KindRateLimited {
		after = time.Duration(w.rng.IntN(60)) * time.Second
	}
	return w.kind, w.late, after
}

// day lets outages come and go until end.
func (w *weather) day(end time.Time) {
	kinds := []inference.Kind{
		inference.KindUnavailable, inference.KindOverloaded, inference.KindTimeout, inference.KindTruncated, inference.KindProvider,
		inference.KindRateLimited, inference.KindAuth,
	}
	for {
		w.mu.Lock()
		calm := time.Duration(w.rng.IntN(60)) * time.Minute
		length := time.Duration(w.rng.IntN(1200)) * time.Second
		kind, late := kinds[w.rng.IntN(len(kinds))], w.rng.IntN(3) == 0
		w.mu.Unlock()
		time.Sleep(calm)
		if !time.Now().Add(length).Before(end) {
			return
		}
		w.mu.Lock()
		w.until, w.kind, w.late = time.Now().Add(length), kind, late
		w.mu.Unlock()
		time.Sleep(length)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ledger counts how the runs of a day ended.
type ledger struct {
	mu      sync.Mutex
	begun   int
	ended   map[string]int
	longest time.Duration
	calls   int
}

func (l *ledger) end(how string, took time.Duration, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[how]++
	l.longest = max(l.longest, took)
	l.calls += calls
}

// live makes one run, which its user may stop at any moment.
func live(ctx context.Context, t *testing.T, r *route.Router, model string, l *ledger) {
	begin, calls := time.Now(), 0
	plan, err := r.Plan(ctx, inference.Ask{Model: model, Tokens: 100, Replace: true})
	if err != nil {
		t.Error(err)
		return
	}
	defer plan.Close()
	for {
		switch step := plan.Next().(type) {
		case inference.Wait:
			if pause(ctx, step.For) != nil {
				l.end("stopped", time.Since(begin), calls)
				return
			}
		case inference.Call:
			calls++
			call(ctx, plan, step)
		case inference.Stop:
			how := "answered"
			if step.Err != nil {
				how = string(inference.KindOf(step.Err))
			}
			l.end(how, time.Since(begin), calls)
			return
		}
	}
}

// A day of outages at two providers, with runs that come all the time: every run ends, soon, and when the outages are over the
// breakers close.
func TestDayOfOutagesEndsEveryRunAndClosesTheBreakers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) { oneDay(t, seed) })
	}
}

func oneDay(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test wants to be repeated
	big := &weather{name: "big", rng: rand.New(rand.NewPCG(seed, 2))}
	small := &weather{name: "small", rng: rand.New(rand.NewPCG(seed, 3))}
	r := router(t,
		route.Provider{Backend: big, Models: models("gpt"), Fallback: []string{"small"}, Limits: route.Limits{RequestsPerMinute: 60}},
		route.Provider{Backend: small, Models: models("llama"), Fallback: []string{"big"}, Limits: route.Limits{TokensPerMinute: 20_000}})
	end := time.Now().Add(24 * time.Hour)
	l := &ledger{ended: make(map[string]int)}
	var runs sync.WaitGroup
	runs.Go(func() { big.day(end) })
	runs.Go(func() { small.day(end) })
	begin := func(ctx context.Context, model string) {
		l.begun++
		runs.Go(func() { live(ctx, t, r, model, l) })
	}
	opened := make(map[string]int)
	for time.Now().Before(end) {
		ctx := t.Context()
		if rng.IntN(10) == 0 {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			time.AfterFunc(time.Duration(rng.IntN(5000))*time.Millisecond, func() { cancel(errStopped) })
		}
		begin(ctx, []string{"gpt", "llama"}[rng.IntN(2)])
		time.Sleep(time.Duration(rng.IntN(40)) * time.Second)
		for _, h := range r.Health() {
			if h.State != route.StateClosed {
				opened[h.Provider]++
			}
		}
	}
	time.Sleep(time.Minute) // the last outage is over: a calm minute, then one run each
	begin(t.Context(), "gpt")
	begin(t.Context(), "llama")
	runs.Wait()

	total := 0
	for _, n := range l.ended {
		total += n
	}
	t.Logf("seed %d: %d runs, %d calls, longest %s, ended %v, seen paused %v", seed, l.begun, l.calls, l.longest, l.ended, opened)
	require.Equal(t, l.begun, total, "every run ends, once")
	require.Greater(t, l.ended["answered"], l.begun/2)
	require.NotEmpty(t, l.ended["stopped"])
	require.Less(t, l.longest, 5*time.Minute)
	require.NotEmpty(t, opened["big"])
	require.NotEmpty(t, opened["small"])
	for _, h := range r.Health() {
		require.Equal(t, route.StateClosed, h.State, h.Provider)
	}
}
