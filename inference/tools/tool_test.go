package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/tools"
)

type query struct {
	City  string   `json:"city" jsonschema:"where"`
	Days  int8     `json:"days,omitempty"`
	Units []string `json:"units,omitempty"`
	Near  *struct {
		Lat float64 `json:"lat"`
	} `json:"near,omitempty"`
}

func weather(t *testing.T) *tools.Tool {
	t.Helper()
	tool, err := tools.Func(tools.Spec{Name: "weather", Description: "Tells the weather."},
		func(_ context.Context, in query) (query, error) { return in, nil })
	require.NoError(t, err)
	return tool
}

func run(t *testing.T, tool *tools.Tool, arguments string) tools.Answer {
	t.Helper()
	set, err := tools.NewSet(tool)
	require.NoError(t, err)
	out := executor(tools.Config{}).Run(t.Context(), set, []tools.Call{call("1", tool.Spec().Name, arguments)}, tools.Hooks{})
	require.Len(t, out.Answers, 1)
	return out.Answers[0]
}

func TestSchemaComesFromTheGoType(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	require.NoError(t, json.Unmarshal(weather(t).Spec().Input, &schema))
	require.Equal(t, "object", schema["type"])
	require.Equal(t, []any{"city"}, schema["required"])
	require.Equal(t, "where", schema["properties"].(map[string]any)["city"].(map[string]any)["description"])
	require.JSONEq(t, `{"city":"Oslo","days":3}`, run(t, weather(t), `{"city":"Oslo","days":3}`).Text)
}

func TestEveryFaultOfTheArgumentsIsToldWithoutTheirValues(t *testing.T) {
	t.Parallel()
	secret := "hunter2 has type"
	for arguments, want := range map[string][]string{
		`{}`:                                   {"city: is required"},
		`{"days":"` + secret + `","units":{}}`: {"city: is required", `days: has type "string", want "integer"`, `units: has type "object"`},
		`{"city":"x","hunter":1}`:              {`"hunter": is unknown`},
		`{"city":"x","days":1000}`:             {"days: "},
		`{"city":"x","near":{"lat":"` + secret + `"}}`: {`near: has type "string", want "number"`},
		`[]`: {"the arguments are no JSON object"},
		``:   {"the arguments are not valid JSON"},
	} {
		failure := run(t, weather(t), arguments).Failure
		require.NotNil(t, failure, arguments)
		require.Equal(t, tools.ErrorInvalidArguments, failure.Type, arguments)
		require.Len(t, failure.ValidationErrors, len(want), "%s: %q", arguments, failure.ValidationErrors)
		for i := range want {
			require.Contains(t, failure.ValidationErrors[i], want[i], arguments)
		}
		require.NotContains(t, failure.Error(), secret)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	object := make(map[string]int)
	for i := range 1000 {
		object[strings.Repeat("x", 1000)+strconv.Itoa(i)] = i
	}
	arguments, err := json.Marshal(object)
	require.NoError(t, err)
	failure := run(t, weather(t), string(arguments)).Failure
	require.Len(t, failure.ValidationErrors, 9)
	require.Less(t, len(failure.Error()), 2000)
}

func TestToolsThatCannotBeOfferedAreRefused(t *testing.T) {
	t.Parallel()
	works := func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
		return tools.Result{}, nil
	}
	for name, spec := range map[string]tools.Spec{
		"no name":       {},
		"blank":         {Name: "a b"},
		"long":          {Name: strings.Repeat("a", 65)},
		"newline":       {Name: "a\n"},
		"no JSON":       {Name: "a", Input: json.RawMessage(`{`)},
		"no object":     {Name: "a", Input: json.RawMessage(`{"type":"string"}`)},
		"no schema":     {Name: "a", Input: json.RawMessage(`null`)},
		"bad reference": {Name: "a", Input: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)},
		"timeout":       {Name: "a", Timeout: -1},
	} {
		_, err := tools.New(spec, works)
		require.Error(t, err, name)
	}
	_, err := tools.New(tools.Spec{Name: "a"}, nil)
	require.Error(t, err)
	_, err = tools.Func(tools.Spec{Name: "a"}, func(context.Context, string) (string, error) { return "", nil })
	require.Error(t, err, "a string is no object")
	_, err = tools.Func(tools.Spec{Name: "a"}, func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
	require.Error(t, err, "a channel has no schema")
	_, err = tools.NewSet(weather(t), weather(t))
	require.ErrorContains(t, err, "two tools")
}

