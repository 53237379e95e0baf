// Package router holds what the router knows of a workflow: State and its reducer. Pure: no clock, no I/O, no log.
package router

import (
	"iter"
	"time"

	"github.com/correx/correx-actors/messages"
)

// WorkflowStatus is the workflow's state as the router knows it.
type WorkflowStatus string

// Workflow statuses.
const (
	StatusIdle      WorkflowStatus = "IDLE"
	StatusRunning   WorkflowStatus = "RUNNING"
	StatusPaused    WorkflowStatus = "PAUSED"
	StatusCompleted WorkflowStatus = "COMPLETED"
	StatusFailed    WorkflowStatus = "FAILED"
)

// StageOutcome is how a stage ended.
type StageOutcome string

// Stage outcomes.
const (
	OutcomeSuccess   StageOutcome = "SUCCESS"
	OutcomeFailure   StageOutcome = "FAILURE"
	OutcomeCancelled StageOutcome = "CANCELLED"
)

// L2Entry is the memory of one ended stage.
type L2Entry struct {
	StageID string
	// Summary is at most MaxSummary bytes; the event keeps all.
	Summary string
	Outcome StageOutcome
	// Timestamp is the event's recorded_at.
	Timestamp time.Time
}

// MaxSummary bounds a summary or reason in L2, in characters.
const MaxSummary = 2000

// State is the fold of a session's event log from its first event (I1). It is never stored. A State is immutable: Reduce
// gives a new one that shares what did not change, so any number of readers may hold old ones. The zero State is the initial one.
type State struct {
	// SessionID is set by workflow_started.
	SessionID messages.SessionID
	// Status is "" only in the zero State; use WorkflowStatus.
	status         WorkflowStatus
	CurrentStageID string
	// EventSequence is the last event folded in.
	EventSequence uint64
	L2            Memory
	notes         Notes
}

// WorkflowStatus is IDLE until a workflow has started.
func (s State) WorkflowStatus() WorkflowStatus {
	if s.status == "" {
		return StatusIdle
	}
	return s.status
}

// Memory is the list of ended stages, oldest to newest; see memory.go.
// Notes is the list of steering notes; see notes.go.
var _ iter.Seq[L2Entry]
