package llmserver

import (
	"strings"

	"github.com/correx/correx-actors/inference"
)

// toolQuirks: the ways in which pieces of tool calls say to which call they belong, or do not.
func toolQuirks() []Quirk {
	two := []ToolCall{{ID: "a", Name: "weather", Arguments: `{"city":"Paris"}`}, {ID: "b", Name: "time", Arguments: `{"zone":"CET"}`}}
	made := []ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`}, {ID: "call_2", Name: "time", Arguments: `{"zone":"CET"}`}}
	twice := []ToolCall{{ID: "a", Name: "f", Arguments: `{"n":1}`}, {ID: "b", Name: "f", Arguments: `{"n":2}`}}
	row := func(name, about string, calls []ToolCall, pieces ...string) Quirk {
		return Quirk{
			Name: name, About: about, Response: says(toolPieces(pieces...) + event("{}", "tool_calls") + done),
			Want: Want{FinishReason: "tool_calls", Active: true, Calls: calls},
		}
	}
	return append(brokenTools(two),
		row("tool_calls", "tool calls without an index, whole",
			[]ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "g", Arguments: "{}"}},
			`{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}`),
		row("tool_calls_indexed", "pieces of two calls in turn, told apart by their index", two,
			`{"index":0,"id":"a","type":"function","function":{"name":"weather","arguments":""}}`,
			`{"index":1,"id":"b","type":"function","function":{"name":"time","arguments":""}}`,
			`{"index":0,"function":{"arguments":"{\"city\":"}}`, `{"index":1,"function":{"arguments":"{\"zone\":\"CE"}}`,
			`{"index":0,"function":{"arguments":"\"Paris\"}"}},{"index":1,"function":{"arguments":"T\"}"}}`),
		row("tool_calls_in_turn", "pieces without an index: those without an id go on with the last call", two,
			`{"id":"a","function":{"name":"weather","arguments":"{\"city\":"}}`, `{"function":{"arguments":"\"Paris\"}"}}`,
			`{"id":"b","function":{"name":"time","arguments":""}}`, `{"function":{"arguments":"{\"zone\":\"CET\"}"}}`),
		row("tool_calls_ids", "pieces of two calls in turn, told apart by their ids alone", two,
			`{"id":"a","function":{"name":"weather"}}`, `{"id":"b","function":{"name":"time"}}`,
			`{"id":"a","function":{"arguments":"{\"city\":\"Paris\"}"}}`, `{"id":"b","function":{"arguments":"{\"zone\":\"CET\"}"}}`),
		row("tool_calls_zero", "whole calls that all have the index 0", twice,
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{\"n\":2}"}}`),
		row("tool_calls_null_index", "an index of null", two,
			`{"index":null,"id":"a","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}`,
			`{"index":null,"id":"b","function":{"name":"time","arguments":"{\"zone\":\"CET\"}"}}`),
		row("tool_calls_fresh_ids", "each piece has an id of its own, and the right index", []ToolCall{two[0]},
			`{"index":0,"id":"a","function":{"name":"weather"}}`, `{"index":0,"id":"x1","function":{"arguments":"{\"city\":"}}`,
			`{"index":0,"id":"x2","function":{"arguments":"\"Paris\"}"}}`),
		row("tool_calls_named", "each piece repeats id and name", []ToolCall{two[0]},
			`{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":"}}`,
			`{"index":0,"id":"a","function":{"name":"weather","arguments":"\"Paris\"}"}}`),
		row("tool_calls_gap", "an index that does not begin at 0", two,
			`{"index":1,"id":"a","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}`,
			`{"index":3,"id":"b","function":{"name":"time","arguments":"{\"zone\":\"CET\"}"}}`),
		row("tool_calls_no_ids", "calls with neither index nor id", made,
			`{"function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},{"function":{"name":"time","arguments":"{\"zone\":\"CET\"}"}}`),
		row("tool_calls_object", "arguments that are an object, not a text", made,
			`{"function":{"name":"weather","arguments":{"city":"Paris"}}},{"function":{"name":"time","arguments":{ "zone": "CET" }}}`),
		row("tool_calls_bare", "calls without arguments", []ToolCall{{ID: "a", Name: "now", Arguments: "{}"}, {ID: "b", Name: "now", Arguments: "{}"}},
			`{"index":0,"id":"a","function":{"name":"now","arguments":""}}`, `{"index":1,"id":"b","function":{"name":"now","arguments":null}}`),
	)
}

// brokenTools: calls that end otherwise than with their own reason.
func brokenTools(two []ToolCall) []Quirk {
	whole := toolPieces(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}`,
		`{"index":1,"id":"b","function":{"name":"time","arguments":"{\"zone\":\"CET\"}"}}`)
	half := toolPieces(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":"}}`)
	return []Quirk{
		{
			Name: "tool_calls_stop", About: "tool calls that end as a normal answer", Response: says(whole + finish + done),
			Want: Want{FinishReason: "stop", Active: true, Calls: two},
		},
		{
			Name: "tool_calls_text", About: "a tool call after text", Response: says(deltas + whole + event("{}", "tool_calls") + usageEvent(counts) + done),
			Want: Want{Text: hello, FinishReason: "tool_calls", Usage: &counts, Active: true, Calls: two},
		},
		{
			Name: "tool_calls_length", About: "the limit of the answer cuts the arguments of a call", Response: says(half + event("{}", "length") + done),
			Want: Want{FinishReason: "length", Active: true, CallsBroken: true},
		},
		{
			Name: "tool_calls_cut", About: "the connection is cut inside of a call", Response: says(half).ending(EndCut), Want: Want{Kind: inference.KindTruncated, Active: true},
		},
		{
			Name: "tool_calls_nameless", About: "a call without a name",
			Response: says(toolPieces(`{"index":0,"id":"a","function":{"arguments":"{}"}}`) + event("{}", "tool_calls") + done),
			Want:     Want{FinishReason: "tool_calls", Active: true, CallsBroken: true},
		},
		{
			Name: "function_call", About: "a call in the form that came before tool calls",
			Response: says(event(`{"function_call":{"name":"weather","arguments":"{\"city\":"}}`, "") +
				event(`{"function_call":{"arguments":"\"Paris\"}"}}`, "") + event("{}", "function_call") + done),
			Want: Want{FinishReason: "function_call", Active: true, Calls: []ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`}}},
		},
		{
			Name: "tool_calls_document", About: "tool calls in one document",
			Response: sends(200, jsonType, `{"choices":[{"index":0,"message":{"role":"assistant","content":null`+toolList(two)+`},"finish_reason":"tool_calls"}]}`),
			Want:     Want{FinishReason: "tool_calls", Active: true, Calls: two},
		},
	}
}

// toolPieces makes an event of each list of pieces.
func toolPieces(lists ...string) string {
	var all strings.Builder
	for _, list := range lists {
		all.WriteString(event(`{"tool_calls":[`+list+`]}`, ""))
	}
	return all.String()
}
