package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Decode reads a client's frame. The Error is the frame to answer with; it carries the frame's id and session id if those
// can be read. What is returned does not share b.
func Decode(b []byte) (ClientFrame, *Error) {
	o, ok := parse(b)
	if !ok {
		return nil, badFrame()
	}
	o.identify()
	id := o.refusal.ID
	var f ClientFrame
	switch name := o.frameType(); name {
	case (*StartSession)(nil).FrameType():
		f = &StartSession{ID: id, SessionID: o.sessionID(false), Config: o.config()}
	case (*ChatInput)(nil).FrameType():
		f = o.chatInput(o.sessionID(true))
	case (*Explain)(nil).FrameType():
		f = &Explain{ChatInput: *o.chatInput(o.sessionID(true))}
	case (*Subscribe)(nil).FrameType():
		f = &Subscribe{
			ID: id, SessionID: o.sessionID(true),
			AfterSeq: count[uint64](o, "after_seq"), Events: o.flag("events"), AfterEvent: count[uint64](o, "after_event"),
		}
	case (*Unsubscribe)(nil).FrameType():
		f = &Unsubscribe{ID: id, SessionID: o.sessionID(true)}
	case (*Abort)(nil).FrameType():
		f = o.abort(o.sessionID(true))
	case (*Withdraw)(nil).FrameType():
		f = o.withdraw(o.sessionID(true))
	case (*KeepRunAlive)(nil).FrameType():
		f = o.keepRunAlive(o.sessionID(true))
	case (*GetTurn)(nil).FrameType():
		f = o.getTurn(o.sessionID(true))
	case (*GetSession)(nil).FrameType():
		f = &GetSession{ID: id, SessionID: o.sessionID(true)}
	case (*RecordEvents)(nil).FrameType():
		f = o.recordEvents(o.sessionID(true))
	case (*Ack)(nil).FrameType():
		f = &Ack{ID: id, SessionID: o.sessionID(true), Seq: o.seq()}
	case (*Ping)(nil).FrameType():
		f = &Ping{ID: id}
	default:
		o.refuse(CodeUnknownType, "no frame has the type %.64q", name)
	}
	if o.refusal.Code != "" {
		return nil, o.refusal
	}
	return f, nil
}

// DecodeTurnBody reads the body of POST …/turns: a chat_input without type and session_id, which the path gives.
func DecodeTurnBody(sessionID string, b []byte) (*ChatInput, *Error) {
	return decodeBody(sessionID, b, object.chatInput)
}

// DecodeExplainBody reads the body of POST …/explain: as that of POST …/turns.
func DecodeExplainBody(sessionID string, b []byte) (*Explain, *Error) {
	f, refusal := DecodeTurnBody(sessionID, b)
	if refusal != nil {
		return nil, refusal
	}
	return &Explain{ChatInput: *f}, nil
}

// DecodeEventsBody reads the body of POST …/events: a record_events without type and session_id.
func DecodeEventsBody(sessionID string, b []byte) (*RecordEvents, *Error) {
	return decodeBody(sessionID, b, object.recordEvents)
}

// DecodeAbortBody reads the body of POST …/abort: an abort without type and session_id; it may be empty.
func DecodeAbortBody(sessionID string, b []byte) (*Abort, *Error) {
	if len(b) == 0 {
		b = []byte("{}")
	}
	return decodeBody(sessionID, b, object.abort)
}

func decodeBody[T any](sessionID string, b []byte, read func(object, string) *T) (*T, *Error) {
	o, ok := parse(b)
	if !ok {
		return nil, badFrame()
	}
	o.identify()
	o.refusal.SessionID = ""
	if err := CheckSessionID(sessionID); err != nil {
		o.refuse(CodeInvalidSessionID, "%v", err)
	} else {
		o.refusal.SessionID = sessionID
	}
	f := read(o, sessionID)
	if o.refusal.Code != "" {
		return nil, o.refusal
	}
	return f, nil
}

// CheckSessionID says what is wrong with a session id: 1 to MaxSessionID bytes of A-Z a-z 0-9 . _ ~ : -.
func CheckSessionID(s string) error {
	if s == "" || len(s) > MaxSessionID {
		return fmt.Errorf("session_id has %d bytes, want 1 to %d", len(s), MaxSessionID)
	}
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._~:-", c) >= 0 {
			continue
		}
		return fmt.Errorf("session_id has byte %q at %d, allowed are A-Z a-z 0-9 . _ ~ : -", c, i)
	}
	return nil
}

func badFrame() *Error {
	return &Error{Code: CodeBadFrame, Message: fmt.Sprintf("not one JSON object in UTF-8 of at most %d levels", MaxDepth)}
}

// identify puts the frame's id and session id into the refusal, so that every one tells what it is about.
func (o object) identify() {
	if id := o.text("id"); len(id) > MaxID {
		o.refuse(CodeInvalidField, "id has %d bytes, at most %d are allowed", len(id), MaxID)
	} else {
		o.refusal.ID = id
	}
	var session string
	if json.Unmarshal(o.members["session_id"], &session) == nil && CheckSessionID(session) == nil {
		o.refusal.SessionID = session
	}
}

func (o object) frameType() string {
	o.required("type")
	return o.text("type")
}

func (o object) sessionID(required bool) string {
	if required && !o.required("session_id") {
		return ""
	}
	s, ok := o.textOr(CodeInvalidSessionID, "session_id")
	if !ok {
		return ""
	}
	if err := CheckSessionID(s); err != nil {
		o.refuse(CodeInvalidSessionID, "%v", err)
	}
	return s
}

