package llmserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ToolCall is one call that an answer asks for.
type ToolCall struct {
	ID   string
	Name string
	// Arguments are JSON.
	Arguments string
}

// Tool is a tool that a request offers.
type Tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// toolEvents streams calls as OpenAI does: the first piece of each has its id and name, the others its index alone.
func toolEvents(calls []ToolCall, piece int) []string {
	var events []string
	for i, call := range calls {
		events = append(events, event(fmt.Sprintf(
			`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, quote(call.ID), quote(call.Name)), ""))
		for _, text := range cut(call.Arguments, piece) {
			events = append(events, event(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(text)), ""))
		}
	}
	return events
}

// toolList gives calls as a field of a message in one document; "" without any.
func toolList(calls []ToolCall) string {
	if len(calls) == 0 {
		return ""
	}
	list := make([]string, 0, len(calls))
	for _, call := range calls {
		list = append(list, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`,
			quote(call.ID), quote(call.Name), quote(call.Arguments)))
	}
	return `,"tool_calls":[` + strings.Join(list, ",") + `]`
}

// cut gives text in pieces of so many bytes, but never inside of a character: each stands in JSON of its own.
func cut(text string, piece int) []string {
	if piece <= 0 {
		return []string{text}
	}
	var pieces []string
	var current strings.Builder
	for _, r := range text {
		current.WriteRune(r)
		if current.Len() >= piece {
			pieces = append(pieces, current.String())
			current.Reset()
		}
	}
	if current.Len() > 0 {
		pieces = append(pieces, current.String())
	}
	return pieces
}

// echo makes the answer of an Answer with Echo.
func (a Answer) echo(chat Chat) Answer {
	said := ""
	if len(chat.Messages) > 0 {
		said = chat.Messages[len(chat.Messages)-1].Content
	}
	a.Usage = &Usage{Input: len(said)/4 + 1, Output: len(said)/4 + 3}
	if name := chat.requiredTool(); name != "" {
		i := slices.IndexFunc(chat.Tools, func(tool Tool) bool { return tool.Function.Name == name })
		a.ToolCalls = []ToolCall{{ID: "call_1", Name: name, Arguments: arguments(chat.Tools[i], said)}}
		return a
	}
	a.Deltas = strings.SplitAfter("You said: "+said, " ")
	if limit := max(chat.MaxTokens, chat.MaxCompletionTokens); limit > 0 && limit < len(a.Deltas) {
		a.Deltas, a.FinishReason, a.Usage.Output = a.Deltas[:limit], "length", limit
	}
	return a
}

// requiredTool is the name of the tool that the request wants to be called; "" = none.
func (c Chat) requiredTool() string {
	var word string
	var choice Tool
	if json.Unmarshal(c.ToolChoice, &word) == nil && word == "required" && len(c.Tools) > 0 {
		return c.Tools[0].Function.Name
	}
	if json.Unmarshal(c.ToolChoice, &choice) == nil && slices.ContainsFunc(c.Tools, func(tool Tool) bool {
		return tool.Function.Name == choice.Function.Name
	}) {
		return choice.Function.Name
	}
	return ""
}

// arguments fills each property that a tool requires with what was said; properties that are no texts get null.
func arguments(tool Tool, said string) string {
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(tool.Function.Parameters, &schema) // a schema of another shape requires nothing that is known here
	values := make(map[string]any, len(schema.Required))
	for _, name := range schema.Required {
		values[name] = nil
		if schema.Properties[name].Type == "string" {
			values[name] = said
		}
	}
	text, _ := json.Marshal(values) //nolint:errchkjson // A map of texts cannot fail.
	return string(text)
}
