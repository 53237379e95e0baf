package openai_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

// TestEveryFaultIsReadRight takes the whole catalogue, each row written as the server likes and in single bytes.
func TestEveryFaultIsReadRight(t *testing.T) {
	t.Parallel()
	for _, fault := range llmserver.Faults() {
		if fault.Slow {
			continue
		}
		checkFaults(t, fault.Name)
	}
}

func TestSlowFaultsAreReadRight(t *testing.T) {
	t.Parallel()
	for _, fault := range llmserver.Faults() {
		if !fault.Slow {
			continue
		}
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, stop := llmserver.New(llmserver.Answer{Fault: fault.Name}).Pipe()
				provider, err := openai.New(openai.Config{BaseURL: llmserver.PipeURL, HTTPClient: client, Model: llmserver.Model})
				require.NoError(t, err)
				checkFault(t, fault, provider)
				stop()
			})
		})
	}
}

func TestB97KeepAlivesDoNotEndTheStream(t *testing.T) {
	t.Parallel()
	checkFaults(t, "keep_alives", "blank_lines")
}

func TestB98EventsWithoutDataAreSkipped(t *testing.T) {
	t.Parallel()
	checkFaults(t, "empty_data", "fields")
}

func TestB100EndMarkWithoutReasonIsANormalEnd(t *testing.T) {
	t.Parallel()
	checkFaults(t, "null_reason", "tail_done")
}

func TestB101UnknownFinishReasonIsKept(t *testing.T) {
	t.Parallel()
	checkFaults(t, "unknown_reason", "length")
}

func TestB103ErrorBehindOtherKeysIsAnError(t *testing.T) {
	t.Parallel()
	checkFaults(t, "error_not_first", "error_not_first_late", "error_after_comment", "error_spaced", "error_event", "null_error")
}

func TestB104ErrorFrameIsAnErrorWhateverFollows(t *testing.T) {
	t.Parallel()
	checkFaults(t, "error_first", "error_hold", "error_text", "error_object", "error_unframed", "error_tail")
}

func TestB106NoChoicesIsAnError(t *testing.T) {
	t.Parallel()
	checkFaults(t, "prompt_filtered", "prompt_passed", "no_choices", "document_filtered", "document_no_choices")
}

func TestB109CharactersMayBeSplitBetweenWrites(t *testing.T) {
	t.Parallel()
	checkFaults(t, "scripts")
}

func TestB110LineEndsMayBeAny(t *testing.T) {
	t.Parallel()
	checkFaults(t, "crlf", "cr", "bom", "multi_line")
}

func TestB122UnknownUsageIsUnknown(t *testing.T) {
	t.Parallel()
	checkFaults(t, "no_usage", "zero_usage", "null_usage", "hold_finished")
}

func TestB124ReasoningWithoutTextIsAnOutcome(t *testing.T) {
	t.Parallel()
	checkFaults(t, "reasoning", "only_reasoning")
}

func checkFaults(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		fault, ok := llmserver.FaultNamed(name)
		require.True(t, ok, name)
		if fault.Slow {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, provider := serve(t, llmserver.Answer{Fault: name})
			checkFault(t, fault, provider)
		})
		t.Run(name+"/piecewise", func(t *testing.T) {
			t.Parallel()
			piece := 1
			if fault.Large {
				piece = 4093
			}
			_, provider := serve(t, llmserver.Answer{Fault: name, Piece: piece})
			checkFault(t, fault, provider)
		})
	}
}

func checkFault(t *testing.T, fault llmserver.Fault, provider *openai.Provider) {
	t.Helper()
	h, completion, err := infer(t.Context(), provider, ask())
	want := fault.Want
	require.Equal(t, want.Text, h.text.String(), fault.About)
	if want.Active {
		require.Positive(t, h.alive, fault.About)
	}
	if want.Kind == "" {
		require.NoError(t, err, fault.About)
		require.Equal(t, want.FinishReason, completion.FinishReason, fault.About)
		require.Equal(t, 1, h.connected, fault.About)
		usage := inference.Usage{}
		if want.Usage != nil {
			usage = inference.Usage{InputTokens: uint64(want.Usage.Input), OutputTokens: uint64(want.Usage.Output), Known: true}
		}
		require.Equal(t, usage, completion.Usage, fault.About)
		return
	}
	var failed *inference.Error
	require.ErrorAs(t, err, &failed, fault.About)
	require.Equal(t, want.Kind, failed.Kind, "%s: %v", fault.About, err)
	require.Contains(t, failed.Message, want.Says, fault.About)
	require.NotContains(t, failed.Message, key, fault.About)
	require.LessOrEqual(t, len(failed.Message), inference.MessageLimit, fault.About)
	require.Equal(t, want.RetryAfter, failed.RetryAfter, fault.About)
	require.Equal(t, want.RequestID, failed.RequestID, fault.About)
	require.Equal(t, "openai", failed.Provider, fault.About)
}
