package inference_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

func TestPlanOfARouterThatDoesNotPlanIsOneCall(t *testing.T) {
	t.Parallel()
	table, err := inference.NewTable(nil, inference.ModelRoute{Model: "fast", Provider: named("small")})
	require.NoError(t, err)
	broken := errors.New("broken")
	for _, want := range []error{nil, broken} {
		plan, err := inference.PlanOf(t.Context(), table, inference.Ask{Model: "fast", Replace: true})
		require.NoError(t, err)
		defer plan.Close()
		step, ok := plan.Next().(inference.Call)
		require.True(t, ok)
		require.Equal(t, "small", step.Provider.Name())
		plan.Begun()
		plan.Ended(inference.End{Err: want})
		require.Equal(t, inference.Stop{Err: want}, plan.Next())
	}
	_, err = inference.PlanOf(t.Context(), table, inference.Ask{})
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
}

func TestLimitsAndKindsAreClosedSets(t *testing.T) {
	t.Parallel()
	for _, limit := range []inference.Limit{
		inference.LimitConnect, inference.LimitFirstToken, inference.LimitToken, inference.LimitWhole,
	} {
		require.True(t, limit.Valid())
	}
	require.False(t, inference.Limit("").Valid())
	require.False(t, inference.Kind("").Valid())
	require.False(t, inference.Kind("other").Retryable())
}
