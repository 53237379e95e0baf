package gateway

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
)

// follower is the actor that submits one turn for an HTTP request and waits for its final.
type follower struct {
	pursuit

	// reply gets the answer to SubmitTurn.
	reply chan messages.Reply
	// end gets what became of the turn, once.
	end chan turnEnd
	ask func(messages.Command)
}

// turnEnd is what became of a turn: one of its fields, or none if the session was restarted and must be asked.
type turnEnd struct {
	// final of the turn's run.
	final *messages.DeliveryIntent
	// status of a turn without a final to come: no run took it, or it ended before it was submitted again.
	status *messages.TurnStatus
}

// follow submits a turn and subscribes to what it causes. Call stop when done.
func (g *Gateway) follow(key messages.Key, turn *messages.SubmitTurn) (f *follower, stop func(), err error) {
	f = &follower{reply: make(chan messages.Reply, 1), end: make(chan turnEnd, 1)}
	props := g.deps.Kernel.Props(func() actor.Actor { return f }, kernel.PropsOptions{MailboxLimit: -1})
	pid, err := g.deps.Kernel.SpawnIn("connections", props)
	if err != nil {
		return nil, nil, messages.FailRetryable(messages.CodeDraining, "the server is shutting down")
	}
	// Set before the first message: nothing is sent to the actor but what this causes.
	f.ask = func(cmd messages.Command) { g.deps.Directory.Send(key, 0, cmd, pid) }
	turn.Subscribe = true
	f.ask(turn)
	return f, func() { g.deps.Kernel.Root().Stop(pid) }, nil
}

// Receive implements actor.Actor.
func (f *follower) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *session.Answer:
		f.answered(m.Reply)
	case *kernel.Refusal:
		if answer, ok := session.Refused(m); ok {
			f.answered(answer.Reply)
		}
	case *messages.DeliveryIntent:
		f.item(m)
	case *session.Lost, *messages.Resync, *actor.Stopping, *actor.Restarting: // the end may have been told to nobody
		f.found(turnEnd{})
	}
}

func (f *follower) answered(reply messages.Reply) {
	switch m := reply.(type) {
	case *messages.TurnFound:
		// The session sends in order: if a final belonged to this end it would be here.
		if status := m.GetTurn(); settled(status) {
			f.found(turnEnd{status: status})
		} else {
			f.run = status.GetRunId() // it took the turn, and its final is to come
		}
		return
	case *messages.TurnAccepted:
		f.turn, f.run = m.GetTurnId(), m.GetRunId()
		if messages.TurnState(m.GetState()).Ended() {
			f.ask(&messages.GetTurn{TurnId: f.turn})
		}
	case *messages.Failure:
		if f.turn != "" { // of GetTurn
			f.found(turnEnd{})
			return
		}
	case *messages.SessionStarted, *messages.EventsRecorded, *messages.Subscribed, *messages.Unsubscribed,
		*messages.SessionState, *messages.Aborted, *messages.Withdrawn, *messages.Done, *messages.Explanation, *messages.ContextExplained: // nobody asked
		return
	}
	select {
	case f.reply <- reply:
	default:
	}
}

func (f *follower) item(m *messages.DeliveryIntent) {
	switch f.meets(m) {
	case meetsLast:
		f.found(turnEnd{final: m})
	case meetsEnd:
		f.ask(&messages.GetTurn{TurnId: f.turn})
	case meetsOther, meetsOwn:
	}
}

func (f *follower) found(end turnEnd) {
	select {
	case f.end <- end:
	default:
	}
}

// accepted waits for the answer to SubmitTurn. Errors: a Failure, the cause of ctx.
func (f *follower) accepted(ctx context.Context) (*messages.TurnAccepted, error) {
	select {
	case reply := <-f.reply:
		if f, failed := reply.(*messages.Failure); failed {
			return nil, f
		}
		accepted, _ := reply.(*messages.TurnAccepted) // the only other one that gets here
		return accepted, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
