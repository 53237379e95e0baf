package router

import (
	"strings"
	"time"

	"github.com/correx/correx-actors/messages"
)

// Reduce folds one event of the log of key's session into s. It is total: an event is a fact and is never refused, and one
// that the router has no rule for moves only EventSequence (I1). The caller gives each event once, in the order of seq.
func Reduce(s State, e messages.Event, seq uint64, recordedAt time.Time, key messages.Key) State {
	s.EventSequence = seq
	switch e := e.(type) {
	case *messages.WorkflowStarted:
		s.SessionID, s.status = key.Session, StatusRunning
	case *messages.WorkflowCompleted:
		s.status = StatusCompleted
	case *messages.WorkflowFailed:
		s.status = StatusFailed
	case *messages.OrchestrationPaused:
		s.status = StatusPaused
	case *messages.OrchestrationResumed:
		s.status = StatusRunning
	case *messages.StageStarted:
		s.CurrentStageID = e.GetStageId()
	case *messages.StageCompleted:
		s = stageEnded(s, e.GetStageId(), e.GetSummary(), OutcomeSuccess, recordedAt)
		s.CurrentStageID = e.GetStageId()
		if next := e.GetNextStageId(); next != "" {
			s.CurrentStageID = next
		}
	case *messages.StageFailed:
		s = stageEnded(s, e.GetStageId(), e.GetReason(), OutcomeFailure, recordedAt)
	case *messages.StageCancelled:
		s = stageEnded(s, e.GetStageId(), e.GetReason(), OutcomeCancelled, recordedAt)
	case *messages.SteeringNoteAdded:
		s = noteAdded(s, e, seq, recordedAt, key)
	case *messages.ForeignEvent, *messages.UnknownEvent:
		// Of a host, or of a newer build: none of the router's business.
	}
	return s
}

// ReduceRecords gives Reduce in the shape that folds a session's stored records. The error is of a record whose payload is
// damaged; a record of a type that this build does not know is no error.
func ReduceRecords(key messages.Key) func(State, messages.Record) (State, error) {
	return func(s State, r messages.Record) (State, error) {
		e, err := messages.DecodeEvent(r.Type, r.Version, r.Payload)
		if err != nil {
			return s, err
		}
		return Reduce(s, e, r.Seq, r.Time, key), nil
	}
}

// OutcomeSentence tells in words how a stage ended. It is the summary of a stage that ended without one.
func OutcomeSentence(stageID string, outcome StageOutcome) string {
	subject := "A stage"
	if stageID != "" {
		subject = "Stage " + stageID
	}
	switch outcome {
	case OutcomeSuccess:
		return subject + " completed."
	case OutcomeFailure:
		return subject + " failed."
	case OutcomeCancelled:
		return subject + " was cancelled."
	}
	return subject + " ended."
}

func stageEnded(s State, stageID, text string, outcome StageOutcome, at time.Time) State {
	s.L2 = s.L2.with(L2Entry{
		StageID:   stageID,
		Summary:   summarize(stageID, text, outcome),
		Outcome:   outcome,
		Timestamp: at,
	})
	return s
}

func noteAdded(s State, e *messages.SteeringNoteAdded, seq uint64, at time.Time, key messages.Key) State {
	note := SteeringNote{
		SessionID: key.Session,
		Content:   e.GetContent(),
		StageID:   e.GetStageId(),
		CreatedAt: at,
		TurnID:    e.GetTurnId(),
		Sequence:  seq,
	}
	if note.StageID == "" {
		note.StageID = s.CurrentStageID
	}
	if e.GetCreatedAt() != nil {
		note.CreatedAt = e.GetCreatedAt().AsTime()
	}
	s.Notes = s.Notes.with(note)
	return s
}

// summarize makes an L2Entry.Summary of an event's text.
func summarize(stageID, text string, outcome StageOutcome) string {
	if strings.TrimSpace(text) == "" {
		text = OutcomeSentence(stageID, outcome)
	}
	if len(text) <= MaxSummary {
		return text
	}
	count := 0
	for i := range text {
		if count == MaxSummary {
			// Cloned, else the short summary would hold the memory of a long event for as long as the session lives.
			return strings.Clone(text[:i])
		}
		count++
	}
	return text
}
