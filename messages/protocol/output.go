package protocol

import (
	"encoding/json"
	"time"
)

// Item is the head of every numbered output item.
type Item struct {
	SessionID string `json:"session_id"`
	// Seq rises by one from item to item of a session, from 1; the same numbers for every subscriber. Absent (0) in the answer
	// to a request about a turn whose final is not kept any more.
	Seq uint64 `json:"seq,omitempty"`
}

// Place implements OutputItem.
func (i *Item) Place() (sessionID string, seq uint64) { return i.SessionID, i.Seq }

// RunPhase tells that a run has entered a phase.
type RunPhase struct {
	Item
	RunID         string       `json:"run_id"`
	TurnIDs       List[string] `json:"turn_ids"`
	Phase         string       `json:"phase"`
	PreviousPhase string       `json:"previous_phase,omitempty"`
	// Attempt counts from 1; 0 (absent) before the first.
	Attempt uint32 `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// StreamDelta adds text to the running answer.
type StreamDelta struct {
	Item
	RunID   string `json:"run_id"`
	Attempt uint32 `json:"attempt"`
	// Offset is the number of bytes of UTF-8 before Text in this attempt.
	Offset uint64 `json:"offset"`
	Text   string `json:"text"`
}

// StreamSnapshot replaces the running answer: Text is all of it so far.
type StreamSnapshot struct {
	Item
	RunID   string `json:"run_id"`
	Attempt uint32 `json:"attempt"`
	Text    string `json:"text"`
}

// StreamFinalize closes a streamed answer; Text is all of it.
type StreamFinalize struct {
	Item
	RunID   string `json:"run_id"`
	Attempt uint32 `json:"attempt"`
	Text    string `json:"text"`
	Outcome string `json:"outcome"`
}

// ToolStatus is the newest state of a run's tool calls.
type ToolStatus struct {
	Item
	RunID   string       `json:"run_id"`
	Actions List[Action] `json:"actions"`
	// Final: none of them changes any more.
	Final bool `json:"final"`
}

// Action is one tool call.
type Action struct {
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	Kind     string `json:"kind"`
	Title    string `json:"title"`
	// Phase is started, updated or completed.
	Phase string `json:"phase"`
	// OK of a completed action; nil before.
	OK *bool `json:"ok,omitempty"`
	// Error of one that failed; nil = none.
	Error *ActionError `json:"error,omitempty"`
}

// ActionError says why an action failed, as far as that is safe to show.
type ActionError struct {
	ErrorType        string       `json:"error_type,omitempty"`
	Tool             string       `json:"tool,omitempty"`
	TimeoutMS        uint64       `json:"timeout_ms,omitempty"`
	ExitCode         *int32       `json:"exit_code,omitempty"`
	Exception        string       `json:"exception,omitempty"`
	Status           string       `json:"status,omitempty"`
	Reason           string       `json:"reason,omitempty"`
	Message          string       `json:"message,omitempty"`
	ValidationErrors List[string] `json:"validation_errors"`
}

// WatchdogPrompt asks whether a run that shows no life is to go on: KeepRunAlive answers.
type WatchdogPrompt struct {
	Item
	RunID string `json:"run_id"`
	Text  string `json:"text"`
}

// TurnState announces a turn's end, once.
type TurnState struct {
	Item
	TurnID          string `json:"turn_id"`
	State           string `json:"state"`
	Reason          string `json:"reason,omitempty"`
	RunID           string `json:"run_id,omitempty"`
	MergedInto      string `json:"merged_into,omitempty"`
	SteeredInto     string `json:"steered_into,omitempty"`
	SteeringEmitted bool   `json:"steering_emitted"`
}

// RouterResponse is the last item of its run, exactly one for each run that started.
type RouterResponse struct {
	Item
	RunID string `json:"run_id"`
	// TurnID is the first of TurnIDs, all turns that it answers.
	TurnID          string       `json:"turn_id"`
	TurnIDs         List[string] `json:"turn_ids"`
	Content         string       `json:"content"`
	SteeringEmitted bool         `json:"steering_emitted"`
	// Outcome is completed, failed, cancelled, interrupted or incomplete.
	Outcome      string              `json:"outcome"`
	FinishReason string              `json:"finish_reason,omitempty"`
	Usage        *Usage              `json:"usage,omitempty"`
	Attachments  List[AttachmentRef] `json:"attachments"`
	Error        *Failure            `json:"error,omitempty"`
}

// Usage counts tokens; unknown counts are nil, never 0.
type Usage struct {
	InputTokens  *uint64 `json:"input_tokens,omitempty"`
	OutputTokens *uint64 `json:"output_tokens,omitempty"`
	// Source is reported, estimated or unknown.
	Source string `json:"source"`
}

// AttachmentRef is a file of an answer, fetched by id.
type AttachmentRef struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Size      int64  `json:"size"`
}

// Failure is why something failed; the value of "error" in a RouterResponse and in HTTP answers.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Notice is a line for people.
type Notice struct {
	Item
	RunID string `json:"run_id,omitempty"`
	Text  string `json:"text"`
}

// SessionEvent is an event of the event log, with the log's own number, for a subscriber that asked for events.
type SessionEvent struct {
	SessionID string `json:"session_id"`
	Sequence  uint64 `json:"sequence"`
	// RecordedAt is what a client needs to build the same state as the router.
	RecordedAt time.Time `json:"recorded_at,omitzero"`
	// Event is a JSON object; what it means is not known here.
	Event json.RawMessage `json:"event,omitempty"`
}

// Gap tells one subscriber that items are not kept any more; a Resync follows.
type Gap struct {
	SessionID string `json:"session_id"`
	FromSeq   uint64 `json:"from_seq"`
	ToSeq     uint64 `json:"to_seq"`
}

// Resync brings one subscriber up to date; items go on with UpToSeq + 1.
type Resync struct {
	SessionID string `json:"session_id"`
	UpToSeq   uint64 `json:"up_to_seq"`
	State     *State `json:"state,omitempty"`
	// RunID, Attempt and Text are the running answer so far, if one runs.
	RunID   string `json:"run_id,omitempty"`
	Attempt uint32 `json:"attempt,omitempty"`
	Text    string `json:"text,omitempty"`
}

func (*RunPhase) isServerFrame()       {}
func (*StreamDelta) isServerFrame()    {}
func (*StreamSnapshot) isServerFrame() {}
func (*StreamFinalize) isServerFrame() {}
func (*ToolStatus) isServerFrame()     {}
func (*WatchdogPrompt) isServerFrame() {}
func (*TurnState) isServerFrame()      {}
func (*RouterResponse) isServerFrame() {}
func (*Notice) isServerFrame()         {}
func (*SessionEvent) isServerFrame()   {}
func (*Gap) isServerFrame()            {}
func (*Resync) isServerFrame()         {}

// FrameType is "run_phase".
func (*RunPhase) FrameType() string { return "run_phase" }

// FrameType is "stream_delta".
func (*StreamDelta) FrameType() string { return "stream_delta" }

// FrameType is "stream_snapshot".
func (*StreamSnapshot) FrameType() string { return "stream_snapshot" }

// FrameType is "tool_status".
func (*ToolStatus) FrameType() string { return "tool_status" }

// FrameType is "watchdog_prompt".
func (*WatchdogPrompt) FrameType() string { return "watchdog_prompt" }

// FrameType is "stream_finalize".
func (*StreamFinalize) FrameType() string { return "stream_finalize" }

// FrameType is "turn_state".
func (*TurnState) FrameType() string { return "turn_state" }

// FrameType is "router_response".
func (*RouterResponse) FrameType() string { return "router_response" }

// FrameType is "notice".
func (*Notice) FrameType() string { return "notice" }

// FrameType is "session_event".
func (*SessionEvent) FrameType() string { return "session_event" }

// FrameType is "gap".
func (*Gap) FrameType() string { return "gap" }

// FrameType is "resync".
func (*Resync) FrameType() string { return "resync" }
