package client

import (
	"fmt"

	"github.com/correx/correx-actors/messages/protocol"
)

// Tools tells what is new in the state of a run's tool calls. The zero value is ready.
type Tools struct {
	run   string
	phase map[string]string
}

// News gives one line for each call that has begun or ended since the last one.
func (t *Tools) News(f *protocol.ToolStatus) []string {
	if t.run != f.RunID {
		t.run, t.phase = f.RunID, make(map[string]string)
	}
	var lines []string
	for _, a := range f.Actions {
		if t.phase[a.ID] == a.Phase || a.Phase == "updated" && t.phase[a.ID] != "" {
			continue
		}
		t.phase[a.ID] = a.Phase
		lines = append(lines, toolLine(a))
	}
	return lines
}

func toolLine(a protocol.Action) string {
	switch {
	case a.Phase != "completed":
		return fmt.Sprintf("tool %s …", a.Title)
	case a.OK != nil && !*a.OK:
		return fmt.Sprintf("tool %s failed%s", a.Title, why(a.Error))
	}
	return fmt.Sprintf("tool %s done", a.Title)
}

func why(e *protocol.ActionError) string {
	if e == nil {
		return ""
	}
	for _, text := range []string{e.Message, e.Reason, e.ErrorType} {
		if text != "" {
			return ": " + text
		}
	}
	return ""
}
