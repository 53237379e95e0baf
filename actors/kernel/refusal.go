package kernel

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
)

var (
	// ErrMailboxFull says that the user lane of the target is at its limit. The message was not taken; it may be sent again later.
	ErrMailboxFull = errors.New("mailbox full")
	// ErrStopped says that the target is gone, is stopping, or stopped while the message waited. The message was not handled.
	ErrStopped = errors.New("actor stopped")
	// ErrFailed says that the target panicked while it handled the message, or was restarted before it answered.
	// Whether the message had an effect is unknown. Only Ask returns it.
	ErrFailed = errors.New("actor failed")
)

// Control marks messages of the control lane: they overtake user messages, are not bounded and not held back by Hold.
// They still wait for system messages, and for the restart of an actor that has failed.
type Control interface{ ControlMessage() }

// Refusal is what a sender gets for a message that will never be handled. It travels in the control lane, so that a busy
// sender still learns of it. Senders that are protoactor futures or live on another node get *actor.DeadLetterResponse.
type Refusal struct {
	// Message is the refused message, without its envelope.
	Message any
	// Err is ErrMailboxFull or ErrStopped.
	Err error
}

// ControlMessage puts refusals in the control lane.
func (*Refusal) ControlMessage() {}

// refuse tells the sender of msg that it will not be handled, or publishes a dead letter if there is no sender.
func (s *System) refuse(to *actor.PID, msg any, err error) {
	_, body, sender := actor.UnwrapEnvelope(msg)
	if _, lifecycle := body.(actor.AutoReceiveMessage); lifecycle {
		return // a poison pill for an actor that ends anyway
	}
	if sender == nil {
		s.as.EventStream.Publish(&actor.DeadLetterEvent{PID: to, Message: body})
		return
	}
	s.answerRefused(to, body, sender, err)
}

func (s *System) answerRefused(to *actor.PID, body any, sender *actor.PID, err error) {
	process, ok := s.as.ProcessRegistry.Get(sender)
	if !ok {
		return
	}
	if !s.isLocal(sender) || strings.HasPrefix(sender.Id, futurePrefix) {
		process.SendUserMessage(sender, &actor.DeadLetterResponse{Target: to})
		return
	}
	process.SendUserMessage(sender, &Refusal{Message: body, Err: err})
}

// useOwnEventStream replaces the event stream before anybody else has subscribed to it. The subscribers that protoactor
// installs log every dead letter with its content and start a goroutine that sleeps for a second.
func (s *System) useOwnEventStream() {
	s.as.EventStream = eventstream.NewEventStream()
	s.as.EventStream.Subscribe(func(event any) {
		switch event := event.(type) {
		case *actor.DeadLetterEvent:
			s.onDeadLetter(event)
		case *actor.SupervisorEvent:
			s.log.Debug("supervisor decided", slog.String(keyActor, event.Child.GetId()), slog.Int(keyDirective, int(event.Directive)))
		}
	})
}

// onDeadLetter answers what was sent to a process that is not registered.
func (s *System) onDeadLetter(event *actor.DeadLetterEvent) {
	if watch, ok := event.Message.(*actor.Watch); ok {
		s.tellTerminated(watch.Watcher, event.PID)
		return
	}
	switch event.Message.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.MailboxMessage:
		return
	}
	s.log.Debug("dead letter", slog.String(keyActor, event.PID.GetId()), slog.String(keyType, fmt.Sprintf("%T", event.Message)))
	if event.Sender != nil {
		s.answerRefused(event.PID, event.Message, event.Sender, ErrStopped)
	}
}

// tellTerminated tells a watcher that the watched actor no longer exists.
func (s *System) tellTerminated(watcher, who *actor.PID) {
	if process, ok := s.as.ProcessRegistry.Get(watcher); ok {
		process.SendSystemMessage(watcher, &actor.Terminated{Who: who, Why: actor.TerminatedReason_NotFound})
	}
}

// isLocal reports whether pid belongs to this system. A PID made before a remote was started keeps the local address.
func (s *System) isLocal(pid *actor.PID) bool {
	return pid.Address == s.as.ProcessRegistry.Address || pid.Address == localAddress
}
