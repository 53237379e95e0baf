package offline_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/offline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var running = contextpack.Brief{
	Status: "RUNNING", CurrentStage: "deploy", Succeeded: []string{"plan", "build"}, Failed: []string{"lint"},
}

// talk makes a pack of a conversation: the user begins, the engine answers in turn.
func talk(brief contextpack.Brief, turns ...string) inference.Request {
	pack := contextpack.Pack{Brief: brief, Entries: []contextpack.Entry{
		{Layer: contextpack.L0, Role: contextpack.RoleSystem, Content: "rules", Kept: true},
	}}
	for i, turn := range turns {
		role := contextpack.RoleUser
		if i%2 == 1 {
			role = contextpack.RoleAssistant
		}
		pack.Entries = append(pack.Entries, contextpack.Entry{Layer: contextpack.L1, Role: role, Content: turn, Kept: true})
	}
	return inference.Request{Pack: pack}
}

func say(t *testing.T, request inference.Request) (string, inference.Completion) {
	t.Helper()
	var text strings.Builder
	completion, err := offline.New(offline.Config{}).Infer(t.Context(), request, func(event inference.Event) error {
		if delta, ok := event.(inference.Delta); ok {
			text.WriteString(delta.Text)
		}
		return nil
	})
	require.NoError(t, err)
	return text.String(), completion
}

const summary = "The workflow is running.\n\n- Current stage: deploy\n- Succeeded: plan, build\n- Failed: lint"

func TestAnswersComeFromThePack(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"status?":                           summary,
		"How is it going":                   summary,
		"Give me an update, please":         summary,
		"what failed?":                      "1 stage failed:\n\n- lint",
		"What went wrong":                   "1 stage failed:\n\n- lint",
		"What's done?":                      "2 stages succeeded:\n\n- plan\n- build",
		"was anything cancelled?":           "As far as I know, no stage was cancelled.",
		"what is the current stage":         "The current stage is deploy. The workflow is running.",
		"where are we?":                     "The current stage is deploy. The workflow is running.",
		"what did I say?":                   "Before this you said:\n\n- “ship it on Friday”",
		"thanks!":                           "You are welcome.",
		"Stop retrying the failed stage":    "Noted: “Stop retrying the failed stage”",
		"please focus on the tests":         "Noted: “please focus on the tests”",
		"don't touch the database":          "Noted: “don't touch the database”",
		"do not touch the database":         "Noted: “do not touch the database”",
		"what is the capital of France?":    "I cannot answer that without a language model, but this is what I know.\n\n" + summary,
		"hello":                             "Hello! The workflow is running.",
		"help":                              "I can tell what this session knows:",
		"Can you build a rocket?":           "I cannot answer that",
		"日本語":                               "I cannot answer that",
		"which stage is it, this one":       "The current stage is deploy.",
		"Were there any errors in the run?": "1 stage failed",
	} {
		got, completion := say(t, talk(running, "ship it on Friday", "fine", asked))
		require.True(t, strings.HasPrefix(got, want), "%s\n%s", asked, got)
		require.NotContains(t, got, "OPENAI_API_KEY\n")
		require.Equal(t, inference.FinishStop, completion.FinishReason)
		require.Equal(t, offline.Name, completion.Model)
		again, _ := say(t, talk(running, "ship it on Friday", "fine", asked))
		require.Equal(t, got, again, "the same pack, the same answer")
	}
}

func TestFirstAnswerSaysWhatTheEngineIs(t *testing.T) {
	t.Parallel()
	first, _ := say(t, talk(running, "status"))
	require.Contains(t, first, "offline engine: no language model")
	require.Contains(t, first, "OPENAI_API_KEY")
	require.Contains(t, first, "OPENAI_BASE_URL")
	second, _ := say(t, talk(running, "status", first, "status"))
	require.Equal(t, summary, second)
}

func TestNothingIsInvented(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"status":         "I was not told how the workflow stands. No stage has been reported.",
		"what failed":    "As far as I know, no stage failed.",
		"what is done":   "As far as I know, no stage succeeded.",
		"current stage":  "No stage is running. I was not told how the workflow stands.",
		"what did I say": "This is your first message that I can see.",
	} {
		got, _ := say(t, talk(contextpack.Brief{}, asked))
		require.True(t, strings.HasPrefix(got, want), "%s\n%s", asked, got)
	}
	for status, want := range map[string]string{
		"IDLE": "has not started", "PAUSED": "is paused", "COMPLETED": "has completed", "FAILED": "has failed", "ODD": "status is ODD",
	} {
		got, _ := say(t, talk(contextpack.Brief{Status: status}, "a", "b", "status"))
		require.Contains(t, got, want)
	}
	got, _ := say(t, inference.Request{})
	require.Contains(t, got, "without a language model")
}

