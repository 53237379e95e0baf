package coalesce_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/coalesce"
)

func TestActionsArePublishedAsTheyAre(t *testing.T) {
	t.Parallel()
	timeout, code := int64(1500), int64(-1)
	failed := coalesce.Action{
		ID: "a", Parent: "p", Kind: coalesce.KindCommand, Title: "make", Phase: coalesce.PhaseCompleted,
		Failure: &coalesce.Failure{
			ErrorType: "exit", ToolName: "sh", Reason: "r", Errors: []string{"x", "y"}, Exception: "e", Message: "m", Status: "s",
			TimeoutMS: &timeout, ExitCode: &code,
		},
	}
	require.Equal(t, failed, coalesce.ActionOf(failed.Message()), "nothing is lost")
	require.False(t, failed.Message().GetOk())
	require.NotNil(t, failed.Message().Ok, "a failure is told as one, and not left out")

	open := coalesce.Action{ID: "b", Kind: coalesce.KindTool, Phase: coalesce.PhaseUpdated}
	require.Equal(t, open, coalesce.ActionOf(open.Message()))
	require.Nil(t, open.Message().Ok)

	var tools coalesce.Tools
	tools, _ = tools.Action(coalesce.DefaultConfig(), failed, start)
	tools, _ = tools.Action(coalesce.DefaultConfig(), open, start)
	_, step := tools.Final()
	status := step.Status.Message("run_1")
	require.True(t, status.GetFinal())
	require.Equal(t, "exit", status.GetActions()[0].GetError().GetErrorType())
	require.Equal(t, coalesce.ErrorCut, status.GetActions()[1].GetError().GetErrorType(), "W32")
	require.False(t, status.GetActions()[1].GetOk())

	beyond := int64(math.MaxInt32) + 1
	failed.Failure.ExitCode, failed.Failure.TimeoutMS = &beyond, &code
	require.Nil(t, failed.Message().GetError().ExitCode)
	require.Zero(t, failed.Message().GetError().GetTimeoutMs())
}

func TestFailuresKeepOnlySafeFields(t *testing.T) {
	t.Parallel()
	require.Nil(t, coalesce.ReadFailure(nil))
	require.Nil(t, coalesce.ReadFailure(map[string]any{"message": "no type", "exit_code": 1}))
	failure := coalesce.ReadFailure(map[string]any{
		"error_type": "timeout", "tool_name": "sh", "reason": 7, "errors": []any{"a", 1, "b"}, "timeout_ms": 1500, "exit_code": 1.5,
		"message": strings.Repeat("é", 1000), "status": "failed\xff", "command": "cat /etc/passwd", "env": map[string]any{"KEY": "secret"},
	})
	timeout := int64(1500)
	require.Equal(t, &coalesce.Failure{
		ErrorType: "timeout", ToolName: "sh", Errors: []string{"a", "b"}, TimeoutMS: &timeout,
		Message: strings.Repeat("é", 512), Status: "failed\uFFFD",
	}, failure)
	many := make([]string, 100)
	require.Len(t, coalesce.ReadFailure(map[string]any{"error_type": "x", "errors": many}).Errors, 16)
}

func TestW29ActionsAreBoundedInSize(t *testing.T) {
	t.Parallel()
	cfg := coalesce.DefaultConfig()
	long := strings.Repeat("ü", 1000)
	var tools coalesce.Tools
	for _, bad := range []coalesce.Action{
		{ID: long, Kind: coalesce.KindTool, Phase: coalesce.PhaseStarted},
		{ID: "\xff", Kind: coalesce.KindTool, Phase: coalesce.PhaseStarted},
		{ID: "", Kind: coalesce.KindTool, Phase: coalesce.PhaseStarted},
	} {
		tools, _ = tools.Action(cfg, bad, start)
	}
	tools, _ = tools.Action(cfg, coalesce.Action{
		ID: "a", Parent: "a", ChildRun: long, Kind: coalesce.KindTool, Phase: coalesce.PhaseStarted, Title: "x" + long,
	}, start)
	_, step := tools.Flush()
	require.Len(t, step.Status.Actions, 1)
	a := step.Status.Actions[0]
	require.LessOrEqual(t, len(a.Title), 512)
	require.True(t, utf8.ValidString(a.Title))
	require.Empty(t, a.Parent, "an action is no part of itself")
	require.Empty(t, a.ChildRun)
}

// The thresholds that a wrong configuration would turn around.
func TestThresholdsAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, coalesce.DefaultConfig().Validate())
	require.NoError(t, coalesce.Config{ToolActions: 1}.Validate(), "0 is off")
	require.ErrorContains(t, coalesce.Config{Idle: -1, ToolActions: 1}.Validate(), "output.idle: must be at least 0")
	require.ErrorContains(t, coalesce.Config{}.Validate(), "output.tool_actions: must be at least 1")
}
