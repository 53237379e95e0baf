package kernel

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// askPrefix and protoactor's futurePrefix begin the ids of processes that wait for one answer.
const (
	askPrefix    = "ask$"
	futurePrefix = "future$"
)

// ask is a process that takes one message and is gone: the reply address of Ask, and the watcher of Stop.
// actor.Future is not used, as a late or second answer overwrites its result without a lock.
type ask struct {
	sys    *System
	pid    *actor.PID
	answer chan any // buffered; written once, by who set done
	done   atomic.Bool
	owner  atomic.Pointer[mailbox] // where the question is now; follows a question that is passed on
}

var _ actor.Process = (*ask)(nil)

func (s *System) newAsk() *ask {
	a := &ask{sys: s, answer: make(chan any, 1)}
	a.pid, _ = s.as.ProcessRegistry.Add(a, "ask"+s.as.ProcessRegistry.NextId())
	return a
}

// findAsk gives the ask behind a sender, or nil if the sender is something else or has its answer.
func (s *System) findAsk(sender *actor.PID) *ask {
	if sender == nil || !strings.HasPrefix(sender.Id, askPrefix) || !s.isLocal(sender) {
		return nil
	}
	process, _ := s.as.ProcessRegistry.GetLocal(sender.Id)
	a, _ := process.(*ask)
	return a
}

// SendUserMessage implements actor.Process.
func (a *ask) SendUserMessage(_ *actor.PID, msg any) {
	a.complete(actor.UnwrapEnvelopeMessage(msg))
}

// SendSystemMessage implements actor.Process. An ask cannot be watched.
func (a *ask) SendSystemMessage(_ *actor.PID, msg any) {
	if _, ok := msg.(*actor.Terminated); ok {
		a.complete(msg)
	}
}

// Stop implements actor.Process.
func (*ask) Stop(*actor.PID) {}

// complete takes the first answer and ignores later ones.
func (a *ask) complete(answer any) {
	if a.close() {
		a.answer <- answer
	}
}

// close reports whether the caller is the one who ended the ask.
func (a *ask) close() bool {
	if !a.done.CompareAndSwap(false, true) {
		return false
	}
	a.sys.as.ProcessRegistry.Remove(a.pid)
	return true
}

// wait gives the answer, or the cause of ctx.
func (a *ask) wait(ctx context.Context) (any, error) {
	select {
	case answer := <-a.answer:
		return answer, nil
	case <-ctx.Done():
	}
	if a.close() {
		return nil, context.Cause(ctx)
	}
	return <-a.answer, nil // it came at the same moment
}

// Ask sends msg with a reply address and waits for one answer.
//
// Errors: the cause of ctx when ctx ends; ErrStopped when the target is gone, or goes before it has answered;
// ErrMailboxFull; ErrFailed when the target panics or restarts before it has answered. An answer that is an error is
// returned as the error. A question that the target passes on (with the same sender) follows the new target.
// Do not call it from Receive: it blocks.
func (s *System) Ask(ctx context.Context, to *actor.PID, msg any) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	a := s.newAsk()
	s.TellAs(to, msg, a.pid)
	answer, err := a.wait(ctx)
	if err != nil {
		return nil, err
	}
	switch answer := answer.(type) {
	case *Refusal:
		return nil, answer.Err
	case *actor.DeadLetterResponse:
		return nil, ErrStopped
	case error:
		return nil, answer
	}
	return answer, nil
}

// Stop ends an actor after the message it is handling and waits till it has ended. When ctx ends first it returns the
// cause of ctx; the actor still stops. An actor that does not exist has ended. Do not call it from Receive: it blocks.
func (s *System) Stop(ctx context.Context, pid *actor.PID) error {
	return s.endAndWait(ctx, pid, s.as.Root.Stop)
}

// Poison ends an actor after the user messages that are in its mailbox already and waits like Stop.
func (s *System) Poison(ctx context.Context, pid *actor.PID) error {
	return s.endAndWait(ctx, pid, s.as.Root.Poison)
}

func (s *System) endAndWait(ctx context.Context, pid *actor.PID, end func(*actor.PID)) error {
	if pid == nil {
		return nil
	}
	watcher := s.newAsk()
	process, _ := s.as.ProcessRegistry.Get(pid)
	process.SendSystemMessage(pid, &actor.Watch{Watcher: watcher.pid})
	end(pid)
	_, err := watcher.wait(ctx)
	if err != nil {
		process.SendSystemMessage(pid, &actor.Unwatch{Watcher: watcher.pid})
	}
	return err
}
