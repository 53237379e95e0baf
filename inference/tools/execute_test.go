package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference/tools"
)

func executor(config tools.Config) *tools.Executor {
	return tools.NewExecutor(config, slog.New(slog.DiscardHandler))
}

func newTool(t *testing.T, spec tools.Spec, call tools.CallFunc) *tools.Tool {
	t.Helper()
	tool, err := tools.New(spec, call)
	require.NoError(t, err)
	return tool
}

// demo is the demo set and the given tools.
func demo(t *testing.T, more ...*tools.Tool) *tools.Set {
	t.Helper()
	list, err := tools.Demo()
	require.NoError(t, err)
	set, err := tools.NewSet(append(list, more...)...)
	require.NoError(t, err)
	return set
}

func call(id, name, arguments string) tools.Call {
	return tools.Call{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
}

func texts(out tools.Outcome) []string {
	var all []string
	for _, a := range out.Answers {
		all = append(all, a.Call.ID+": "+a.Text)
	}
	return all
}

func TestAnswersComeInTheOrderOfTheCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nap := func(name string, d time.Duration) *tools.Tool {
			return newTool(t, tools.Spec{Name: name}, func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
				time.Sleep(d)
				return tools.Result{Text: name}, nil
			})
		}
		began := time.Now()
		var launched []string
		out := executor(tools.Config{}).Run(t.Context(), demo(t, nap("slow", time.Second), nap("quick", time.Millisecond)),
			[]tools.Call{
				call("1", "slow", `{}`), call("2", "none", `{}`), call("3", "quick", `{}`), call("4", "echo", `{"text":5,"more":1}`),
				call("5", "echo", `not json`), call("6", "fail", `{"message":"no /home/me/secret.txt, token=abcdef123456"}`),
			},
			tools.Hooks{Launch: func(_ context.Context, ids []string) error {
				launched = ids
				return nil
			}})
		require.NoError(t, out.Err)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, []string{"1", "3", "6"}, launched)
		require.Equal(t, []string{
			"1: slow", "2: there is no tool of that name", "3: quick",
			`4: not run, the arguments are invalid: "more": is unknown; text: has type "integer", want "string"`,
			"5: not run, the arguments are invalid: the arguments are not valid JSON",
			"6: failed: no [path], [redacted]",
		}, texts(out))
		require.Equal(t, tools.ErrorInvalidArguments, out.Answers[3].Failure.Type)
		require.Len(t, out.Answers[3].Failure.ValidationErrors, 2)
		<-out.Exited
	})
}

func TestSteeringSkipsTheRestOfASequentialBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var seen []string
		out := executor(tools.Config{}).Run(t.Context(), demo(t),
			[]tools.Call{call("1", "sleep", `{"ms":10}`), call("2", "echo", `{"text":"b"}`), call("3", "echo", `{"text":"c"}`)},
			tools.Hooks{
				Boundary: func(context.Context) bool { asked++; return asked == 2 },
				Observe:  func(u tools.Update) { seen = append(seen, u.Call.ID+" "+string(u.Phase)) },
			})
		require.True(t, out.Steered)
		require.NoError(t, out.Err)
		require.Equal(t, []string{"1: slept 10ms", "2: b", "3: not run: the user spoke"}, texts(out))
		require.Equal(t, []string{"1 started", "1 completed", "2 started", "2 completed", "3 completed"}, seen)
		require.Equal(t, 10*time.Millisecond, out.Answers[0].Took)
		require.Zero(t, out.Answers[2].Took)
	})
}

func TestNothingStartsBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	refused := errors.New("fenced")
	called := false
	tool := newTool(t, tools.Spec{Name: "tool"}, func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
		called = true
		return tools.Result{}, nil
	})
	out := executor(tools.Config{}).Run(t.Context(), demo(t, tool), []tools.Call{call("1", "tool", `{}`)},
		tools.Hooks{Launch: func(context.Context, []string) error { return refused }})
	require.ErrorIs(t, out.Err, refused)
	require.False(t, called)
	require.Equal(t, tools.ErrorNotRun, out.Answers[0].Failure.Type)
}

func TestCancelTellsWhatRanFromWhatDidNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		deed := newTool(t, tools.Spec{Name: "deed"}, func(ctx context.Context, _ json.RawMessage, _ func(tools.Progress)) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{Text: "done all the same"}, nil
		})
		killed := newTool(t, tools.Spec{Name: "killed"}, func(ctx context.Context, _ json.RawMessage, _ func(tools.Progress)) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, errors.New("signal: killed")
		})
		out := executor(tools.Config{Parallel: 3}).Run(ctx, demo(t, deed, killed),
			[]tools.Call{call("1", "echo", `{"text":"a"}`), call("2", "deed", `{}`), call("3", "killed", `{}`), call("4", "killed", `{}`), call("5", "killed", `{}`)},
			tools.Hooks{Boundary: func(context.Context) bool { panic("no boundary after a cancel") }})
		require.ErrorIs(t, out.Err, cause)
		require.Equal(t, []string{
			"1: a", "2: done all the same",
			"3: cancelled while it ran, its effects are unknown: the run was cancelled",
			"4: cancelled while it ran, its effects are unknown: the run was cancelled",
			"5: not run: the run was cancelled",
		}, texts(out))
	})
}

func TestToolThatIgnoresItsEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := newTool(t, tools.Spec{Name: "deaf", Timeout: 10 * time.Second},
			func(_ context.Context, _ json.RawMessage, report func(tools.Progress)) (tools.Result, error) {
				<-release
				for range 1000 {
					report(tools.Progress{Message: "late"})
				}
				return tools.Result{Text: "late"}, nil
			})
		began := time.Now()
		out := executor(tools.Config{Grace: time.Second}).Run(t.Context(), demo(t, deaf), []tools.Call{call("1", "deaf", `{}`)}, tools.Hooks{})
		require.Equal(t, 11*time.Second, time.Since(began))
		require.NoError(t, out.Err)
		require.Equal(t, []string{"1: timed out after 10s, its effects are unknown"}, texts(out))
		require.Equal(t, 10*time.Second, out.Answers[0].Failure.Timeout)
		synctest.Wait()
		select {
		case <-out.Exited:
			require.Fail(t, "it still runs")
		default:
		}
		close(release)
		<-out.Exited
		require.Equal(t, []string{"1: timed out after 10s, its effects are unknown"}, texts(out), "a late result changes nothing")
	})
}

func TestPanicIsTheFailureOfItsCallOnly(t *testing.T) {
	t.Parallel()
	broken := newTool(t, tools.Spec{Name: "broken"}, func(_ context.Context, arguments json.RawMessage, _ func(tools.Progress)) (tools.Result, error) {
		return tools.Result{Text: string(arguments[3:])}, nil
	})
	ended := newTool(t, tools.Spec{Name: "ended"}, func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
		runtime.Goexit()
		return tools.Result{}, nil
	})
	out := executor(tools.Config{}).Run(t.Context(), demo(t, broken, ended),
		[]tools.Call{call("1", "broken", `{}`), call("2", "ended", `{}`), call("3", "echo", `{"text":"fine"}`)}, tools.Hooks{})
	require.Equal(t, []string{"1: failed: the tool broke down", "2: failed: the tool broke down", "3: fine"}, texts(out))
	require.Equal(t, tools.ErrorPanic, out.Answers[0].Failure.Type)
	require.Equal(t, "runtime.boundsError", out.Answers[0].Failure.Exception)
}

func TestProgressIsObservedWhileTheToolRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := newTool(t, tools.Spec{Name: "steps"}, func(_ context.Context, _ json.RawMessage, report func(tools.Progress)) (tools.Result, error) {
			report(tools.Progress{Message: "half", Done: 1, Total: 2})
			time.Sleep(time.Second)
			return tools.Result{}, nil
		})
		var seen []tools.Update
		out := executor(tools.Config{}).Run(t.Context(), demo(t, steps), []tools.Call{call("1", "steps", `{}`)},
			tools.Hooks{Observe: func(u tools.Update) { seen = append(seen, u) }})
		require.Equal(t, []string{"1: (no output)"}, texts(out))
		require.Len(t, seen, 3)
		require.Equal(t, tools.Progress{Message: "half", Done: 1, Total: 2}, seen[1].Progress)
	})
}

func TestLongResultIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]string{
		"runes":   strings.Repeat("é€😀", 20_000),
		"invalid": strings.Repeat("\xffa", 40_000),
		"short":   strings.Repeat("\xffa", 30_000),
	} {
		tool := newTool(t, tools.Spec{Name: "long"}, func(context.Context, json.RawMessage, func(tools.Progress)) (tools.Result, error) {
			return tools.Result{Text: long}, nil
		})
		out := executor(tools.Config{}).Run(t.Context(), demo(t, tool), []tools.Call{call("1", "long", `{}`)}, tools.Hooks{})
		answer := out.Answers[0]
		require.True(t, answer.Cut, name)
		require.LessOrEqual(t, len(answer.Text), tools.ResultLimit, name)
		require.Greater(t, len(answer.Text), tools.ResultLimit-64, name)
		require.Equal(t, strings.ToValidUTF8(answer.Text, ""), answer.Text, name)
		require.Contains(t, answer.Text, "[cut: the result has ", name)
	}
}

func TestConfigRefusesNegatives(t *testing.T) {
	t.Parallel()
	require.NoError(t, tools.Config{}.Validate())
	require.Error(t, tools.Config{Timeout: -1, Grace: -1, Parallel: -1}.Validate())
}

func TestModelThatCallsWhatItWasNotOfferedIsTold(t *testing.T) {
	t.Parallel()
	var none *tools.Set
	require.Zero(t, none.Len())
	require.Empty(t, none.Specs())
	out := executor(tools.Config{}).Run(t.Context(), none, []tools.Call{call("1", "echo", `{}`)}, tools.Hooks{
		Launch:   func(context.Context, []string) error { return errors.New("nothing is to be recorded") },
		Boundary: func(context.Context) bool { return true },
	})
	require.NoError(t, out.Err)
	require.False(t, out.Steered)
	require.Equal(t, []string{"1: there is no tool of that name"}, texts(out))
}
