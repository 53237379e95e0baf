package gateway

import (
	"encoding/json"
	"fmt"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// The files translate_in.go and translate_out.go are the only place where frames become messages and messages frames.

// commandOf gives the command that a client's frame asks for. Ping and Ack are no requests: they have been handled.
func commandOf(f protocol.ClientFrame) (*incoming, *protocol.Error) {
	in := &incoming{id: f.FrameID()}
	switch f := f.(type) {
	case *protocol.StartSession:
		in.key = sessionKey(f.SessionID)
		if f.SessionID == "" {
			in.key = messages.NewKey(messages.NewSessionID())
		}
		in.cmd = &messages.StartSession{Config: configOf(f.Config)}
	case *protocol.ChatInput:
		turn := turnOf(f)
		turn.Subscribe = true
		in.key, in.cmd = sessionKey(f.SessionID), turn
	case *protocol.Explain:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.Explain{Turn: turnOf(&f.ChatInput)}
	case *protocol.Subscribe:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.Subscribe{AfterSeq: f.AfterSeq, Events: f.Events}
		in.afterEvent = f.AfterEvent
	case *protocol.Unsubscribe:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.Unsubscribe{}
	case *protocol.Abort:
		in.key, in.cmd = sessionKey(f.SessionID), abortOf(f)
	case *protocol.Withdraw:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.Withdraw{TurnId: f.TurnID}
	case *protocol.KeepRunAlive:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.KeepRunAlive{RunId: f.RunID, Decision: f.Decision}
	case *protocol.GetTurn:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.GetTurn{TurnId: f.TurnID, IdempotencyKey: f.IdempotencyKey}
	case *protocol.GetSession:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.GetSession{}
	case *protocol.RecordEvents:
		in.key = sessionKey(f.SessionID)
		encoded, failure := encodedEvents(f.Events)
		if failure != nil {
			return nil, failureFrame(f.ID, in.key, failure)
		}
		in.cmd = &messages.RecordEvents{Events: encoded, ExpectedSequence: f.ExpectedSequence}
	case *protocol.Ack:
		in.key, in.cmd = sessionKey(f.SessionID), &messages.AckFinals{Seq: f.Seq}
	case *protocol.Ping:
		return nil, &protocol.Error{ID: f.ID, Code: protocol.CodeInternal, Message: "a ping was taken for a request"}
	}
	return in, nil
}

// configOf gives what a session shall use from now on; an absent config names nothing.
func configOf(c *protocol.SessionConfig) *messages.SessionConfig {
	if c == nil {
		return &messages.SessionConfig{}
	}
	return &messages.SessionConfig{
		Model: known(c.Model), QueueMode: known(c.QueueMode),
		ConversationKeepLast: c.ConversationKeepLast, TokenBudget: c.TokenBudget,
	}
}

// known gives nil for an empty string.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func turnOf(f *protocol.ChatInput) *messages.SubmitTurn {
	turn := &messages.SubmitTurn{
		Text: f.Text, Mode: f.Mode, QueueMode: f.QueueMode, IdempotencyKey: f.IdempotencyKey, Sender: f.Sender, Model: f.Model,
	}
	if f.Resume != nil {
		turn.Resume = &messages.ResumeToken{Engine: f.Resume.Engine, Token: f.Resume.Token}
	}
	for _, a := range f.Attachments {
		turn.Attachments = append(turn.Attachments, &messages.Attachment{Name: a.Name, MediaType: a.MediaType, Data: a.Data})
	}
	return turn
}

func abortOf(f *protocol.Abort) *messages.Abort {
	return &messages.Abort{Scope: f.Scope, TurnId: f.TurnID, RunId: f.RunID, Reason: f.Reason}
}

// eventsOf reads the events of a host. The failure names the first one that may not be recorded.
func eventsOf(raw []json.RawMessage) ([]messages.Event, *messages.Failure) {
	events := make([]messages.Event, len(raw))
	for i, b := range raw {
		e, err := messages.EventFromJSON(b)
		var name struct{ Type string }
		if err == nil {
			name.Type = e.EventType()
		} else {
			_ = json.Unmarshal(b, &name) // what cannot be read has no name
		}
		switch {
		case name.Type == (*messages.SteeringNoteAdded)(nil).EventType():
			return nil, messages.Fail(messages.CodeForbiddenEvent, fmt.Sprintf("events[%d]: %s is written by the router only", i, name.Type))
		case err != nil:
			return nil, messages.Fail(messages.CodeInvalidEvent, fmt.Sprintf("events[%d]: %v", i, err))
		}
		events[i] = e
	}
	return events, nil
}

func encodedEvents(raw []json.RawMessage) ([]*messages.EncodedEvent, *messages.Failure) {
	events, failure := eventsOf(raw)
	if failure != nil {
		return nil, failure
	}
	encoded := make([]*messages.EncodedEvent, len(events))
	for i, e := range events {
		var err error
		if encoded[i], err = messages.EncodeEvent(e); err != nil {
			return nil, messages.Fail(messages.CodeInvalidEvent, fmt.Sprintf("events[%d]: %v", i, err))
		}
	}
	return encoded, nil
}
