package protocol

import (
	"encoding/json"
	"fmt"
)

// StartSession makes a session or changes the settings of an existing one. Answer: SessionStarted.
type StartSession struct {
	ID string `json:"id,omitempty"`
	// SessionID; "" asks the server to make one.
	SessionID string `json:"session_id,omitempty"`
	// Config; nil leaves the settings as they are.
	Config *SessionConfig `json:"config,omitempty"`
}

// SessionConfig is a session's own settings; an unset one is the server's.
type SessionConfig struct {
	Model                string  `json:"model,omitempty"`
	QueueMode            string  `json:"queue_mode,omitempty"`
	ConversationKeepLast *uint32 `json:"conversation_keep_last,omitempty"`
	TokenBudget          *uint32 `json:"token_budget,omitempty"`
}

// ChatInput asks for one turn. Answer: TurnAccepted.
type ChatInput struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Text      string `json:"text"`
	// Mode is ModeChat or ModeSteering; a decoded frame always has one.
	Mode string `json:"mode,omitempty"`
	// QueueMode in lower case; "" is the session's own.
	QueueMode      string       `json:"queue_mode,omitempty"`
	IdempotencyKey string       `json:"idempotency_key,omitempty"`
	Resume         *ResumeToken `json:"resume,omitempty"`
	Sender         string       `json:"sender,omitempty"`
	Model          string       `json:"model,omitempty"`
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// Explain asks what ChatInput would do now; nothing is done. Answer: Explanation.
type Explain struct{ ChatInput }

// ResumeToken names a conversation that an engine keeps on its own side.
type ResumeToken struct {
	Engine string `json:"engine"`
	Token  string `json:"token"`
}

// Attachment travels with a turn; Data is never empty and is base64 on the wire.
type Attachment struct {
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

// Subscribe asks for a session's output. Answer: Subscribed, then items; a second one on a connection replaces the first.
type Subscribe struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	// AfterSeq: nil = only new items, 0 = all that are kept.
	AfterSeq *uint64 `json:"after_seq,omitempty"`
	// Events asks for SessionEvent as well.
	Events bool `json:"events,omitempty"`
	// AfterEvent is the last sequence of the event log that the client has; nil = only new events.
	AfterEvent *uint64 `json:"after_event,omitempty"`
}

// Unsubscribe ends this connection's subscription. Answer: Unsubscribed.
type Unsubscribe struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
}

// Abort stops work. Answer: Aborted.
type Abort struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	// Scope is ScopeRun, ScopeTurn or ScopeSession; a decoded frame always has one.
	Scope  string `json:"scope,omitempty"`
	TurnID string `json:"turn_id,omitempty"`
	RunID  string `json:"run_id,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Withdraw takes back a turn that no run has taken. Answer: Withdrawn.
type Withdraw struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
}

// KeepRunAlive says what becomes of a run that waits for a user's word. Answer: OK.
type KeepRunAlive struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	// Decision is DecisionContinue or DecisionCancel.
	Decision string `json:"decision"`
}

// GetTurn asks for a turn by its id or by its idempotency key, exactly one of them. Answer: Turn.
type GetTurn struct {
	ID             string `json:"id,omitempty"`
	SessionID      string `json:"session_id"`
	TurnID         string `json:"turn_id,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// GetSession asks for a session's state. Answer: Session.
type GetSession struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
}

// RecordEvents appends workflow events, all or none. Answer: EventsRecorded.
type RecordEvents struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	// Events are JSON objects; what they mean is not known here.
	Events []json.RawMessage `json:"events,omitempty"`
	// ExpectedSequence is the last sequence that the event log must have; nil = no check.
	ExpectedSequence *uint64 `json:"expected_sequence,omitempty"`
}

// Ack acknowledges all finals up to an item. No answer.
type Ack struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	Seq       uint64 `json:"seq"`
}

// Ping asks for a Pong; for clients that cannot send control frames.
type Ping struct {
	ID string `json:"id,omitempty"`
}

// Chat modes.
const (
	ModeChat     = "CHAT"
	ModeSteering = "STEERING"
)

// Scopes of Abort.
const (
	ScopeRun     = "run"
	ScopeTurn    = "turn"
	ScopeSession = "session"
)

// Decisions of KeepRunAlive.
const (
	DecisionContinue = "continue"
	DecisionCancel   = "cancel"
)

// SetIdempotencyKey takes over the key of an HTTP header; "" changes nothing. A key that differs from the body's is
// refused with invalid_field.
func (f *ChatInput) SetIdempotencyKey(key string) *Error {
	if key == "" || key == f.IdempotencyKey {
		return nil
	}
	refuse := func(message string) *Error {
		return &Error{ID: f.ID, SessionID: f.SessionID, Code: CodeInvalidField, Message: message}
	}
	if f.IdempotencyKey != "" {
		return refuse("idempotency_key differs from the Idempotency-Key header")
	}
	if len(key) > MaxIdempotencyKey {
		return refuse(fmt.Sprintf("idempotency key has %d bytes, at most %d are allowed", len(key), MaxIdempotencyKey))
	}
	f.IdempotencyKey = key
	return nil
}

func (*StartSession) isClientFrame() {}
func (*ChatInput) isClientFrame()    {}
func (*Explain) isClientFrame()      {}
func (*Subscribe) isClientFrame()    {}
func (*Unsubscribe) isClientFrame()  {}
func (*Abort) isClientFrame()        {}
func (*Withdraw) isClientFrame()     {}
func (*KeepRunAlive) isClientFrame() {}
func (*GetTurn) isClientFrame()      {}
func (*GetSession) isClientFrame()   {}
func (*RecordEvents) isClientFrame() {}
func (*Ack) isClientFrame()          {}
func (*Ping) isClientFrame()         {}

// FrameType is "start_session".
func (*StartSession) FrameType() string { return "start_session" }

// FrameType is "chat_input".
func (*ChatInput) FrameType() string { return "chat_input" }

// FrameType is "explain".
func (*Explain) FrameType() string { return "explain" }

// FrameType is "subscribe".
func (*Subscribe) FrameType() string { return "subscribe" }

// FrameType is "unsubscribe".
func (*Unsubscribe) FrameType() string { return "unsubscribe" }

// FrameType is "abort".
func (*Abort) FrameType() string { return "abort" }

// FrameType is "withdraw".
func (*Withdraw) FrameType() string { return "withdraw" }

// FrameType is "keep_run_alive".
func (*KeepRunAlive) FrameType() string { return "keep_run_alive" }

// FrameType is "get_turn".
func (*GetTurn) FrameType() string { return "get_turn" }

// FrameType is "get_session".
func (*GetSession) FrameType() string { return "get_session" }

// FrameType is "record_events".
func (*RecordEvents) FrameType() string { return "record_events" }

// FrameType is "ack".
func (*Ack) FrameType() string { return "ack" }

// FrameType is "ping".
func (*Ping) FrameType() string { return "ping" }

// FrameID implements ClientFrame.
func (f *StartSession) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *ChatInput) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *Subscribe) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *Unsubscribe) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *Abort) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *Withdraw) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *KeepRunAlive) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *GetTurn) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *GetSession) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *RecordEvents) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *Ack) FrameID() string { return f.ID }

// FrameID implements ClientFrame.
func (f *Ping) FrameID() string { return f.ID }
