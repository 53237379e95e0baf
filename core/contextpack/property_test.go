package contextpack

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/core/router"
	"github.com/correx/correx-actors/messages"
)

func drawState(t *rapid.T) router.State {
	var s router.State
	for _, stage := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12).Draw(t, "stages") {
		text := strings.Repeat(" w", rapid.IntRange(0, 6).Draw(t, "words"))
		switch rapid.IntRange(0, 3).Draw(t, "event") {
		case 0:
			s = reduce(s, &messages.WorkflowStarted{})
		case 1:
			s = reduce(s, &messages.StageFailed{StageId: stage, Reason: text})
		case 2:
			s = reduce(s, &messages.StageCancelled{StageId: stage, Reason: text})
		default:
			s = reduce(s, &messages.StageCompleted{StageId: stage, Summary: text})
		}
	}
	return s
}

func drawTurns(t *rapid.T) []Turn {
	roles := rapid.SampledFrom([]messages.Role{messages.RoleUser, messages.RoleRouter, messages.RoleUser, messages.RoleRouter, RoleBackground})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
		return Turn{Role: roles.Draw(t, "role"), Content: strings.Repeat("t ", rapid.IntRange(0, 6).Draw(t, "words"))}
	}), 0, 14).Draw(t, "turns")
}

func drawBudget(t *rapid.T) Budget {
	return Budget{
		Tokens:       rapid.IntRange(0, 160).Draw(t, "tokens"),
		Window:       rapid.SampledFrom([]int{0, 0, 10, 25, 60, 120}).Draw(t, "window"),
		KeepLast:     rapid.IntRange(0, 8).Draw(t, "keep last"),
		SystemPrompt: "be helpful",
		Counter:      words{},
	}
}

// twin is Build in its plainest form: everything is put in, and while it is too much the next in the order of I4 is taken out.
// It gives the contents of the prompt.
func twin(s router.State, turns []Turn, budget Budget) []string {
	limit := budget.Tokens
	if budget.Window > 0 && budget.Window < limit {
		limit = budget.Window
	}
	var stages, background, history []string
	for _, e := range s.L2.All() {
		stages = append(stages, stageText(e))
	}
	newest := ""
	seen := 0
	for _, turn := range slices.Backward(turns) {
		switch {
		case strings.TrimSpace(turn.Content) == "":
		case turn.Role == RoleBackground:
			background = append(background, turn.Content)
		case turn.Role == messages.RoleUser && newest == "":
			seen++
			newest = turn.Content
			history = append(history, "newest")
		case seen < budget.KeepLast:
			seen++
			history = append(history, turn.Content)
		}
	}
	slices.Reverse(background)
	slices.Reverse(history)
	conversation := slices.Concat(background, history)
	prompt := func() []string {
		all := slices.Concat([]string{"be helpful", statusText(s)}, stages, conversation)
		if i := slices.Index(all, "newest"); i >= 0 {
			all[i] = newest
		}
		return all
	}
	for tokens(prompt()) > limit {
		if len(stages) > 0 {
			stages = stages[1:]
			continue
		}
		i := slices.IndexFunc(conversation, func(text string) bool { return text != "newest" })
		if i < 0 {
			break
		}
		conversation = slices.Delete(conversation, i, i+1)
	}
	return prompt()
}

func tokens(contents []string) int {
	sum := 0
	for _, text := range contents {
		sum += words{}.Count(text) + MessageOverhead
	}
	return sum
}

// I4, against the twin: the same entries, in the same order, for every state, conversation and budget.
func TestBuildDropsAsItsPlainTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		state, turns, budget := drawState(t), drawTurns(t), drawBudget(t)
		var got []string
		for _, e := range Build(state, turns, budget).Messages() {
			got = append(got, e.Content)
		}
		require.Equal(t, twin(state, turns, budget), got)
	})
}

func TestPackKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		state, turns, budget := drawState(t), drawTurns(t), drawBudget(t)
		given := slices.Clone(turns)
		p := Build(state, turns, budget)

		require.Equal(t, p, Build(state, turns, budget), "deterministic")
		require.Equal(t, given, turns, "the turns are the caller's")

		kept, exempt := 0, 0
		var layers []Layer
		for _, e := range p.Entries {
			require.NotEmpty(t, e.Reason)
			require.Equal(t, e.Kept, strings.HasPrefix(e.Reason, "kept: "), e.Reason)
			require.Equal(t, words{}.Count(e.Content)+MessageOverhead, e.Tokens)
			layers = append(layers, e.Layer)
			if e.Kept {
				kept += e.Tokens
				require.NotEmpty(t, strings.TrimSpace(e.Content), "B65")
			}
			if e.Reason == reasonL0 || e.Reason == reasonNewest {
				exempt += e.Tokens
			}
		}
		require.True(t, slices.IsSortedFunc(layers, func(a, b Layer) int { return order(a) - order(b) }))
		require.Equal(t, []bool{true, true}, []bool{p.Entries[0].Kept, p.Entries[1].Kept}, "L0 is never dropped")
		require.Equal(t, kept, p.Tokens)
		require.True(t, kept <= p.Budget || kept == exempt, "within the budget, or nothing but what is exempt")
		require.Equal(t, exempt > p.Budget, p.OverBudget)
		require.Equal(t, budget.Window > 0 && exempt > budget.Window, p.Overflow)
		require.Len(t, p.Entries, 2+state.L2.Len()+len(turns), "every entry explains itself")
		requireUnbroken(t, p, L2)
		requireUnbroken(t, p, L1)
	})
}

// requireUnbroken checks that what a layer keeps by the budget is its newest part.
func requireUnbroken(t require.TestingT, p Pack, layer Layer) {
	dropped := false
	for _, e := range slices.Backward(p.Entries) {
		if e.Layer != layer {
			continue
		}
		dropped = dropped || e.Reason == reasonOverL1 || e.Reason == reasonOverL2
		if dropped && e.Reason != reasonNewest {
			require.False(t, e.Kept, "%q is older than a dropped one", e.Content)
		}
	}
}

func order(l Layer) int { return slices.Index([]Layer{L0, L2, L1}, l) }

// I3: each text of a pack is the system prompt, or was in the state or a turn.
func TestPackHoldsNothingThatItWasNotGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		state, turns, budget := drawState(t), drawTurns(t), drawBudget(t)
		given := map[string]bool{budget.SystemPrompt: true, statusText(state): true}
		for _, e := range state.L2.All() {
			given[stageText(e)] = true
		}
		for _, turn := range turns {
			given[turn.Content] = true
		}
		for _, e := range Build(state, turns, budget).Entries {
			require.True(t, given[e.Content], "%q", e.Content)
		}
	})
}
