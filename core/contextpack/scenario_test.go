package contextpack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

// words counts a token for each word, so that the scenarios' sums can be done by hand.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }
func (words) Name() string          { return "words" }

// Each file of testdata shows one rule of Build. The input of "build" has one line for each event of the log (as JSON) and for each
// turn ("user: …", "router: …", "cut: …" for an answer that was cut short, "background: …"); the result has one line for each entry.
func TestBuildRules(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, runBuild)
	})
}

func runBuild(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	require.Equal(t, "build", d.Cmd)
	budget := Budget{Tokens: 1000, KeepLast: 6, SystemPrompt: "be helpful", Counter: words{}}
	d.MaybeScanArgs(t, "tokens", &budget.Tokens)
	d.MaybeScanArgs(t, "window", &budget.Window)
	d.MaybeScanArgs(t, "keep_last", &budget.KeepLast)
	state, turns := parseInput(t, d.Input)
	return printPack(Build(state, turns, budget))
}

func parseInput(t *testing.T, input string) (router.State, []Turn) {
	t.Helper()
	var state router.State
	var turns []Turn
	for line := range strings.Lines(input) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "{") {
			e, err := messages.EventFromJSON([]byte(line))
			require.NoError(t, err)
			state = reduce(state, e)
			continue
		}
		speaker, text, ok := strings.Cut(line, ":")
		require.True(t, ok, line)
		turn := Turn{Content: strings.TrimPrefix(text, " ")}
		switch speaker {
		case "user":
			turn.Role = messages.RoleUser
		case "router":
			turn.Role = messages.RoleRouter
		case "cut":
			turn.Role, turn.Partial = messages.RoleRouter, true
		case "background":
			turn.Role = RoleBackground
		default:
			turn.Role = messages.Role(speaker)
		}
		turns = append(turns, turn)
	}
	return state, turns
}

func reduce(s router.State, e messages.Event) router.State {
	return router.Reduce(s, e, s.EventSequence+1, time.Unix(0, 0).UTC(), messages.NewKey("s1"))
}

func printPack(p Pack) string {
	var b strings.Builder
	for _, e := range p.Entries {
		fmt.Fprintf(&b, "%s %-9s %2d %-60q %s\n", e.Layer, e.Role, e.Tokens, e.Content, e.Reason)
	}
	fmt.Fprintf(&b, "%d of %d tokens (%s)", p.Tokens, p.Budget, p.Tokenizer)
	if p.OverBudget {
		b.WriteString(", over budget")
	}
	if p.Overflow {
		b.WriteString(", overflow")
	}
	fmt.Fprintf(&b, "\nbrief: %s %q succeeded=%q failed=%q cancelled=%q\n",
		p.Brief.Status, p.Brief.CurrentStage, p.Brief.Succeeded, p.Brief.Failed, p.Brief.Cancelled)
	return b.String()
}
