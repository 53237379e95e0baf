package protocol

// Hello is the first frame of every connection.
type Hello struct {
	Protocol string `json:"protocol"`
	// Server is the server's version.
	Server string `json:"server"`
	Node   string `json:"node,omitempty"`
	// MaxFrameBytes bounds a frame of the client; a longer one closes the connection with 1009.
	MaxFrameBytes int64 `json:"max_frame_bytes"`
	// HeartbeatMS is the interval of control pings; a peer silent for two of them is gone.
	HeartbeatMS int64 `json:"heartbeat_ms"`
}

// SessionStarted answers StartSession.
type SessionStarted struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	State     *State `json:"state,omitempty"`
}

// TurnAccepted answers ChatInput once the turn is durable.
type TurnAccepted struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	// RunID of the run that will answer this turn.
	RunID string `json:"run_id,omitempty"`
	// Disposition is started, queued, merged, steering or duplicate.
	Disposition string `json:"disposition"`
	// Position counts the turns before it; 0 = next.
	Position   uint32 `json:"position"`
	MergedInto string `json:"merged_into,omitempty"`
	// State of the turn.
	State string `json:"state"`
}

// Explanation answers Explain: what would become of the turn now.
type Explanation struct {
	ID string `json:"id,omitempty"`
	// Disposition is started, queued, merged, steering or duplicate.
	Disposition string `json:"disposition"`
	// Position counts the turns before it; 0 = next.
	Position   uint32 `json:"position"`
	MergedInto string `json:"merged_into,omitempty"`
	// QueueMode is the one that would take effect.
	QueueMode string `json:"queue_mode"`
	// Reason is for people.
	Reason string `json:"reason,omitempty"`
}

// Subscribed answers Subscribe; items follow.
type Subscribed struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
	// NextSeq is the number of the next item that does not exist yet.
	NextSeq uint64 `json:"next_seq"`
	// PendingFinals counts the answers that nobody has acknowledged.
	PendingFinals uint32 `json:"pending_finals"`
	State         *State `json:"state,omitempty"`
}

// Unsubscribed answers Unsubscribe.
type Unsubscribed struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id"`
}

// Aborted answers Abort with what it ended; both lists are empty if there was nothing.
type Aborted struct {
	ID        string       `json:"id,omitempty"`
	SessionID string       `json:"session_id"`
	TurnIDs   List[string] `json:"turn_ids"`
	RunIDs    List[string] `json:"run_ids"`
}

// Withdrawn answers Withdraw. A second withdrawal is answered as the first.
type Withdrawn struct {
	ID     string `json:"id,omitempty"`
	TurnID string `json:"turn_id"`
	// Withdrawn is false if the turn had started or ended otherwise.
	Withdrawn bool `json:"withdrawn"`
	// State of the turn.
	State string `json:"state"`
}

// OK answers KeepRunAlive.
type OK struct {
	ID string `json:"id,omitempty"`
}

// Turn answers GetTurn.
type Turn struct {
	ID     string `json:"id,omitempty"`
	TurnID string `json:"turn_id"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Position counts the turns before it; nil unless it is queued.
	Position    *uint32 `json:"position,omitempty"`
	RunID       string  `json:"run_id,omitempty"`
	MergedInto  string  `json:"merged_into,omitempty"`
	SteeredInto string  `json:"steered_into,omitempty"`
	// Content is the answer of the run that took the turn.
	Content string `json:"content,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

// Session answers GetSession.
type Session struct {
	ID    string `json:"id,omitempty"`
	State *State `json:"state,omitempty"`
}

// EventsRecorded answers RecordEvents.
type EventsRecorded struct {
	ID            string `json:"id,omitempty"`
	SessionID     string `json:"session_id"`
	FirstSequence uint64 `json:"first_sequence"`
	LastSequence  uint64 `json:"last_sequence"`
}

// Pong answers Ping.
type Pong struct {
	ID string `json:"id,omitempty"`
}

// Error refuses a frame or tells that something about a session went wrong; the connection stays open.
type Error struct {
	ID        string `json:"id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// TurnID of a turn that may have been admitted although the answer was lost.
	TurnID string `json:"turn_id,omitempty"`
}

// Error makes *Error an error, for clients in Go.
func (f *Error) Error() string { return f.Code + ": " + f.Message }

func (*Hello) isServerFrame()          {}
func (*SessionStarted) isServerFrame() {}
func (*TurnAccepted) isServerFrame()   {}
func (*Explanation) isServerFrame()    {}
func (*Subscribed) isServerFrame()     {}
func (*Unsubscribed) isServerFrame()   {}
func (*Aborted) isServerFrame()        {}
func (*Withdrawn) isServerFrame()      {}
func (*OK) isServerFrame()             {}
func (*Turn) isServerFrame()           {}
func (*Session) isServerFrame()        {}
func (*EventsRecorded) isServerFrame() {}
func (*Pong) isServerFrame()           {}
func (*Error) isServerFrame()          {}

// FrameType is "hello".
func (*Hello) FrameType() string { return "hello" }

// FrameType is "session_started".
func (*SessionStarted) FrameType() string { return "session_started" }

// FrameType is "turn_accepted".
func (*TurnAccepted) FrameType() string { return "turn_accepted" }

// FrameType is "explanation".
func (*Explanation) FrameType() string { return "explanation" }

// FrameType is "subscribed".
func (*Subscribed) FrameType() string { return "subscribed" }

// FrameType is "unsubscribed".
func (*Unsubscribed) FrameType() string { return "unsubscribed" }

// FrameType is "aborted".
func (*Aborted) FrameType() string { return "aborted" }

// FrameType is "withdrawn".
func (*Withdrawn) FrameType() string { return "withdrawn" }

// FrameType is "ok".
func (*OK) FrameType() string { return "ok" }

// FrameType is "turn".
func (*Turn) FrameType() string { return "turn" }

// FrameType is "session".
func (*Session) FrameType() string { return "session" }

// FrameType is "events_recorded".
func (*EventsRecorded) FrameType() string { return "events_recorded" }

// FrameType is "pong".
func (*Pong) FrameType() string { return "pong" }

// FrameType is "error".
func (*Error) FrameType() string { return "error" }
