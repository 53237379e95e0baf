package coalesce_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/coalesce"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Each file of testdata shows one rule. at=1s sets the time since the start; a text is a quoted Go string, and repeat=n repeats it.
func TestRules(t *testing.T) {
	t.Parallel()
	machines := map[string]func() func(*testing.T, *datadriven.TestData) string{
		"answer": func() func(*testing.T, *datadriven.TestData) string {
			return (&answerScript{cfg: coalesce.DefaultConfig()}).run
		},
		"tools": func() func(*testing.T, *datadriven.TestData) string {
			return (&toolScript{cfg: coalesce.DefaultConfig()}).run
		},
	}
	for machine, script := range machines {
		paths, err := filepath.Glob(filepath.Join("testdata", machine, "*.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			t.Run(machine+"/"+strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
				t.Parallel()
				datadriven.RunTest(t, path, script())
			})
		}
	}
}

// args are the arguments of a command.
type args map[string]string

func read(d *datadriven.TestData) args {
	found := make(args)
	for _, arg := range d.CmdArgs {
		found[arg.Key] = strings.Join(arg.Vals, ",")
	}
	return found
}

func (a args) has(key string) bool {
	_, found := a[key]
	return found
}

func (a args) number(t *testing.T, key string) int {
	t.Helper()
	n, err := strconv.Atoi(a[key])
	require.NoError(t, err, key)
	return n
}

func (a args) duration(t *testing.T, key string) time.Duration {
	t.Helper()
	if !a.has(key) {
		return 0
	}
	d, err := time.ParseDuration(a[key])
	require.NoError(t, err, key)
	return d
}

func (a args) text(t *testing.T, input string) string {
	t.Helper()
	if input == "" {
		return ""
	}
	text, err := strconv.Unquote(strings.TrimSpace(input))
	require.NoError(t, err, input)
	if a.has("repeat") {
		text = strings.Repeat(text, a.number(t, "repeat"))
	}
	return text
}

// quoted shows a text, a long one by its ends.
func quoted(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%q… (%d bytes)", text[:20], len(text))
	}
	return strconv.Quote(text)
}

func timer(t coalesce.Timer) string {
	if t.Generation == 0 {
		return ""
	}
	return fmt.Sprintf("arm %d after %s\n", t.Generation, t.After)
}

type answerScript struct {
	cfg    coalesce.Config
	answer coalesce.Answer
	now    time.Time
}

func (s *answerScript) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := read(d)
	if a.has("at") {
		s.now = start.Add(a.duration(t, "at"))
	}
	var step coalesce.Step
	switch d.Cmd {
	case "config":
		s.cfg.MinChars, s.cfg.Idle, s.cfg.Latency = a.number(t, "min_chars"), a.duration(t, "idle"), a.duration(t, "latency")
		return ""
	case "attempt":
		s.answer = s.answer.Attempt(uint32(a.number(t, "n"))) //nolint:gosec // a small number
		return ""
	case "delta":
		s.answer, step = s.answer.Delta(s.cfg, a.text(t, d.Input), s.now)
	case "timer":
		s.answer, step = s.answer.Timer(s.cfg, uint64(a.number(t, "gen")), s.now) //nolint:gosec // a small number
	case "flush":
		s.answer, step = s.answer.Flush()
	case "snapshot":
		return quoted(s.answer.Snapshot(a.number(t, "limit"))) + "\n"
	case "final":
		var final coalesce.Final
		s.answer, final = s.answer.Final(a.text(t, d.Input))
		var out strings.Builder
		fmt.Fprintf(&out, "final %s streamed=%t\n", quoted(final.Text), final.Streamed)
		for _, r := range final.Requests {
			fmt.Fprintf(&out, "send %q (%s)\n", r.Path, r.Source)
		}
		return out.String()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	out := timer(step.Timer)
	if step.Text != "" {
		out = fmt.Sprintf("publish at %d %s\n", step.Offset, quoted(step.Text)) + out
	}
	if out == "" {
		return "nothing\n"
	}
	return out
}

type toolScript struct {
	cfg   coalesce.Config
	tools coalesce.Tools
	now   time.Time
}

func (s *toolScript) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := read(d)
	if a.has("at") {
		s.now = start.Add(a.duration(t, "at"))
	}
	var step coalesce.ToolStep
	switch d.Cmd {
	case "limit":
		s.cfg.ToolActions = a.number(t, "n")
		return ""
	case "attempt":
		s.tools = s.tools.Attempt(uint32(a.number(t, "n"))) //nolint:gosec // a small number
		return ""
	case "action":
		action := coalesce.Action{
			ID: a["id"], Parent: a["parent"], ChildRun: a["child"], Kind: coalesce.KindTool, Title: a["title"],
			Phase: coalesce.Phase(a["phase"]), OK: a["ok"] == "true", Reasoning: a["reasoning"],
		}
		if a.has("kind") {
			action.Kind = coalesce.Kind(a["kind"])
		}
		if a.has("error_type") {
			action.Failure = coalesce.ReadFailure(map[string]any{
				"error_type": a["error_type"], "message": a["message"], "exit_code": float64(2),
				"command": "rm -rf /", "output": "secret",
			})
		}
		s.tools, step = s.tools.Action(s.cfg, action, s.now)
	case "timer":
		s.tools, step = s.tools.Timer(s.cfg, uint64(a.number(t, "gen")), s.now) //nolint:gosec // a small number
	case "flush":
		s.tools, step = s.tools.Flush()
	case "final":
		s.tools, step = s.tools.Final()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	if out := status(step.Status) + timer(step.Timer); out != "" {
		return out
	}
	return "nothing\n"
}

func status(s *coalesce.Status) string {
	if s == nil {
		return ""
	}
	var out strings.Builder
	if s.Final {
		out.WriteString("final")
	} else {
		out.WriteString("snapshot")
	}
	if s.Omitted > 0 {
		fmt.Fprintf(&out, ", %d omitted", s.Omitted)
	}
	out.WriteString("\n")
	for _, a := range s.Actions {
		fmt.Fprintf(&out, "  %s %s %s", a.ID, a.Kind, a.Phase)
		if a.Phase == coalesce.PhaseCompleted {
			fmt.Fprintf(&out, " ok=%t", a.OK)
		}
		if a.Cut {
			out.WriteString(" cut")
		}
		if a.Parent != "" {
			out.WriteString(" in " + a.Parent)
		}
		if a.Title != "" {
			fmt.Fprintf(&out, " %q", a.Title)
		}
		if f := a.Failure; f != nil {
			fmt.Fprintf(&out, " failure %s %q exit %d", f.ErrorType, f.Message, *f.ExitCode)
		}
		out.WriteString("\n")
	}
	return out.String()
}
