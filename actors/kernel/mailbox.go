package kernel

import (
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// errGoexit is the failure reason when a handler ends its goroutine (a failed require in a test does that).
var errGoexit = errors.New("goroutine ended inside a handler")

// item is a message of the control or user lane.
type item struct {
	msg any  // as posted, perhaps in an envelope
	ask *ask // set if its sender waits in Ask
}

// mailbox is one actor's queue: system messages first, then control, then user messages.
//
// Rules: nothing runs before Start; one goroutine at a time runs the actor; nothing is dropped without a Refusal or a dead
// letter; no method blocks. The lock is never held while foreign code runs.
type mailbox struct {
	sys     *System
	limit   int    // of the user lane; negative = none
	burst   int    // messages that are handled before others may run
	runFunc func() // run, bound once to save an allocation per activation
	turn    *Turn  // stands for the mailbox at Config.Scheduler; nil without one

	mu         sync.Mutex
	system     lane[any]
	control    lane[item]
	user       lane[item]
	started    bool // Start was called
	running    bool // a worker runs, or is scheduled to run, this mailbox
	suspended  bool // the actor has failed and waits for its supervisor
	held       bool // by Hold
	stopping   bool // *actor.Stop was taken: no user message will be handled any more
	dead       bool // the actor has ended
	self       *actor.PID
	process    actor.Process // what the registry holds for self
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher

	unanswered []*ask // handled without an answer so far; only the running worker uses it
	sweepAt    int    // length of unanswered at which answered ones are thrown out
}

var _ actor.Mailbox = (*mailbox)(nil)

func newMailbox(sys *System, limit int) *mailbox {
	m := &mailbox{sys: sys, limit: limit, burst: throughput}
	m.runFunc = m.run
	if sys.scheduler != nil {
		m.burst, m.turn = 1, sys.newTurn(m.run)
		m.turn.mailbox = m
	}
	return m
}

// PostUserMessage implements actor.Mailbox.
func (m *mailbox) PostUserMessage(msg any) {
	_, body, sender := actor.UnwrapEnvelope(msg)
	it := item{msg: msg}
	if it.ask = m.sys.findAsk(sender); it.ask != nil {
		it.ask.owner.Store(m)
	}
	if err := m.enqueue(it, body); err != nil {
		m.sys.refuse(m.pid(), msg, err)
	}
}

func (m *mailbox) enqueue(it item, body any) error {
	m.mu.Lock()
	if m.stopping || m.dead {
		m.mu.Unlock()
		return ErrStopped
	}
	if _, ok := body.(Control); ok {
		m.control.push(it)
	} else {
		if m.limit >= 0 && m.user.n >= m.limit && !isPoison(body) {
			m.mu.Unlock()
			return ErrMailboxFull
		}
		m.user.push(it)
	}
	m.unlockAndSchedule()
	return nil
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		m.rejectSystem(msg)
		return
	}
	switch msg := msg.(type) {
	case holdUserLane:
		m.held = bool(msg)
	case *actor.Started:
		m.system.pushFront(msg) // a stop that raced with the spawn must not come first
	default:
		m.system.push(msg)
	}
	m.unlockAndSchedule()
}

// RegisterHandlers implements actor.Mailbox. The PID is registered before it is called, so messages may be waiting already.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.invoker, m.dispatcher = invoker, dispatcher
	if ctx, ok := invoker.(actor.Context); ok {
		m.self = ctx.Self()
		m.process, _ = m.sys.as.ProcessRegistry.GetLocal(m.self.Id)
	}
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {
	m.mu.Lock()
	m.started = true
	m.unlockAndSchedule()
}

// UserMessageCount implements actor.Mailbox. It counts the control lane too.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.n + m.control.n
}

func (m *mailbox) pid() *actor.PID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

// unlockAndSchedule releases mu and wakes a worker if there is something to do.
func (m *mailbox) unlockAndSchedule() {
	wake := m.started && !m.running && m.runnable()
	if wake {
		m.running = true
	}
	m.mu.Unlock()
	if wake {
		m.schedule()
	}
}

func (m *mailbox) schedule() {
	if m.turn != nil {
		m.sys.scheduler.Ready(m.turn)
		return
	}
	m.dispatcher.Schedule(m.runFunc)
}

// runnable needs mu.
func (m *mailbox) runnable() bool {
	return m.system.n > 0 || !m.suspended && (m.control.n > 0 || !m.held && m.user.n > 0)
}

// run is the worker's loop; drain returns early after a panic or after a burst.
func (m *mailbox) run() {
	for m.drain() {
		if m.turn != nil {
			m.turnOver()
			return
		}
		runtime.Gosched()
	}
}

// turnOver gives the choice of what runs next back to the scheduler.
func (m *mailbox) turnOver() {
	m.mu.Lock()
	m.running = m.runnable()
	again := m.running
	m.mu.Unlock()
	if again {
		m.schedule()
	}
}

func (m *mailbox) drain() (more bool) {
	var current item
	finished := false
	defer func() {
		if finished {
			return
		}
		if reason := recover(); reason != nil {
			more = true
			m.fail(current, reason)
			return
		}
		m.fail(current, errGoexit)
		m.schedule() // this goroutine is lost
	}()
	for range m.burst {
		var system, ok bool
		if current, system, ok = m.next(); !ok {
			finished = true
			return false
		}
		if m.turn != nil {
			m.turn.begin(current.msg)
		}
		if system {
			m.invokeSystem(current.msg)
			continue
		}
		m.invoker.InvokeUserMessage(current.msg)
		if current.ask != nil {
			m.remember(current.ask)
		}
	}
	finished = true
	return true
}

