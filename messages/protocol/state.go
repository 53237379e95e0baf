package protocol

import "time"

// State is a session as clients see it: the workflow as the router knows it, the conversation and the queue.
type State struct {
	SessionID string `json:"session_id"`
	// WorkflowStatus is IDLE, RUNNING, PAUSED, COMPLETED or FAILED.
	WorkflowStatus string `json:"workflow_status"`
	CurrentStageID string `json:"current_stage_id,omitempty"`
	// L2Memory holds the newest ended stages, oldest first; L2Total counts all of them.
	L2Memory            List[Stage]        `json:"l2_memory"`
	L2Total             uint64             `json:"l2_total"`
	ConversationHistory List[HistoryEntry] `json:"conversation_history"`
	// EventSequence is the last sequence of the event log.
	EventSequence     uint64             `json:"event_sequence"`
	ActiveRun         *ActiveRun         `json:"active_run,omitempty"`
	Queue             List[QueuedTurn]   `json:"queue"`
	PendingSteers     List[PendingSteer] `json:"pending_steers"`
	Resume            *Resume            `json:"resume,omitempty"`
	PendingCompaction *PendingCompaction `json:"pending_compaction,omitempty"`
	// Held: open turns outlived a restart of the server and wait for a user's word (KeepRunAlive).
	Held  bool   `json:"held,omitempty"`
	Epoch uint64 `json:"epoch"`
	Node  string `json:"node,omitempty"`
}

// Stage is an ended stage of the workflow.
type Stage struct {
	StageID string `json:"stage_id"`
	Summary string `json:"summary"`
	// Outcome is SUCCESS, FAILURE or CANCELLED.
	Outcome   string    `json:"outcome"`
	Timestamp time.Time `json:"timestamp,omitzero"`
}

// HistoryEntry is one side of the exchange.
type HistoryEntry struct {
	// Role is USER or ROUTER.
	Role      string    `json:"role"`
	Content   string    `json:"content"`
	Timestamp time.Time `json:"timestamp,omitzero"`
	// Partial: the router's text did not complete.
	Partial bool `json:"partial"`
}

// ActiveRun is the run that holds the session.
type ActiveRun struct {
	RunID   string       `json:"run_id"`
	TurnIDs List[string] `json:"turn_ids"`
	Phase   string       `json:"phase"`
	Attempt uint32       `json:"attempt,omitempty"`
}

// QueuedTurn is a waiting turn.
type QueuedTurn struct {
	TurnID        string       `json:"turn_id"`
	MergedTurnIDs List[string] `json:"merged_turn_ids"`
	QueueMode     string       `json:"queue_mode"`
	Mode          string       `json:"mode"`
	AcceptedAt    time.Time    `json:"accepted_at,omitzero"`
}

// PendingSteer is a turn that was offered to a run and has no answer yet.
type PendingSteer struct {
	TurnID string `json:"turn_id"`
	RunID  string `json:"run_id"`
}

// Resume names the engine that keeps this conversation on its side.
type Resume struct {
	Engine string `json:"engine"`
}

// PendingCompaction tells why the next run starts from a compacted transcript.
type PendingCompaction struct {
	Reason string `json:"reason"`
}
