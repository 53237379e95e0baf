// Package router holds what the router knows of a workflow: State, and Reduce, which folds the event log into it. The
// package is pure: no clock, no I/O, no log, so a replay gives the same State on any machine (I1, I14).
//
// It does not hold the conversation: turns are not domain events, and the session joins both for whoever asks for its state.
package router

import (
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

// Valid says whether w is one of the statuses.
func (w WorkflowStatus) Valid() bool {
	switch w {
	case StatusIdle, StatusRunning, StatusPaused, StatusCompleted, StatusFailed:
		return true
	}
	return false
}

// StageOutcome is how a stage ended.
type StageOutcome string

// Stage outcomes.
const (
	OutcomeSuccess   StageOutcome = "SUCCESS"
	OutcomeFailure   StageOutcome = "FAILURE"
	OutcomeCancelled StageOutcome = "CANCELLED"
)

// Valid says whether o is one of the outcomes.
func (o StageOutcome) Valid() bool {
	switch o {
	case OutcomeSuccess, OutcomeFailure, OutcomeCancelled:
		return true
	}
	return false
}

// MaxSummary bounds L2Entry.Summary, in characters (runes).
const MaxSummary = 2000

// L2Entry is the memory of one ended stage.
type L2Entry struct {
	StageID string
	// Summary is the event's summary or reason, cut at MaxSummary characters (the event keeps all); OutcomeSentence if that
	// was blank. Never blank.
	Summary string
	Outcome StageOutcome
	// Timestamp is the event's recorded_at.
	Timestamp time.Time
}

// Memory is the list of ended stages (L2), oldest to newest.
type Memory = List[L2Entry]

// Notes is the list of steering notes, oldest to newest. No note is ever dropped from it.
type Notes = List[SteeringNote]

// State is the fold of a session's event log from its first event (I1). It is never stored.
//
// A State is immutable: Reduce gives a new one that shares what did not change, so any number of readers may hold old ones
// while the log goes on. The zero State is the initial one. Compare with Equal: == tells apart lists of equal content.
type State struct {
	// SessionID is empty until a workflow has started.
	SessionID messages.SessionID
	// CurrentStageID is empty until an event named a stage. A stage that failed or was cancelled stays the current one.
	CurrentStageID string
	// EventSequence is the sequence of the last event folded in; 0 = none.
	EventSequence uint64
	// L2 has one entry for each ended stage. It outlives the workflow: a second one in the same session adds to it.
	L2 Memory
	// Notes has one entry for each steering note.
	Notes Notes
	// status is "" in the zero State; read it through WorkflowStatus.
	status WorkflowStatus
}

// WorkflowStatus is IDLE until a workflow has started or another event said more.
func (s State) WorkflowStatus() WorkflowStatus {
	if s.status == "" {
		return StatusIdle
	}
	return s.status
}

// Equal says whether s and o hold the same: their lists are compared by content, their times as instants. It stops at the first
// node that both share, so comparing a State with its own successor costs only the difference.
func (s State) Equal(o State) bool {
	return s.SessionID == o.SessionID &&
		s.CurrentStageID == o.CurrentStageID &&
		s.EventSequence == o.EventSequence &&
		s.WorkflowStatus() == o.WorkflowStatus() &&
		s.L2.equal(o.L2, sameL2Entry) &&
		s.Notes.equal(o.Notes, sameNote)
}

func sameL2Entry(a, b L2Entry) bool {
	sameTime := a.Timestamp.Equal(b.Timestamp)
	a.Timestamp, b.Timestamp = time.Time{}, time.Time{}
	return sameTime && a == b
}

func sameNote(a, b SteeringNote) bool {
	sameTime := a.CreatedAt.Equal(b.CreatedAt)
	a.CreatedAt, b.CreatedAt = time.Time{}, time.Time{}
	return sameTime && a == b
}