// next takes the next message, or marks the mailbox idle if there is none.
func (m *mailbox) next() (it item, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.system.n > 0:
		it.msg = m.system.pop()
		if _, stop := it.msg.(*actor.Stop); stop {
			m.stopping = true
		}
		return it, true, true
	case m.suspended:
	case m.control.n > 0:
		return m.control.pop(), false, true
	case !m.held && m.user.n > 0:
		return m.user.pop(), false, true
	}
	m.running = false
	m.sweepIdle()
	return item{}, false, false
}

// sweepIdle lets go of the few questions that an actor with nothing to do has answered.
func (m *mailbox) sweepIdle() {
	if len(m.unanswered) <= idleSweep {
		m.sweep()
	}
}

// idleSweep bounds what is looked through each time that an actor has nothing more to do.
const idleSweep = 16

// sweep throws out the answered questions.
func (m *mailbox) sweep() {
	open := m.unanswered[:0]
	for _, old := range m.unanswered {
		if !old.done.Load() {
			open = append(open, old)
		}
	}
	clear(m.unanswered[len(open):])
	if m.unanswered = open; len(open) == 0 {
		m.unanswered = nil
	}
}

func (m *mailbox) invokeSystem(msg any) {
	switch msg := msg.(type) {
	case *actor.SuspendMailbox:
		m.set(&m.suspended, true)
	case *actor.ResumeMailbox:
		m.set(&m.suspended, false)
	case *actor.Restart:
		// A restart that comes after a stop would bring the actor back to life.
		if m.isStopping() {
			return
		}
		m.set(&m.held, false) // the next incarnation knows nothing of it
		m.abandon(ErrFailed)
		m.invoker.InvokeSystemMessage(msg)
	case *actor.Stop, *actor.Terminated:
		m.invoker.InvokeSystemMessage(msg)
		m.afterStop()
	case *actor.Started, *actor.Watch, *actor.Unwatch, *actor.Failure:
		m.invoker.InvokeSystemMessage(msg)
	default: // a continuation of ReenterAfter, which must not run in an actor that is stopping
		if !m.isStopping() {
			m.invoker.InvokeSystemMessage(msg)
		}
	}
}

// fail hands a panic to the supervisor. current is the message that was being handled.
func (m *mailbox) fail(current item, reason any) {
	m.sys.log.Error("actor panicked", slog.String(keyActor, m.pid().GetId()), slog.Any(keyReason, reason),
		slog.String(keyStack, string(debug.Stack())))
	if current.ask != nil && current.ask.owner.Load() == m {
		current.ask.complete(&Refusal{Err: ErrFailed})
	}
	m.escalate(current.msg, reason)
	m.afterStop()
}

// escalate keeps a panic in the parent's process (a foreign Supervisor, a closed guardian) from killing the program.
func (m *mailbox) escalate(msg, reason any) {
	defer func() {
		if r := recover(); r != nil {
			m.sys.log.Error("supervisor panicked", slog.String(keyActor, m.pid().GetId()), slog.Any(keyReason, r))
		}
	}()
	m.invoker.EscalateFailure(reason, msg)
}

// afterStop refuses what an actor that is stopping, or has ended, will not handle any more.
func (m *mailbox) afterStop() {
	if !m.isStopping() {
		return
	}
	process, registered := m.sys.as.ProcessRegistry.GetLocal(m.self.Id)
	ended := !registered || process != m.process
	m.mu.Lock()
	queued := append(m.control.take(), m.user.take()...)
	var system []any
	if ended {
		m.dead = true
		system = m.system.take()
		m.invoker = nil // PIDs keep the mailbox in memory; let the actor go
	}
	m.mu.Unlock()
	for _, it := range queued {
		m.sys.refuse(m.self, it.msg, ErrStopped)
	}
	if !ended {
		return
	}
	for _, msg := range system {
		m.rejectSystem(msg)
	}
	m.abandon(ErrStopped)
}

// rejectSystem answers a system message for an actor that has ended.
func (m *mailbox) rejectSystem(msg any) {
	if watch, ok := msg.(*actor.Watch); ok {
		m.sys.tellTerminated(watch.Watcher, m.self)
	}
}

// remember keeps a question that was handled without an answer, so that its asker can be told when the actor ends.
// A question that was passed on to another mailbox is that one's.
func (m *mailbox) remember(a *ask) {
	if a.done.Load() || a.owner.Load() != m {
		return
	}
	if len(m.unanswered) >= m.sweepAt {
		m.sweep()
		m.sweepAt = 2*len(m.unanswered) + 8
	}
	m.unanswered = append(m.unanswered, a)
}

// abandon tells all askers that are still waiting for this actor that no answer will come.
func (m *mailbox) abandon(err error) {
	for _, a := range m.unanswered {
		if a.owner.Load() == m {
			a.complete(&Refusal{Err: err})
		}
	}
	m.unanswered = nil
}

func (m *mailbox) set(flag *bool, value bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*flag = value
}

func (m *mailbox) isStopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopping
}

func isPoison(msg any) bool {
	_, ok := msg.(*actor.PoisonPill)
	return ok
}
