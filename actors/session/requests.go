package session

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	core "github.com/correx/correx-actors/core/session"
	"github.com/correx/correx-actors/messages"
)

// maxPending bounds the commands that wait inside a session; beyond it they are refused.
const maxPending = 4096

// request takes a command from outside.
func (s *Session) request(ctx actor.Context, m *Request) {
	p := &pending{sender: ctx.Sender(), id: m.ID}
	switch {
	case s.stage == stageRefusing:
		s.refuse(p, s.refusal)
		s.settle(ctx)
		return
	case s.stage == stageEnding:
		s.refuse(p, messages.FailRetryable(messages.CodeUnavailable, "the session ended before it could answer; try again"))
		return
	case len(s.pending) >= maxPending:
		s.refuse(p, messages.FailRetryable(messages.CodeUnavailable, "too many commands wait for this session; try again later"))
		return
	}
	if s.stage == stageRecovering {
		// Reads wait as well: there is nothing to read yet.
		p.held = m.Command
		s.pending = append(s.pending, p)
		return
	}
	if s.readNow(ctx, p, m.Command) {
		return
	}
	if f := s.prepare(p, m.Command); f != nil {
		s.refuse(p, f)
		return
	}
	s.pending = append(s.pending, p)
	s.drive(ctx)
}

// readNow serves the commands that record nothing; false if cmd is none of them.
func (s *Session) readNow(ctx actor.Context, p *pending, cmd messages.Command) bool {
	exists := s.state.Exists() || s.inflight != nil || len(s.pending) > 0
	switch m := cmd.(type) {
	case *messages.GetSession:
		s.ifExists(ctx, exists, p, func() { s.answer(p, &messages.SessionState{State: s.view()}) })
	case *messages.GetTurn:
		s.ifExists(ctx, exists, p, func() { s.getTurn(p, m, 0) })
	case *messages.GetContext:
		s.ifExists(ctx, exists, p, func() { s.explainContext(p, m) })
	case *messages.Unsubscribe:
		s.ifExists(ctx, exists, p, func() {
			s.unsubscribe(ctx, p.sender)
			s.answer(p, &messages.Unsubscribed{})
			s.settle(ctx)
		})
	case *messages.Abort:
		if !exists {
			s.ifExists(ctx, false, p, nil)
			return true
		}
		return false
	case *messages.Explain:
		s.ifExists(ctx, exists, p, func() { s.explain(p, m) })
	case *messages.Withdraw:
		if !exists {
			s.ifExists(ctx, false, p, nil)
			return true
		}
		return false
	case *messages.KeepRunAlive:
		if !exists {
			s.ifExists(ctx, false, p, nil)
			return true
		}
		return false
	case *messages.AckFinals:
		return !exists
	case *messages.StartSession, *messages.SubmitTurn, *messages.RecordEvents, *messages.Subscribe:
		return false
	}
	return true
}

func (s *Session) ifExists(ctx actor.Context, exists bool, p *pending, do func()) {
	if !exists {
		s.answer(p, messages.Fail(messages.CodeUnknownSession, fmt.Sprintf("no session %q", s.key.Session)))
		s.settle(ctx)
		return
	}
	do()
}

// prepare turns a command that may record something into what core decides on.
func (s *Session) prepare(p *pending, cmd messages.Command) *messages.Failure {
	switch m := cmd.(type) {
	case *messages.StartSession:
		p.cmd = core.Start{Config: m.GetConfig()}
	case *messages.SubmitTurn:
		p.turnID = messages.NewTurnID()
		p.cmd = core.Submit{Request: m, TurnID: p.turnID}
		if m.GetSubscribe() && p.sender != nil {
			p.applied = func(ctx actor.Context) { s.subscribe(ctx, p.sender, false, true) }
		}
	case *messages.RecordEvents:
		events, f := decodeEvents(m.GetEvents())
		if f != nil {
			return f
		}
		p.cmd = core.Record{Events: events, Expected: m.ExpectedSequence}
	case *messages.Abort:
		p.cmd = core.Abort{Request: m}
	case *messages.Withdraw:
		if m.GetTurnId() == "" {
			return messages.Fail(messages.CodeInvalidField, "turn_id is missing")
		}
		p.cmd = core.Withdraw{TurnID: m.GetTurnId()}
	case *messages.KeepRunAlive:
		p.cmd = core.KeepAlive{RunID: m.GetRunId(), Decision: m.GetDecision()}
	case *messages.AckFinals:
		p.cmd = core.Ack{Seq: m.GetSeq()}
	case *messages.Subscribe:
		p.cmd = core.Touch{}
		p.applied = func(ctx actor.Context) { s.subscribed(ctx, p, m) }
	case *messages.Unsubscribe, *messages.GetSession, *messages.GetTurn, *messages.GetContext, *messages.Explain:
		return messages.Fail(messages.CodeInternal, "a read was taken for a command")
	}
	return nil
}

func decodeEvents(encoded []*messages.EncodedEvent) ([]messages.Event, *messages.Failure) {
	events := make([]messages.Event, len(encoded))
	for i, e := range encoded {
		event, err := messages.DecodeEvent(e.GetType(), e.GetVersion(), e.GetPayload())
		if err == nil && event.EventType() != (*messages.SteeringNoteAdded)(nil).EventType() { // core refuses that one
			err = messages.ValidateEvent(event)
		}
		if err != nil {
			return nil, messages.Fail(messages.CodeInvalidEvent, fmt.Sprintf("events[%d]: %v", i, err))
		}
		events[i] = event
	}
	return events, nil
}

// report takes a report of the run.
func (s *Session) report(ctx actor.Context, cmd core.Command) {
	if s.stage != stageReady {
		return // of a run of an earlier incarnation
	}
	s.pending = append(s.pending, &pending{cmd: cmd, internal: true})
	s.drive(ctx)
}

func (s *Session) view() *messages.SessionView {
	v := s.state.View()
	v.Node = s.deps.Owner.Node
	return v
}
