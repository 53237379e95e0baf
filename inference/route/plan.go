package route

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"

	"github.com/correx/correx-actors/inference"
)

// The back-off before a provider's further calls: it doubles from firstPause to lastPause, each half up or down by chance so
// that the runs that one outage has hit do not come back as one.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 10 * time.Second
	spread     = 0.5
)

// plan is the shell of one course. It belongs to one goroutine.
type plan struct {
	router *Router
	course *course
	tokens int
	pauses *backoff.ExponentialBackOff

	// held is the place within the limits of the provider at heldAt.
	held   *place
	heldAt int
	// busy: another call is trying the provider at busyAt, which was paused.
	busy   bool
	busyAt int

	// running is the call that was begun; nil = none.
	running *running
}

// running is a call in progress.
type running struct {
	backend *backend
	model   string
	began   time.Time
	tokens  int
	// done tells the breaker; nil = it was told already. Probe: the breaker waits for this call's verdict.
	done  func(error)
	probe bool
}

var _ inference.Plan = (*plan)(nil)

func newPlan(r *Router, ask inference.Ask, targets []target) *plan {
	p := &plan{
		router: r,
		course: newCourse(r.rules, ask.Replace, targets),
		tokens: ask.Tokens,
		pauses: &backoff.ExponentialBackOff{
			InitialInterval: firstPause, MaxInterval: lastPause, Multiplier: 2, RandomizationFactor: spread,
		},
	}
	p.pauses.Reset()
	return p
}

// Next implements inference.Plan.
func (p *plan) Next() inference.Step {
	p.abandon()
	for {
		now := time.Now()
		m := p.course.next(now, func(at int) gate { return p.look(now, at) })
		switch {
		case m.wait > 0:
			return inference.Wait{For: m.wait, Reason: m.reason}
		case !m.call:
			p.release(now)
			return inference.Stop{Err: m.err}
		case p.begin(p.course.at):
			p.course.called()
			return inference.Call{Route: p.router.route(p.course.targets[p.course.at], m.reason), Halve: m.halve}
		}
	}
}

// look tells what stands before a target. A place within its limits is taken with the first look and kept until the call.
func (p *plan) look(now time.Time, at int) gate {
	b := p.backend(at)
	if paused := b.paused(now); paused > 0 {
		return gate{paused: paused}
	}
	if p.busy && p.busyAt == at {
		return gate{paused: probing}
	}
	if at > 0 && b.full() { // the first one's room is the run's slot
		return gate{full: true, why: fmt.Sprintf("its limit of %d calls at once is reached", b.concurrent)}
	}
	if held := b.holds.left(now, p.course.targets[at].model); held > 0 {
		return gate{wait: held, why: "it asked to be called more slowly"}
	}
	if p.held == nil || p.heldAt != at {
		p.release(now)
		p.held, p.heldAt = b.reserve(now, p.tokens), at
	}
	return gate{wait: p.held.due.Sub(now), why: p.held.why}
}

// begin asks the breaker for leave to call a target.
func (p *plan) begin(at int) bool {
	b, model, now := p.backend(at), p.course.targets[at].model, time.Now()
	probe := b.breaker.State() != gobreaker.StateClosed
	if !b.enter(at == 0) {
		return false // somebody was faster: it is full now
	}
	done, err := b.breaker.Allow()
	if err != nil {
		b.leave()
		p.busy, p.busyAt = true, at
		return false
	}
	if !b.holds.try(now, model) { // somebody was faster: that call tells whether it may be called again
		b.leave()
		done(&inference.Error{Kind: inference.KindCanceled})
		return false
	}
	p.running = &running{backend: b, model: model, began: now, done: done, probe: probe}
	if p.held != nil && p.heldAt == at {
		p.running.tokens, p.held = p.held.tokens, nil
	}
	return true
}

// Begun implements inference.Plan. A provider that was paused is back as soon as it answers: others need not stay away until
// a long answer is whole.
func (p *plan) Begun() {
	r := p.running
	if r == nil {
		return
	}
	r.backend.holds.answered(r.model, r.began)
	if r.probe && r.done != nil {
		r.done(nil)
		r.done = nil
	}
}

// Ended implements inference.Plan.
func (p *plan) Ended(end inference.End) {
	r := p.running
	if r == nil {
		return
	}
	p.running = nil
	r.backend.leave()
	now, failure := time.Now(), asError(end.Err)
	r.judge(failure)
	r.backend.charge(now, end.Usage, r.tokens)
	switch {
	case failure == nil:
		r.backend.holds.answered(r.model, r.began)
	case holding(failure):
		r.backend.holds.ask(now, r.model, failure)
	}
	at := p.course.at
	p.course.ended(now, failure, end.Visible, p.pauses.NextBackOff())
	if p.course.at != at {
		p.pauses.Reset()
	}
}

// judge tells the breaker how a call ended. One that was counted as success when it began, and failed then, is a failure
// after all.
func (r *running) judge(failure *inference.Error) {
	var err error
	if failure != nil {
		err = failure
	}
	if r.done == nil && failure != nil && counted(failure) {
		r.done, _ = r.backend.breaker.Allow()
	}
	if r.done != nil {
		r.done(err)
		r.done = nil
	}
}

// Close implements inference.Plan.
func (p *plan) Close() {
	p.abandon()
	p.release(time.Now())
}

// abandon ends a call of which nothing more was told, for nobody's account.
func (p *plan) abandon() {
	if p.running != nil {
		p.running.judge(&inference.Error{Kind: inference.KindCanceled})
		p.running.backend.leave()
		p.running = nil
		p.course.over = true
	}
}

func (p *plan) release(now time.Time) {
	if p.held != nil {
		p.held.giveBack(now)
		p.held = nil
	}
}

func (p *plan) backend(at int) *backend { return p.router.backends[p.course.targets[at].provider] }

// asError gives err as what the rules know; what is no *inference.Error has the kind that KindOf gives it, and no text of its own.
func asError(err error) *inference.Error {
	if err == nil {
		return nil
	}
	var e *inference.Error
	if errors.As(err, &e) {
		return e
	}
	return &inference.Error{Kind: inference.KindOf(err), Message: "the call failed", Err: err}
}
