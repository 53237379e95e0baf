package inference_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

// named is a provider of which only the name matters.
type named string

// Name implements inference.Provider.
func (n named) Name() string { return string(n) }

// Infer implements inference.Provider.
func (named) Infer(context.Context, inference.Request, func(inference.Event) error) (inference.Completion, error) {
	return inference.Completion{}, nil
}

func TestTableRoutesAndExplains(t *testing.T) {
	t.Parallel()
	table, err := inference.NewTable(named("big"),
		inference.ModelRoute{Model: "fast", Provider: named("small"), As: "o1-local"},
		inference.ModelRoute{Model: "offline", Provider: named("offline")})
	require.NoError(t, err)
	for model, want := range map[string]inference.Route{
		"":        {Provider: named("big"), Reason: `no model was asked for: default provider big`},
		"gpt":     {Provider: named("big"), Model: "gpt", Reason: `model "gpt" has no route of its own: default provider big`},
		"fast":    {Provider: named("small"), Model: "o1-local", Reason: `model "fast" is routed to provider small as "o1-local"`},
		"offline": {Provider: named("offline"), Model: "offline", Reason: `model "offline" is routed to provider offline`},
	} {
		got, err := table.Route(t.Context(), model)
		require.NoError(t, err)
		require.Equal(t, want, got, model)
	}
}

func TestTableWithoutDefaultRefusesOtherModels(t *testing.T) {
	t.Parallel()
	table, err := inference.NewTable(nil, inference.ModelRoute{Model: "fast", Provider: named("small")})
	require.NoError(t, err)
	for _, model := range []string{"", "other"} {
		_, err = table.Route(t.Context(), model)
		require.Equal(t, inference.KindConfig, inference.KindOf(err), model)
	}
	table, err = inference.NewTable(nil, inference.ModelRoute{Provider: named("small"), As: "tiny"})
	require.NoError(t, err)
	route, err := table.Route(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, inference.Route{
		Provider: named("small"), Model: "tiny", Reason: `no model was asked for: routed to provider small as "tiny"`,
	}, route)
}

func TestTableChecksItsRoutes(t *testing.T) {
	t.Parallel()
	_, err := inference.NewTable(nil)
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
	_, err = inference.NewTable(named("a"), inference.ModelRoute{Model: "m"}, inference.ModelRoute{Model: "n", Provider: named("a")},
		inference.ModelRoute{Model: "n", Provider: named("b")})
	require.ErrorContains(t, err, `route of model "m": no provider`)
	require.ErrorContains(t, err, `model "n" has two routes: a and b`)
}
