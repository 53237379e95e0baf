package testkit

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/correx/correx-actors/actors/kernel"
)

// Probe is an actor that keeps what it gets until the test asks for it. Give its PID to whom should send to it, or send in
// its name with Tell. Use it from the test's goroutine only. Lifecycle messages of the probe itself are not kept.
type Probe struct {
	t   testing.TB
	sys *kernel.System
	pid *actor.PID

	mu      sync.Mutex
	got     []envelope
	taken   int           // how many of got the test has asked for
	arrived chan struct{} // a signal, capacity 1
}

// envelope is a message with its sender and what became of it.
type envelope struct {
	msg    any
	sender *actor.PID
	at     time.Time
	note   string
}

// watch asks the probe to watch an actor.
type watch struct{ who *actor.PID }

// NewProbe starts a probe.
func NewProbe(t testing.TB, sys *kernel.System) *Probe {
	t.Helper()
	p := &Probe{t: t, sys: sys, arrived: make(chan struct{}, 1)}
	pid, err := sys.Spawn(sys.Props(func() actor.Actor { return probeActor{p} }, kernel.PropsOptions{MailboxLimit: -1}))
	if err != nil {
		t.Fatalf("spawn a probe: %v", err)
	}
	p.pid = pid
	return p
}

type probeActor struct{ p *Probe }

// Receive implements actor.Actor.
func (a probeActor) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
	case watch:
		ctx.Watch(msg.who)
	default:
		a.p.keep(envelope{msg: msg, sender: ctx.Sender(), at: time.Now()})
	}
}

func (p *Probe) keep(e envelope) {
	p.mu.Lock()
	p.got = append(p.got, e)
	p.mu.Unlock()
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

// PID is the probe's address.
func (p *Probe) PID() *actor.PID { return p.pid }

// Tell sends msg in the probe's name: answers and refusals come back to it.
func (p *Probe) Tell(to *actor.PID, msg any) { p.sys.TellAs(to, msg, p.pid) }

// Watch lets the probe get *actor.Terminated when who ends.
func (p *Probe) Watch(who *actor.PID) { p.sys.Tell(p.pid, watch{who}) }

// Reply answers the sender of the message that the test has asked for last.
func (p *Probe) Reply(msg any) {
	p.t.Helper()
	p.mu.Lock()
	var to *actor.PID
	if p.taken > 0 {
		to = p.got[p.taken-1].sender
	}
	p.mu.Unlock()
	if to == nil {
		p.t.Fatalf("nobody to reply to%s", p.trace())
	}
	p.Tell(to, msg)
}

// Expect gives the next message, which must be a T. It waits for it.
func Expect[T any](p *Probe) T {
	p.t.Helper()
	e, ok := p.next(patience)
	if !ok {
		p.t.Fatalf("want a %s, nothing came in %s%s", reflect.TypeFor[T](), patience, p.trace())
	}
	msg, ok := e.msg.(T)
	if !ok {
		p.t.Fatalf("want a %s, got a %T%s", reflect.TypeFor[T](), e.msg, p.trace())
	}
	p.note("expected")
	return msg
}

// ExpectMatching gives the next message that is a T for which match holds, and passes over what comes before it; a nil match
// holds always. It waits for it.
func ExpectMatching[T any](p *Probe, match func(T) bool) T {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		e, ok := p.next(time.Until(deadline))
		if !ok {
			p.t.Fatalf("want a matching %s, none came in %s%s", reflect.TypeFor[T](), patience, p.trace())
		}
		if msg, ok := e.msg.(T); ok && (match == nil || match(msg)) {
			p.note("expected")
			return msg
		}
		p.note("passed over")
	}
}

// ExpectNone fails if a message is waiting or comes within d.
func (p *Probe) ExpectNone(d time.Duration) {
	p.t.Helper()
	if e, ok := p.next(d); ok {
		p.t.Fatalf("want no message for %s, got a %T%s", d, e.msg, p.trace())
	}
}

// ExpectTerminated waits until the probe is told that who has ended; the probe must watch it. What comes before is passed over.
func (p *Probe) ExpectTerminated(who *actor.PID) {
	p.t.Helper()
	ExpectMatching(p, func(t *actor.Terminated) bool { return t.Who.Equal(who) })
}

// Pending gives what has come and was not asked for yet, without taking it. In a bubble call synctest.Wait before.
func (p *Probe) Pending() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	pending := make([]any, 0, len(p.got)-p.taken)
	for _, e := range p.got[p.taken:] {
		pending = append(pending, e.msg)
	}
	return pending
}

// next takes the next message, waiting for at most d.
func (p *Probe) next(d time.Duration) (envelope, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		if e, ok := p.take(); ok {
			return e, true
		}
		select {
		case <-p.arrived:
		case <-timer.C:
			return p.take()
		}
	}
}

func (p *Probe) take() (envelope, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == len(p.got) {
		return envelope{}, false
	}
	p.taken++
	return p.got[p.taken-1], true
}

func (p *Probe) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got[p.taken-1].note = text
}

// trace prints everything that the probe got, in order.
func (p *Probe) trace() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.got) == 0 {
		return "\nthe probe got nothing at all"
	}
	var b strings.Builder
	b.WriteString("\nthe probe got, in order:")
	start := p.got[0].at
	for i, e := range p.got {
		note := e.note
		if note == "" {
			note = "waiting"
			if i < p.taken {
				note = "this one"
			}
		}
		fmt.Fprintf(&b, "\n  %d. +%s %T %s (%s)", i+1, e.at.Sub(start), e.msg, show(e.msg), note)
	}
	return b.String()
}

// maxShown bounds one message in a trace, in bytes.
const maxShown = 300

func show(msg any) string {
	text := fmt.Sprintf("%+v", msg)
	if m, ok := msg.(proto.Message); ok {
		text = protojson.Format(m)
		text = strings.Join(strings.Fields(text), " ")
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}
