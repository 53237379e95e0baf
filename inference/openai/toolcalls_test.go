package openai

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// assemble reads a list of pieces as a stream would bring them.
func assemble(t *testing.T, pieces string) ([]ToolCall, error) {
	t.Helper()
	var list []toolPiece
	require.NoError(t, json.Unmarshal([]byte(pieces), &list))
	var calls toolCalls
	for _, piece := range list {
		require.NoError(t, calls.add(piece))
	}
	return calls.finish()
}

// The catalogue of llmserver has the ways of servers; here are the borders between them.
func TestB107WhatBelongsToACall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		pieces string
		want   []ToolCall
	}{
		"nothing": {`[]`, nil},
		"a name that is repeated without ids goes on": {
			`[{"function":{"name":"f","arguments":"{\"a\""}},{"function":{"name":"f","arguments":":1}"}}]`,
			[]ToolCall{{"call_1", "f", `{"a":1}`}},
		},
		"the same function again, once the first call is whole": {
			`[{"function":{"name":"f","arguments":"{\"a\":\"}\"}"}},{"function":{"name":"f","arguments":"{}"}}]`,
			[]ToolCall{{"call_1", "f", `{"a":"}"}`}, {"call_2", "f", `{}`}},
		},
		"braces and quotes inside of texts end nothing": {
			`[{"function":{"name":"f","arguments":"{\"a\":\"\\\"}\""}},{"function":{"name":"f","arguments":",\"b\":{}}"}}]`,
			[]ToolCall{{"call_1", "f", `{"a":"\"}","b":{}}`}},
		},
		"an id that comes late": {
			`[{"index":0,"function":{"name":"f"}},{"index":0,"id":"a","function":{"arguments":"{}"}}]`,
			[]ToolCall{{"a", "f", `{}`}},
		},
		"white space around arguments": {`[{"id":"a","function":{"name":"f","arguments":" {} \n"}}]`, []ToolCall{{"a", "f", `{}`}}},
	} {
		calls, err := assemble(t, row.pieces)
		require.NoError(t, err, name)
		require.Equal(t, row.want, calls, name)
	}
	for name, pieces := range map[string]string{
		"no name": `[{"index":0,"id":"a","function":{"arguments":"{}"}}]`,
		"cut":     `[{"id":"a","function":{"name":"f","arguments":"{\"a\":"}}]`,
		"a list":  `[{"id":"a","function":{"name":"f","arguments":"[1]"}}]`,
		"a text":  `[{"id":"a","function":{"name":"f","arguments":"\"hm\""}}]`,
		"twice":   `[{"id":"a","function":{"name":"f","arguments":"{}"}},{"function":{"arguments":"{}"}}]`,
	} {
		calls, err := assemble(t, pieces)
		require.Error(t, err, name)
		require.Len(t, calls, 1, name)
	}
}

// TestB107CutsChangeNoCall cuts the arguments of two calls at every pair of places, in each way of telling calls apart.
func TestB107CutsChangeNoCall(t *testing.T) {
	t.Parallel()
	first, second := `{"city":"Pa\"r{is","n":[1,{"x":2}]}`, `{"zone":"日本"}`
	head := map[string]string{"indexed": `"index":%d,`, "ids": `"id":%q,`}
	for name := range head {
		for i := range first {
			for j := range second {
				pieces := toolStream(name, first[:i], second[:j], first[i:], second[j:])
				calls, err := assemble(t, pieces)
				require.NoError(t, err, pieces)
				require.Equal(t, []ToolCall{{"a", "f", first}, {"b", "g", second}}, calls, pieces)
			}
		}
	}
}

// toolStream sends the first parts of two calls in turn, then the others.
func toolStream(way string, parts ...string) string {
	var list []string
	for i, part := range parts {
		n := i % 2
		arguments, _ := json.Marshal(part) //nolint:errchkjson // A string cannot fail.
		place := fmt.Sprintf(`"index":%d,`, n)
		if way == "ids" || i < 2 {
			place = fmt.Sprintf(`"id":%q,`, string("ab"[n]))
			if way != "ids" {
				place += fmt.Sprintf(`"index":%d,`, n)
			}
		}
		name := ""
		if i < 2 {
			name = fmt.Sprintf(`"name":%q,`, string("fg"[n]))
		}
		list = append(list, fmt.Sprintf(`{%s"function":{%s"arguments":%s}}`, place, name, arguments))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestToolCallsAreBounded(t *testing.T) {
	t.Parallel()
	var many toolCalls
	var piece toolPiece
	for i := range maxToolCalls {
		piece.ID = strconv.Itoa(i)
		require.NoError(t, many.add(piece))
	}
	piece.ID = "one more"
	require.ErrorIs(t, many.add(piece), errToolsTooBig)

	var large toolCalls
	piece = toolPiece{ID: "a"}
	piece.Function.Name = strings.Repeat("x", 1<<20)
	for range maxToolBytes>>20 - 1 {
		require.NoError(t, large.add(piece))
	}
	require.ErrorIs(t, large.add(piece), errToolsTooBig)
}
