package gateway

import (
	"context"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/correx/correx-actors/actors/kernel"
	"github.com/correx/correx-actors/actors/session"
	"github.com/correx/correx-actors/messages"
)

// follower is the actor that submits one turn for an HTTP request and waits for its final.
type follower struct {
	// reply gets the answer to SubmitTurn.
	reply chan messages.Reply
	// final gets the final of the turn's run, or nil when it will not come here and the turn has to be asked for.
	final chan *messages.DeliveryIntent
	turn  messages.TurnID
	run   messages.RunID
}

// follow submits a turn and subscribes to what it causes. Call stop when done.
func (g *Gateway) follow(key messages.Key, turn *messages.SubmitTurn) (f *follower, stop func(), err error) {
	f = &follower{reply: make(chan messages.Reply, 1), final: make(chan *messages.DeliveryIntent, 1)}
	props := g.deps.Kernel.Props(func() actor.Actor { return f }, kernel.PropsOptions{MailboxLimit: -1})
	pid, err := g.deps.Kernel.SpawnIn("connections", props)
	if err != nil {
		return nil, nil, messages.FailRetryable(messages.CodeDraining, "the server is shutting down")
	}
	turn.Subscribe = true
	g.deps.Directory.Send(key, 0, turn, pid)
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
	case *session.Lost, *actor.Stopping, *actor.Restarting:
		f.found(nil)
	}
}

func (f *follower) answered(reply messages.Reply) {
	if m, ok := reply.(*messages.TurnAccepted); ok {
		f.turn, f.run = m.GetTurnId(), m.GetRunId()
		if messages.TurnState(m.GetState()).Ended() && m.GetMergedInto() == "" {
			f.found(nil) // of an earlier submission
		}
	}
	select {
	case f.reply <- reply:
	default:
	}
}

func (f *follower) item(m *messages.DeliveryIntent) {
	switch body := m.GetBody().(type) {
	case *messages.DeliveryIntent_RouterResponse:
		if body.RouterResponse.GetRunId() == f.run || slices.Contains(body.RouterResponse.GetTurnIds(), f.turn) {
			f.found(m)
		}
	case *messages.DeliveryIntent_TurnState:
		if body.TurnState.GetTurnId() == f.turn {
			f.moved(body.TurnState)
		}
	}
}

// moved: the turn has its end. If a run answers it that run's final follows.
func (f *follower) moved(m *messages.TurnStateChanged) {
	switch {
	case m.GetMergedInto() != "":
		f.run = messages.RunIDOf(m.GetMergedInto())
	case m.GetSteeredInto() != "":
		f.run = m.GetSteeredInto()
	case m.GetRunId() == "":
		f.found(nil)
	}
}

func (f *follower) found(m *messages.DeliveryIntent) {
	select {
	case f.final <- m:
	default:
	}
}

// accepted waits for the answer to SubmitTurn. Errors: a Failure, the cause of ctx.
func (f *follower) accepted(ctx context.Context) (*messages.TurnAccepted, error) {
	select {
	case reply := <-f.reply:
		switch m := reply.(type) {
		case *messages.TurnAccepted:
			return m, nil
		case *messages.Failure:
			return nil, m
		}
		return nil, messages.Fail(messages.CodeInternal, "unexpected answer to a turn")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
