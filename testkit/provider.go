package testkit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/correx/correx-actors/inference"
)

// patience is how long the parts of this package wait for what a test expects. In a synctest bubble it costs nothing.
const patience = 5 * time.Second

// ScriptedProvider is an inference.Provider that does what its scripts say, one script for each call, and remembers the calls.
// A call without a script fails the test when it ends, unless Otherwise gave one for all.
type ScriptedProvider struct {
	t    testing.TB
	name string

	mu         sync.Mutex
	scripts    [][]Step
	otherwise  []Step
	unexpected int
	calls      []*Call
	canceled   int           // how many canceled calls ExpectCanceled has given
	changed    chan struct{} // closed and replaced whenever a call begins or ends
}

var _ inference.Provider = (*ScriptedProvider)(nil)

// Call is one call of a provider.
type Call struct {
	// Number of the call, from 1.
	Number  int
	Request inference.Request
	// Started and Ended are by the clock, or the bubble's; Ended is zero while the call runs.
	Started time.Time
	Ended   time.Time
	// Err is what the call returned.
	Err error
	// Cause is the cause of the call's context if that ended before the call did; else nil.
	Cause error
	// Panicked: the call ended by Panic.
	Panicked bool
}

// Running says whether the call had not returned yet.
func (c Call) Running() bool { return c.Ended.IsZero() }

// NewProvider makes a provider named "scripted"; each argument is the script of one call, as with Call.
func NewProvider(t testing.TB, scripts ...[]Step) *ScriptedProvider {
	t.Helper()
	p := &ScriptedProvider{t: t, name: "scripted", scripts: scripts, changed: make(chan struct{})}
	t.Cleanup(p.reportUnexpected)
	return p
}

// Script is a list of steps, to be given to NewProvider.
func Script(steps ...Step) []Step { return steps }

// Route is a router that sends every model to p.
func Route(p inference.Provider) inference.Router {
	table, err := inference.NewTable(p)
	if err != nil {
		panic(fmt.Sprintf("testkit: route to no provider: %v", err))
	}
	return table
}

// Named changes the provider's name; call it before the first call.
func (p *ScriptedProvider) Named(name string) *ScriptedProvider {
	p.name = name
	return p
}

// Call appends the script of one more call.
func (p *ScriptedProvider) Call(steps ...Step) *ScriptedProvider {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts = append(p.scripts, steps)
	return p
}

// Otherwise gives the script of all calls for which there is none of their own.
func (p *ScriptedProvider) Otherwise(steps ...Step) *ScriptedProvider {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.otherwise = append([]Step{}, steps...)
	return p
}

// Name implements inference.Provider.
func (p *ScriptedProvider) Name() string { return p.name }

// CallsTools implements inference.ToolCaller.
func (*ScriptedProvider) CallsTools() bool { return true }

// Infer implements inference.Provider.
func (p *ScriptedProvider) Infer(
	ctx context.Context, req inference.Request, report func(inference.Event) error,
) (done inference.Completion, err error) {
	call, steps := p.begin(req)
	panicked := true
	defer func() { p.end(ctx, call, err, panicked) }()
	c := &calling{
		provider:   p,
		report:     report,
		completion: inference.Completion{FinishReason: inference.FinishStop, Model: req.Model},
	}
	err = c.play(ctx, steps)
	panicked = false
	if err != nil {
		return inference.Completion{}, err
	}
	return c.completion, nil
}

func (c *calling) play(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		if err := step.run(ctx, c); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return inference.Canceled(ctx, c.provider.Name())
	}
	return c.connect()
}

func (p *ScriptedProvider) begin(req inference.Request) (*Call, []Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := &Call{Number: len(p.calls) + 1, Request: req, Started: time.Now()}
	p.calls = append(p.calls, call)
	p.wake()
	switch {
	case len(p.scripts) > 0:
		steps := p.scripts[0]
		p.scripts = p.scripts[1:]
		return call, steps
	case p.otherwise != nil:
		return call, p.otherwise
	}
	p.unexpected++
	return call, Script(FailWith(&inference.Error{Kind: inference.KindConfig, Message: "the test has no script for this call"}))
}

func (p *ScriptedProvider) end(ctx context.Context, call *Call, err error, panicked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call.Ended, call.Err, call.Panicked = time.Now(), err, panicked
	if ctx.Err() != nil {
		call.Cause = context.Cause(ctx)
	}
	p.wake()
}

// wake tells those who wait that the calls have changed. The caller holds mu.
func (p *ScriptedProvider) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Calls gives all calls so far, in their order.
func (p *ScriptedProvider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list()
}

func (p *ScriptedProvider) list() []Call {
	calls := make([]Call, len(p.calls))
	for i, c := range p.calls {
		calls[i] = *c
	}
	return calls
}

// ExpectCalls waits until n calls have begun and gives them; more than n, or none of them in time, fails the test.
func (p *ScriptedProvider) ExpectCalls(n int) []Call {
	p.t.Helper()
	calls, ok := p.await(func() bool { return len(p.calls) >= n })
	if !ok || len(calls) != n {
		p.t.Fatalf("want %d provider calls, got %s", n, describe(calls))
	}
	return calls
}

// ExpectCanceled waits until one more call has ended with its context canceled and gives it: the oldest that was not given.
func (p *ScriptedProvider) ExpectCanceled() Call {
	p.t.Helper()
	canceled := func(c *Call) bool { return !c.Running() && c.Cause != nil }
	count := func() (n int) {
		for _, c := range p.calls {
			if canceled(c) {
				n++
			}
		}
		return n
	}
	calls, ok := p.await(func() bool { return count() > p.canceled })
	if !ok {
		p.t.Fatalf("want one more canceled provider call after %d, got %s", p.canceled, describe(calls))
	}
	ended := slices.DeleteFunc(calls, func(c Call) bool { return !canceled(&c) })
	slices.SortStableFunc(ended, func(a, b Call) int { return a.Ended.Compare(b.Ended) })
	call := ended[p.canceled]
	p.canceled++
	return call
}

// await waits for a condition on the calls, which it gives.
func (p *ScriptedProvider) await(holds func() bool) ([]Call, bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		p.mu.Lock()
		calls, ok, changed := p.list(), holds(), p.changed
		p.mu.Unlock()
		if ok {
			return calls, true
		}
		select {
		case <-changed:
		case <-timer.C:
			return calls, false
		}
	}
}

func (p *ScriptedProvider) reportUnexpected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unexpected > 0 {
		p.t.Errorf("provider %s got %d calls without a script; all calls: %s", p.name, p.unexpected, describe(p.list()))
	}
}

func describe(calls []Call) string {
	if len(calls) == 0 {
		return "none"
	}
	text := strconv.Itoa(len(calls))
	for _, c := range calls {
		switch {
		case c.Running():
			text += fmt.Sprintf("\n  %d: run %s runs", c.Number, c.Request.RunID)
		case c.Panicked:
			text += fmt.Sprintf("\n  %d: run %s panicked", c.Number, c.Request.RunID)
		default:
			text += fmt.Sprintf("\n  %d: run %s ended with error %v, cause %v", c.Number, c.Request.RunID, c.Err, c.Cause)
		}
	}
	return text
}
