package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/correx/correx-actors/messages/protocol"
)

// host records events of its sessions, each batch with the sequence that it expects.
func (c *chaos) host(n int) {
	l, draw := &line{c: c}, c.rand("host", n)
	defer l.drop()
	heads := make(map[string]uint64)
	for batch := 0; !c.calm.Load(); batch++ {
		session := chaosSession(n + chaosHosts*draw.IntN(chaosSessions/chaosHosts))
		events := chaosEvents(draw, fmt.Sprintf("%d-%d", n, batch))
		for c.t.Context().Err() == nil && !c.record(l, session, heads, events) {
		}
		time.Sleep(upTo(draw, 60*time.Millisecond))
	}
}

// record tries once, and finds out what became of it.
func (c *chaos) record(l *line, session string, heads map[string]uint64, events []json.RawMessage) (done bool) {
	head := heads[session]
	answer, refused, _ := l.ask(&protocol.RecordEvents{SessionID: session, Events: events, ExpectedSequence: &head})
	if refused != nil && refused.Code != "sequence_conflict" {
		c.fault("record: %v", refused)
		return true
	}
	first := uint64(0)
	if recorded, ok := answer.(*protocol.EventsRecorded); ok {
		first = recorded.FirstSequence
		if first != head+1 || recorded.LastSequence != head+uint64(len(events)) {
			c.fault("record after %d: %s", head, shown(recorded))
		}
	} else { // a note came between, or an answer was lost
		for _, stored := range c.log(session, head) {
			heads[session] = stored.Sequence
			if string(stored.Event) == string(events[0]) {
				first = stored.Sequence
			}
		}
	}
	if first == 0 {
		return false
	}
	heads[session] = max(heads[session], first+uint64(len(events))-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, event := range events {
		c.marks[session][first+uint64(i)] = string(event)
	}
	return true
}

// log reads a session's event log as a client does, whatever becomes of the server meanwhile.
func (c *chaos) log(session string, after uint64) (all []protocol.StoredEvent) {
	for {
		page, err := c.client.Events(c.t.Context(), session, after, 500)
		if err != nil && c.t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil || len(page.Events) == 0 {
			return all
		}
		all = append(all, page.Events...)
		after = page.Next
	}
}

func chaosEvents(draw *rand.Rand, mark string) []json.RawMessage {
	events := []json.RawMessage{json.RawMessage(`{"type":"mark","n":"` + mark + `"}`)}
	stage := "stage-" + mark
	more := [][]string{
		{},
		{`{"type":"workflow_started","workflow_id":"` + mark + `"}`, `{"type":"stage_started","stage_id":"` + stage + `"}`},
		{`{"type":"stage_completed","stage_id":"` + stage + `","summary":"done ` + mark + `","next_stage_id":"n` + mark + `"}`},
		{`{"type":"stage_failed","stage_id":"` + stage + `","reason":"` + strings.Repeat("r", 500) + `"}`, `{"type":"orchestration_paused"}`},
		{`{"type":"orchestration_resumed"}`, `{"type":"stage_cancelled","stage_id":"` + stage + `","reason":"x"}`},
		{`{"type":"workflow_completed"}`},
	}
	for _, event := range more[draw.IntN(len(more))] {
		events = append(events, json.RawMessage(event))
	}
	return events
}
