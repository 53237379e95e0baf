package router

import (
	"slices"
	"time"

	"github.com/correx/correx-actors/messages"
)

// SteeringNote is what a user told the workflow in a STEERING turn.
type SteeringNote struct {
	SessionID messages.SessionID
	// Content is the turn's text, verbatim and whole.
	Content string
	// StageID is the stage that the note applies to: the one that the event names, else the one that was current when the note
	// was written. Empty if no stage was current: the note then applies to every stage.
	StageID string
	// CreatedAt is when the note was written; the event's recorded_at if it does not say.
	CreatedAt time.Time
	TurnID    messages.TurnID
	// Sequence is the event's.
	Sequence uint64
}

// NotesFor gives the notes that apply to a stage, oldest first: those of the stage and those that were written when no stage
// was current, for what a user says before the first stage must not be lost. NotesFor("") gives the latter only.
func (s State) NotesFor(stageID string) []SteeringNote {
	var notes []SteeringNote
	for note := range s.Notes.Backward() {
		if note.StageID == stageID || note.StageID == "" {
			notes = append(notes, note)
		}
	}
	slices.Reverse(notes)
	return notes
}
