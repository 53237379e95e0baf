package offline

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

// toolLine begins a line of the user's text that calls a tool: /tool NAME {json}.
const toolLine = "/tool "

// maxRetold bounds what is retold of one tool's answer, in bytes.
const maxRetold = 400

// asked gives the tools that the newest text of the user calls; after a round only what was said since counts.
func asked(req inference.Request, entries []contextpack.Entry) []inference.ToolCall {
	if len(req.Tools) == 0 {
		return nil
	}
	var text string
	if n := len(req.Rounds); n > 0 {
		text = strings.Join(req.Rounds[n-1].Said, "\n")
	} else {
		for _, e := range entries {
			if e.Role == contextpack.RoleUser {
				text = e.Content
			}
		}
	}
	return callsOf(text, len(req.Rounds)+1)
}

// callsOf reads the lines that call tools. What is no JSON after a name is given as it is: whoever carries the call out says what
// is wrong with it.
func callsOf(text string, round int) []inference.ToolCall {
	var calls []inference.ToolCall
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), toolLine)
		if !ok {
			continue
		}
		name, arguments, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if arguments = strings.TrimSpace(arguments); arguments == "" {
			arguments = "{}"
		}
		calls = append(calls, inference.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", round, len(calls)+1), Name: name, Arguments: json.RawMessage(arguments),
		})
	}
	return calls
}

// retell says what the tools of the last round gave, and what the user put in.
func retell(rounds []inference.Round) string {
	last := rounds[len(rounds)-1]
	var b strings.Builder
	for i, answer := range last.Answers {
		if shown, cut := limit(answer, maxRetold/4); cut {
			answer = shown + " …"
		}
		fmt.Fprintf(&b, "The tool %s says: %s\n", last.Calls[i].Name, answer)
	}
	for _, said := range last.Said {
		fmt.Fprintf(&b, "Meanwhile you said: %s\n", said)
	}
	return strings.TrimRight(b.String(), "\n")
}