// source offers what it is given.
type source []*tools.Tool

func (s source) Name() string         { return "source" }
func (s source) Tools() []*tools.Tool { return s }

func TestSourceCannotReplaceWhatTheHostRegistered(t *testing.T) {
	t.Parallel()
	list, err := tools.Demo()
	require.NoError(t, err)
	works := func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
		return tools.Result{Text: "other"}, nil
	}
	registry, err := tools.NewRegistry(slog.New(slog.DiscardHandler), list,
		source{newTool(t, tools.Spec{Name: "echo"}, works), newTool(t, tools.Spec{Name: "new"}, works)})
	require.NoError(t, err)
	for range 2 {
		var names []string
		for _, spec := range registry.Set().Specs() {
			names = append(names, spec.Name)
		}
		require.Equal(t, []string{"echo", "sleep", "fail", "new"}, names)
	}
	echo, found := registry.Set().Lookup("echo")
	require.True(t, found)
	require.Same(t, list[0], echo)
}

// exit is an error as os/exec gives it.
type exit int

func (e exit) Error() string { return fmt.Sprint("exit status ", int(e)) }
func (e exit) ExitCode() int { return int(e) }

func TestFailuresTellNoSecretAndNoPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"open /srv/app/config.yaml: no such file": "open [path]: no such file",
		`stat "/var/lib/x y": denied`:             `stat "[path] y": denied`,
		"open ~/.ssh/id_rsa: denied":              "open [path]: denied",
		`open C:\Users\me\key.pem: denied`:        "open [path] denied",
		"GET https://example.com/a/b/c gave 500":  "GET https://example.com/a/b/c gave 500",
		"key sk-abcdefghijklmnop refused":         "key [redacted] refused",
		"and/or is fine, so is 1/2":               "and/or is fine, so is 1/2",
		"got \x1b[31mred\x1b[0m\nand\tmore":       "got [31mred[0m and more",
	} {
		require.Equal(t, want, tools.FailureOf("t", errors.New(text)).Message)
		require.Equal(t, want, tools.FailureOf("t", fmt.Errorf("%w", &tools.Failure{Message: text})).Message)
	}
	require.NotContains(t, tools.FailureOf("t", &fs.PathError{Op: "open", Path: "/etc/secret/key", Err: fs.ErrNotExist}).Error(), "secret")
	code := tools.FailureOf("t", fmt.Errorf("build: %w", exit(3))).ExitCode
	require.NotNil(t, code)
	require.Equal(t, 3, *code)
	require.Equal(t, tools.ErrorTimeout, tools.FailureOf("t", context.DeadlineExceeded).Type)
}

// TestNoContextPackCanHoldAnAnswer is I3 as a fact of types: whatever a pack is built of holds nothing of this package.
func TestNoContextPackCanHoldAnAnswer(t *testing.T) {
	t.Parallel()
	ours := reflect.TypeFor[tools.Answer]().PkgPath()
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, path string) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		require.NotEqual(t, ours, typ.PkgPath(), path)
		switch typ.Kind() { //nolint:exhaustive // the others hold nothing
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			walk(typ.Elem(), path)
		case reflect.Map:
			walk(typ.Key(), path)
			walk(typ.Elem(), path)
		case reflect.Struct:
			for i := range typ.NumField() {
				walk(typ.Field(i).Type, path+"."+typ.Field(i).Name)
			}
		default:
		}
	}
	build := reflect.TypeOf(contextpack.Build)
	for i := range build.NumIn() {
		walk(build.In(i), "an argument of Build")
	}
	walk(reflect.TypeFor[contextpack.Pack](), "Pack")
	walk(reflect.TypeFor[router.State](), "State")
	require.True(t, seen[reflect.TypeFor[contextpack.Turn]()])
	require.LessOrEqual(t, inference.MessageLimit, tools.ResultLimit)
}
