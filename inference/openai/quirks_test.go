package openai_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

// TestEveryQuirkIsReadRight takes the whole catalogue, each row written as the server likes and in single bytes.
func TestEveryQuirkIsReadRight(t *testing.T) {
	t.Parallel()
	for _, quirk := range llmserver.Quirks() {
		if quirk.Slow {
			continue
		}
		checkQuirks(t, quirk.Name)
	}
}

func TestSlowQuirksAreReadRight(t *testing.T) {
	t.Parallel()
	for _, quirk := range llmserver.Quirks() {
		if !quirk.Slow {
			continue
		}
		t.Run(quirk.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, stop := llmserver.New(llmserver.Answer{Quirk: quirk.Name}).Pipe()
				provider, err := openai.New(openai.Config{BaseURL: llmserver.PipeURL, HTTPClient: client, Model: llmserver.Model})
				require.NoError(t, err)
				checkQuirk(t, quirk, provider)
				stop()
			})
		})
	}
}

func TestB97KeepAlivesDoNotEndTheStream(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "keep_alives", "blank_lines")
}

func TestB98EventsWithoutDataAreSkipped(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "empty_data", "fields")
}

func TestB100EndMarkWithoutReasonIsANormalEnd(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "null_reason", "tail_done")
}

func TestB101UnknownFinishReasonIsKept(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "unknown_reason", "length", "starved", "reason_error")
}

func TestB103ErrorBehindOtherKeysIsAnError(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "error_not_first", "error_not_first_late", "error_after_comment", "error_spaced", "error_event", "null_error")
}

func TestB104ErrorFrameIsAnErrorWhateverFollows(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "error_first", "error_hold", "error_text", "error_object", "error_unframed", "error_tail")
}

func TestB106NoChoicesIsAnError(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "prompt_filtered", "prompt_passed", "no_choices", "document_filtered", "document_no_choices")
}

func TestB107PiecesOfToolCallsFindTheirCall(t *testing.T) {
	t.Parallel()
	named := 0
	for _, quirk := range llmserver.Quirks() {
		if strings.HasPrefix(quirk.Name, "tool_calls") || quirk.Name == "function_call" {
			named++
			checkQuirks(t, quirk.Name)
		}
	}
	require.Greater(t, named, 15)
}

func TestB109CharactersMayBeSplitBetweenWrites(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "scripts")
}

func TestB110LineEndsMayBeAny(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "crlf", "cr", "bom", "multi_line")
}

func TestB122UnknownUsageIsUnknown(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "no_usage", "zero_usage", "null_usage", "hold_finished")
}

func TestB124ReasoningWithoutTextIsAnOutcome(t *testing.T) {
	t.Parallel()
	checkQuirks(t, "reasoning", "only_reasoning")
}

func checkQuirks(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		quirk, ok := llmserver.QuirkNamed(name)
		require.True(t, ok, name)
		if quirk.Slow {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, provider := serve(t, llmserver.Answer{Quirk: name})
			checkQuirk(t, quirk, provider)
		})
		t.Run(name+"/piecewise", func(t *testing.T) {
			t.Parallel()
			piece := 1
			if quirk.Large {
				piece = 4093
			}
			_, provider := serve(t, llmserver.Answer{Quirk: name, Piece: piece})
			checkQuirk(t, quirk, provider)
		})
	}
}

func checkQuirk(t *testing.T, quirk llmserver.Quirk, provider *openai.Provider) {
	t.Helper()
	h := &heard{}
	seen, err := provider.Inspect(t.Context(), openai.Trial{User: "hi"}, h.report)
	completion, want := seen.Completion, quirk.Want
	require.Equal(t, want.Text, h.text.String(), quirk.About)
	if want.Active {
		require.Positive(t, h.alive, quirk.About)
	}
	if want.Kind == "" {
		require.NoError(t, err, quirk.About)
		require.Equal(t, want.FinishReason, completion.FinishReason, quirk.About)
		require.Equal(t, 1, h.connected, quirk.About)
		usage := inference.Usage{}
		if want.Usage != nil {
			usage = inference.Usage{InputTokens: uint64(want.Usage.Input), OutputTokens: uint64(want.Usage.Output), Known: true}
		}
		require.Equal(t, usage, completion.Usage, quirk.About)
		checkCalls(t, quirk, seen)
		return
	}
	var failed *inference.Error
	require.ErrorAs(t, err, &failed, quirk.About)
	require.Equal(t, want.Kind, failed.Kind, "%s: %v", quirk.About, err)
	require.Contains(t, failed.Message, want.Says, quirk.About)
	require.NotContains(t, failed.Message, key, quirk.About)
	require.LessOrEqual(t, len(failed.Message), inference.MessageLimit, quirk.About)
	require.Equal(t, want.RetryAfter, failed.RetryAfter, quirk.About)
	require.Equal(t, want.RequestID, failed.RequestID, quirk.About)
	require.Equal(t, "openai", failed.Provider, quirk.About)
}

func checkCalls(t *testing.T, quirk llmserver.Quirk, seen openai.Inspection) {
	t.Helper()
	if quirk.Want.CallsBroken {
		require.Error(t, seen.CallsErr, quirk.About)
		return
	}
	require.NoError(t, seen.CallsErr, quirk.About)
	var calls []llmserver.ToolCall
	for _, call := range seen.Calls {
		calls = append(calls, llmserver.ToolCall(call))
	}
	require.Equal(t, quirk.Want.Calls, calls, quirk.About)
}
