package session

import (
	"fmt"

	"github.com/correx/correx-actors/messages"
)

// MaxEvents bounds one record_events.
const MaxEvents = 1000

// recordEvents appends a host's events, all or none. The router's own event type is refused: a host cannot write notes (I2).
func (d *draft) recordEvents(c Record) {
	head := d.s.Router.EventSequence
	switch {
	case len(c.Events) == 0:
		d.reply(messages.Fail(messages.CodeInvalidField, "events is empty"))
		return
	case len(c.Events) > MaxEvents:
		d.reply(messages.Fail(messages.CodeInvalidField, fmt.Sprintf("%d events, at most %d are allowed", len(c.Events), MaxEvents)))
		return
	case c.Expected != nil && *c.Expected != head:
		d.reply(messages.Fail(messages.CodeSequenceConflict, fmt.Sprintf("expected_sequence is %d, the event log is at %d", *c.Expected, head)))
		return
	}
	for i, e := range c.Events {
		if e.EventType() == (*messages.SteeringNoteAdded)(nil).EventType() {
			d.reply(messages.Fail(messages.CodeForbiddenEvent, fmt.Sprintf("events[%d]: only the router writes steering_note_added", i)))
			return
		}
	}
	for _, e := range c.Events {
		d.host(e)
	}
	d.reply(&messages.EventsRecorded{FirstSequence: head + 1, LastSequence: d.s.Router.EventSequence})
	d.effect(AnnounceEvents{Head: d.s.Router.EventSequence})
}