func (o object) config() *SessionConfig {
	c, ok := o.object("config")
	if !ok {
		return nil
	}
	return &SessionConfig{
		Model:                c.text("model"),
		QueueMode:            c.queueMode(),
		ConversationKeepLast: count[uint32](c, "conversation_keep_last"),
		TokenBudget:          count[uint32](c, "token_budget"),
	}
}

func (o object) chatInput(sessionID string) *ChatInput {
	return &ChatInput{
		ID: o.refusal.ID, SessionID: sessionID,
		Text:           o.input(),
		Mode:           o.mode(),
		QueueMode:      o.queueMode(),
		IdempotencyKey: o.idempotencyKey(),
		Resume:         o.resume(),
		Sender:         o.text("sender"),
		Model:          o.text("model"),
		Attachments:    o.attachments(),
	}
}

func (o object) input() string {
	o.required("text")
	s, ok := o.textOr(CodeInvalidField, "text")
	if ok && strings.TrimSpace(s) == "" {
		o.refuse(CodeEmptyInput, "text is empty or only white space")
	}
	return s
}

func (o object) mode() string {
	mode, ok := o.textOr(CodeInvalidMode, "mode")
	if !ok {
		return ModeChat
	}
	if mode != ModeChat && mode != ModeSteering {
		o.refuse(CodeInvalidMode, "%smode is not %s or %s", o.path, ModeChat, ModeSteering)
	}
	return mode
}

// queueModes are the names, which clients may write in any case.
var queueModes = []string{"collect", "followup", "steer", "steer_backlog", "interrupt"}

func (o object) queueMode() string {
	given, ok := o.textOr(CodeInvalidQueueMode, "queue_mode")
	if !ok {
		return ""
	}
	for _, mode := range queueModes {
		if strings.EqualFold(given, mode) {
			return mode
		}
	}
	o.refuse(CodeInvalidQueueMode, "%squeue_mode is not one of %s", o.path, strings.Join(queueModes, ", "))
	return ""
}

func (o object) idempotencyKey() string {
	key := o.name("idempotency_key")
	if len(key) > MaxIdempotencyKey {
		o.refuse(CodeInvalidField, "idempotency_key has %d bytes, at most %d are allowed", len(key), MaxIdempotencyKey)
	}
	return key
}

func (o object) resume() *ResumeToken {
	r, ok := o.object("resume")
	if !ok {
		return nil
	}
	r.required("engine")
	r.required("token")
	return &ResumeToken{Engine: r.name("engine"), Token: r.name("token")}
}

func (o object) attachments() []Attachment {
	items := o.list("attachments")
	if len(items) == 0 {
		return nil
	}
	out := make([]Attachment, 0, len(items))
	for i, raw := range items {
		a, ok := o.child(raw, fmt.Sprintf("attachments[%d]", i))
		if !ok {
			return nil
		}
		out = append(out, Attachment{Name: a.text("name"), MediaType: a.text("media_type"), Data: a.data("data")})
	}
	return out
}

func (o object) abort(sessionID string) *Abort {
	f := &Abort{
		ID: o.refusal.ID, SessionID: sessionID,
		Scope:  o.text("scope"),
		TurnID: o.name("turn_id"), RunID: o.name("run_id"),
		Reason: o.text("reason"),
	}
	if _, ok := o.raw("scope"); !ok {
		f.Scope = ScopeRun
	}
	switch f.Scope {
	case ScopeRun, ScopeSession:
	case ScopeTurn:
		if f.TurnID == "" && f.RunID == "" {
			o.refuse(CodeInvalidField, "turn_id is missing, the scope is %s", ScopeTurn)
		}
	default:
		o.refuse(CodeInvalidField, "scope is not %s, %s or %s", ScopeRun, ScopeTurn, ScopeSession)
	}
	return f
}

func (o object) withdraw(sessionID string) *Withdraw {
	o.required("turn_id")
	return &Withdraw{ID: o.refusal.ID, SessionID: sessionID, TurnID: o.name("turn_id")}
}

func (o object) keepRunAlive(sessionID string) *KeepRunAlive {
	o.required("run_id")
	o.required("decision")
	f := &KeepRunAlive{ID: o.refusal.ID, SessionID: sessionID, RunID: o.name("run_id"), Decision: o.name("decision")}
	if f.Decision != DecisionContinue && f.Decision != DecisionCancel {
		o.refuse(CodeInvalidField, "decision is not %s or %s", DecisionContinue, DecisionCancel)
	}
	return f
}

func (o object) getTurn(sessionID string) *GetTurn {
	f := &GetTurn{
		ID: o.refusal.ID, SessionID: sessionID,
		TurnID: o.name("turn_id"), IdempotencyKey: o.idempotencyKey(),
	}
	if (f.TurnID == "") == (f.IdempotencyKey == "") {
		o.refuse(CodeInvalidField, "want turn_id or idempotency_key, one of them")
	}
	return f
}

func (o object) recordEvents(sessionID string) *RecordEvents {
	o.required("events")
	f := &RecordEvents{
		ID: o.refusal.ID, SessionID: sessionID,
		Events: o.list("events"), ExpectedSequence: count[uint64](o, "expected_sequence"),
	}
	if n := len(f.Events); n == 0 || n > MaxEvents {
		o.refuse(CodeInvalidField, "events has %d items, want 1 to %d", n, MaxEvents)
	}
	for i, e := range f.Events {
		if e[0] != '{' {
			o.refuse(CodeInvalidEvent, "events[%d] is not an object", i)
		}
	}
	return f
}

func (o object) seq() uint64 {
	o.required("seq")
	if n := count[uint64](o, "seq"); n != nil {
		return *n
	}
	return 0
}
