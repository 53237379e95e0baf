package protocol

import (
	"encoding/json"
	"time"
)

// Body is an HTTP answer that is no frame. Frames are answers too: turn_accepted, explanation, withdrawn, turn, session,
// events_recorded, aborted and router_response are sent as they are.
//
//sumtype:decl
type Body interface {
	isBody()
}

// ErrorBody is the body of every HTTP answer that refuses something.
type ErrorBody struct {
	Error Failure `json:"error"`
}

// SessionsPage is a page of the list of sessions.
type SessionsPage struct {
	Sessions List[SessionSummary] `json:"sessions"`
	// Next is the value of "after" for the next page; "" (absent) on the last one. A page that is not the last may be short.
	Next string `json:"next,omitempty"`
}

// SessionSummary is one session in a list.
type SessionSummary struct {
	SessionID string `json:"session_id"`
	// State is SessionBusy, SessionIdle, SessionPassivated or SessionQuarantined.
	State string `json:"state"`
	// SessionRow's fields are absent (nil) if the session's row is damaged: nothing but its id is known.
	*SessionRow
}

// SessionRow is what is kept of a session in one place, as of its last append.
type SessionRow struct {
	EventSequence uint64 `json:"event_sequence"`
	Epoch         uint64 `json:"epoch"`
	// Running: a run is active; of a session that is not in memory: one was when its process ended, and will go on.
	Running bool `json:"running"`
	// Waiting turns: those in the queue, merged ones too, and those that are offered to the run.
	Waiting uint32 `json:"waiting"`
	// UpdatedAt is the time of the last append: the session's last activity. Reading does not count.
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// States of a session in a list; each has exactly one.
const (
	// SessionBusy: in memory, with a turn that has not ended.
	SessionBusy = "busy"
	// SessionIdle: in memory, and all its turns have ended.
	SessionIdle = "idle"
	// SessionPassivated: not in memory. Work that it has is left by a server that ended.
	SessionPassivated = "passivated"
	// SessionQuarantined: it serves nothing, since its row or its records are damaged.
	SessionQuarantined = "quarantined"
)

// EventsPage is a page of a session's event log.
type EventsPage struct {
	Events List[StoredEvent] `json:"events"`
	// Next is the value of "after" for the next page.
	Next uint64 `json:"next"`
}

// StoredEvent is an event with its place in the event log; also a line of the export.
type StoredEvent struct {
	SessionID  string    `json:"session_id"`
	Sequence   uint64    `json:"sequence"`
	RecordedAt time.Time `json:"recorded_at,omitzero"`
	// Event is a JSON object; what it means is not known here.
	Event json.RawMessage `json:"event,omitempty"`
}

// StagesPage is a page of a session's stage outcomes (L2), oldest to newest.
type StagesPage struct {
	Stages List[Stage] `json:"stages"`
	// Next is the value of "after" for the next page: how many outcomes this page and those before it have.
	Next uint64 `json:"next"`
}

// ContextPack explains what a turn's prompt would hold now.
type ContextPack struct {
	// Entries in the order of the prompt, with those that were dropped.
	Entries List[ContextEntry] `json:"entries"`
	// Budget and Tokens (of the kept entries) are counts of tokens.
	Budget uint32 `json:"budget"`
	Tokens uint32 `json:"tokens"`
	// OverBudget: what is never dropped alone exceeds the budget.
	OverBudget bool   `json:"over_budget"`
	Tokenizer  string `json:"tokenizer"`
}

// ContextEntry is one entry of a context pack.
type ContextEntry struct {
	// Layer is L0, L1 or L2.
	Layer string `json:"layer"`
	// Role is system, user or assistant.
	Role    string `json:"role"`
	Content string `json:"content"`
	Tokens  uint32 `json:"tokens"`
	Kept    bool   `json:"kept"`
	// Reason says why it was kept or dropped.
	Reason string `json:"reason"`
}

func (*ErrorBody) isBody()    {}
func (*SessionsPage) isBody() {}
func (*EventsPage) isBody()   {}
func (*StoredEvent) isBody()  {}
func (*StagesPage) isBody()   {}
func (*ContextPack) isBody()  {}

// Body is the HTTP answer that says the same as f.
func (f *Error) Body() *ErrorBody {
	return &ErrorBody{Error: Failure{Code: f.Code, Message: f.Message, Retryable: f.Retryable}}
}