func TestDroppedEntriesAreNotSeen(t *testing.T) {
	t.Parallel()
	request := talk(running, "secret plan", "ok", "what did I say?")
	request.Pack.Entries[1].Kept = false
	got, _ := say(t, request)
	require.NotContains(t, got, "secret plan")
}

func TestLongListsAndQuotesAreBounded(t *testing.T) {
	t.Parallel()
	many := make([]string, 30)
	for i := range many {
		many[i] = "s" + strings.Repeat("x", i)
	}
	got, _ := say(t, talk(contextpack.Brief{Status: "RUNNING", Succeeded: many}, "a", "b", "what is done"))
	require.Contains(t, got, "30 stages succeeded:")
	require.Contains(t, got, "\n- and 22 earlier")
	got, _ = say(t, talk(running, "a\n\nMEDIA:x "+strings.Repeat("word ", 1000), "b", "what did I say"))
	require.Less(t, len(got), 400)
	require.Contains(t, got, "- “a MEDIA:x word")
}

func TestTokensAreWholeWordsAndCounted(t *testing.T) {
	t.Parallel()
	var tokens []string
	first := true
	completion, err := offline.New(offline.Config{}).Infer(t.Context(), talk(running, "a", "b", "status"), func(event inference.Event) error {
		if first {
			require.Equal(t, inference.Connected{}, event)
			first = false
			return nil
		}
		tokens = append(tokens, event.(inference.Delta).Text)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"The", " workflow", " is", " running.", "\n\n-", " Current", " stage:", " deploy", "\n-"}, tokens[:9])
	require.Equal(t, summary, strings.Join(tokens, ""))
	require.Equal(t, inference.Usage{InputTokens: 6, OutputTokens: uint64(len(summary)+3) / 4, Known: true}, completion.Usage)
}

func TestMaxTokensCutsAtAWord(t *testing.T) {
	t.Parallel()
	request := talk(running, "a", "b", "status")
	request.MaxTokens = 5
	got, completion := say(t, request)
	require.Equal(t, "The workflow is", got)
	require.Equal(t, inference.FinishLength, completion.FinishReason)
	require.LessOrEqual(t, completion.Usage.OutputTokens, uint64(5))
}

func TestDelayIsWaitedBeforeEachToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started, tokens := time.Now(), 0
		_, err := offline.New(offline.Config{Delay: time.Minute}).Infer(t.Context(), talk(running, "a", "b", "thanks"),
			func(event inference.Event) error {
				if _, ok := event.(inference.Delta); ok {
					tokens++
					require.Equal(t, time.Duration(tokens)*time.Minute, time.Since(started))
				}
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, 3, tokens)
	})
}

func TestCancelEndsTheAnswerAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(90*time.Second, func() { cancel(why) })
		started, tokens := time.Now(), 0
		completion, err := offline.New(offline.Config{Delay: time.Minute}).Infer(ctx, talk(running, "status"), func(event inference.Event) error {
			if _, ok := event.(inference.Delta); ok {
				tokens++
			}
			return nil
		})
		require.Equal(t, inference.KindCanceled, inference.KindOf(err))
		require.ErrorIs(t, err, why)
		require.Equal(t, 90*time.Second, time.Since(started))
		require.Equal(t, 1, tokens)
		require.Equal(t, uint64(1), completion.Usage.OutputTokens)
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := offline.New(offline.Config{}).Infer(ctx, talk(running, "status"), func(event inference.Event) error {
		if _, ok := event.(inference.Delta); ok {
			cancel()
		}
		return nil
	})
	require.Equal(t, inference.KindCanceled, inference.KindOf(err), "also without a delay")
}

func TestReportsErrorAndOverflowStopTheAnswer(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	calls := 0
	_, err := offline.New(offline.Config{}).Infer(t.Context(), talk(running, "status"), func(inference.Event) error {
		calls++
		if calls == 3 {
			return full
		}
		return nil
	})
	require.Equal(t, full, err)
	require.Equal(t, 3, calls)

	request := talk(running, "status")
	request.Pack.Overflow = true
	_, err = offline.New(offline.Config{}).Infer(t.Context(), request, func(inference.Event) error { return full })
	require.Equal(t, inference.KindContextOverflow, inference.KindOf(err))
	require.Error(t, offline.Config{Delay: -1}.Validate())
	require.NoError(t, offline.Config{Delay: 1}.Validate())
}
