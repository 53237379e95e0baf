package kernel

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Scheduler decides, in tests that look for faults of order, which actor goes on next. It replaces the pool of goroutines: an
// actor handles one message, and then the scheduler chooses again among all that could go on.
type Scheduler interface {
	// Number gives the number of the next turn that is made. It is called from any goroutine.
	Number() uint64
	// Ready says that a turn can be taken. It is told of a turn once, and again only after the turn was taken. It is called
	// from any goroutine and must not block.
	Ready(turn *Turn)
}

// Turn is something that an actor system could do next: one actor's handling of its next message, or one timer's message that
// is due.
type Turn struct {
	number  uint64
	take    func()
	msg     any               // of a turn that is no actor's
	mailbox *mailbox          // nil = not an actor's
	watch   func(string, any) // of the Take under way
}

// NewTurn makes a turn of something else that takes part in the schedule, a client for example; msg is what Take tells of it.
func NewTurn(number uint64, msg any, take func()) *Turn {
	return &Turn{number: number, msg: msg, take: take}
}

// Number tells turns apart. Mailboxes and timers are numbered in the order in which they are made, which is the same whenever
// the same turns are taken in the same order.
func (t *Turn) Number() uint64 { return t.number }

// Take lets the actor handle its next message, on the caller's goroutine. Before that watch is told the actor's type and the
// message; of a timer there is no type. It is not told if the actor finds nothing to do.
func (t *Turn) Take(watch func(who string, msg any)) {
	t.watch = watch
	if t.mailbox == nil {
		t.watch("", t.msg)
	}
	t.take()
}

// begin tells who watches what is handled now. It runs on the goroutine of Take.
func (t *Turn) begin(msg any) {
	who := "actor"
	if ctx, ok := t.mailbox.invoker.(actor.Context); ok {
		who = fmt.Sprintf("%T", Unwrap(ctx.Actor()))
	}
	t.watch(who, actor.UnwrapEnvelopeMessage(msg))
}

func (s *System) newTurn(take func()) *Turn { return NewTurn(s.scheduler.Number(), nil, take) }

// afterInTurn is After under a scheduler: a message that is due takes its turn with all else.
func (s *System) afterInTurn(d time.Duration, due func(), msg any) (stop func()) {
	turn := NewTurn(s.scheduler.Number(), msg, due)
	timer := time.AfterFunc(d, func() { s.scheduler.Ready(turn) })
	return func() { timer.Stop() }
}
