package session

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/messages"
)

// Request is a command on its way to a session, through the directory. Its sender gets an Answer, and if the command was
// Subscribe (or SubmitTurn with subscribe) also *messages.DeliveryIntent and messages.Notification values, until it
// unsubscribes or ends. The answer comes before anything that the command causes.
type Request struct {
	Key messages.Key
	// ID is the sender's own; the answer carries it.
	ID      uint64
	Command messages.Command
}

// Answer is the reply to a Request. A command that has no reply (AckFinals) is answered by none.
type Answer struct {
	Key   messages.Key
	ID    uint64
	Reply messages.Reply
}

// Lost tells a subscriber that the session's actor ended or was restarted, and with it the subscription: subscribe again after
// the last number seen.
type Lost struct{ Key messages.Key }

// Refused turns the kernel's refusal of a Request into its Answer; false if r is no refusal of a Request.
func Refused(r *kernel.Refusal) (*Answer, bool) {
	req, ok := r.Message.(*Request)
	if !ok {
		return nil, false
	}
	text := "the session ended before it could answer; try again"
	if errors.Is(r.Err, kernel.ErrMailboxFull) {
		text = "too many commands wait for this session; try again later"
	}
	return &Answer{Key: req.Key, ID: req.ID, Reply: messages.FailRetryable(messages.CodeUnavailable, text)}, true
}

// Messages between a session and its parent, the directory.
type (
	// Idle asks the parent for leave to end: nothing is going on. The parent stops passing requests on and answers with Passivate.
	Idle struct {
		Key  messages.Key
		Self *actor.PID
		Gen  uint64
	}
	// Passivate is the leave. Everything that the parent had passed on before is in front of it in the mailbox, so a session that is
	// still idle loses nothing by ending; else it answers Stay.
	Passivate struct{ Gen uint64 }
	// Stay says that the session goes on.
	Stay struct {
		Key  messages.Key
		Self *actor.PID
	}
	// Quarantined says that the session's records are damaged, so that it serves nothing: the list of sessions shows it.
	Quarantined struct {
		Key  messages.Key
		Self *actor.PID
	}
	// Drain asks the session to admit and start nothing more; answered with Drained once no run is active.
	Drain struct{}
	// Drained says that no run is active any more.
	Drained struct{ Key messages.Key }
	// Suspend asks the session to stop its run now, to be resumed after the next start; answered with Suspended.
	Suspend struct{}
	// Suspended says that everything is recorded.
	Suspended struct{ Key messages.Key }
)
