package inference_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/messages"
)

func TestWireCodeOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[inference.Kind]messages.Code{
		inference.KindCanceled:        "",
		inference.KindTimeout:         messages.CodeProviderTimeout,
		inference.KindRateLimited:     messages.CodeProviderRateLimited,
		inference.KindOverloaded:      messages.CodeProviderOverloaded,
		inference.KindAuth:            messages.CodeProviderAuth,
		inference.KindQuota:           messages.CodeProviderQuota,
		inference.KindBadRequest:      messages.CodeProviderBadRequest,
		inference.KindContextOverflow: messages.CodeContextOverflow,
		inference.KindContentFiltered: messages.CodeContentFiltered,
		inference.KindTruncated:       messages.CodeTruncated,
		inference.KindUnavailable:     messages.CodeProviderUnavailable,
		inference.KindConfig:          messages.CodeConfigError,
		inference.KindProvider:        messages.CodeProviderError,
	} {
		err := fmt.Errorf("run r1: %w", &inference.Error{Kind: kind})
		require.Equal(t, want, inference.WireCode(err), kind)
	}
	require.Empty(t, inference.WireCode(nil))
	require.Empty(t, inference.WireCode(context.Canceled))
	require.Equal(t, messages.CodeProviderTimeout, inference.WireCode(context.DeadlineExceeded))
	require.Equal(t, messages.CodeProviderError, inference.WireCode(errors.New("x")))
}

func TestFailureOfPassesOnOnlyCleanedText(t *testing.T) {
	t.Parallel()
	require.Nil(t, inference.FailureOf(nil))
	require.Nil(t, inference.FailureOf(&inference.Error{Kind: inference.KindCanceled}))

	limited := inference.FailureOf(fmt.Errorf("call: %w", &inference.Error{
		Kind: inference.KindRateLimited, Provider: "p", Message: "slow down", Status: 429, Err: errors.New("sk-secret"),
	}))
	require.Equal(t, string(messages.CodeProviderRateLimited), limited.GetCode())
	require.Equal(t, "p: rate_limited (status 429): slow down", limited.GetMessage())
	require.True(t, limited.GetRetryable())

	require.NotContains(t, inference.FailureOf(errors.New("dial with sk-secret")).GetMessage(), "secret")
	require.True(t, inference.FailureOf(context.DeadlineExceeded).GetRetryable())
}

func TestCanceledTellsTheCause(t *testing.T) {
	t.Parallel()
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := inference.Canceled(ctx, "p")
	require.Equal(t, inference.KindCanceled, inference.KindOf(err))
	require.ErrorIs(t, err, why)
	require.False(t, err.Retryable())
}
