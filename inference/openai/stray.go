package openai

import (
	"encoding/json"
	"strings"

	"github.com/correx/correx-actors/inference"
)

// stray gives the error of an event without choices that says that something went wrong; after the finish reason nothing does.
func (c *call) stray(raw []byte) error {
	if len(c.chunk.Choices) > 0 || c.chunk.Usage != nil || c.completion.FinishReason != "" {
		return nil
	}
	if text := strayProblem(raw); text != "" {
		return c.guard.fault(inference.KindProvider, "%s", text)
	}
	return nil
}

// strayProblem finds what an event without choices says went wrong, in the shapes that the guard does not know: an error that is no
// object with a text, and what other frameworks call it. "" = nothing. Such events are rare, so it may look slowly.
func strayProblem(raw []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	says := make(map[string]string, len(fields))
	for name, value := range fields {
		text := strings.TrimSpace(string(value))
		if text == "null" || text == "false" || text == `""` || text == "{}" || text == "[]" {
			continue
		}
		says[strings.ToLower(name)] = text
	}
	message := says["message"]
	for _, name := range []string{"error", "errors", "detail"} {
		if says[name] != "" {
			return strings.TrimSpace(says[name] + " " + message)
		}
	}
	if says["code"] != "" && message != "" {
		return says["code"] + " " + message
	}
	return ""
}
