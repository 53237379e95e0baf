package route_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/testkit"
)

// kept is a catalogue of engines that keep conversations, and others.
func kept(t *testing.T) (*route.Router, map[string]*testkit.ScriptedProvider) {
	t.Helper()
	all := make(map[string]*testkit.ScriptedProvider)
	for _, name := range []string{"big", "small", "open"} {
		all[name] = testkit.NewProvider(t).Named(name)
	}
	return router(t,
		route.Provider{Backend: all["big"], Models: models("gpt-4o=smart"), Fallback: []string{"small"}},
		route.Provider{Backend: all["small"], Models: models("llama-3.1=smart", "tiny")},
		route.Provider{Backend: all["open"], Standard: "base", Fallback: []string{"big"}},
	), all
}

func TestEngineThatKeepsTheConversationGoesFirst(t *testing.T) {
	t.Parallel()
	r, all := kept(t)
	for _, c := range []struct{ engine, asked, provider, model string }{
		{"small", "", "small", "llama-3.1"},
		{"small", "tiny", "small", "tiny"},
		{"small", "smart", "small", "llama-3.1"},
		{"small", "small/tiny", "small", "tiny"},
		{"small", "gpt-4o", "small", "llama-3.1"},
		{"open", "", "open", "base"},
		{"open", "anything", "open", "anything"},
		{"open", "open/any/thing", "open", "any/thing"},
		{"open", "tiny", "open", "base"},
		{"open", "big/gpt-4o", "open", "base"},
		{"gone", "", "big", "gpt-4o"},
		{"", "tiny", "small", "tiny"},
	} {
		got, err := r.First(t.Context(), inference.Ask{Model: c.asked, Engine: c.engine})
		require.NoError(t, err, c)
		require.Same(t, all[c.provider], got.Provider, c)
		require.Equal(t, c.model, got.Model, c)
		planned, err := r.Plan(t.Context(), inference.Ask{Model: c.asked, Engine: c.engine})
		require.NoError(t, err, c)
		call, ok := planned.Next().(inference.Call)
		require.True(t, ok, c)
		require.Equal(t, got, call.Route, "the plan tries it first")
		planned.Close()
	}
}

func TestServesTellsWhichNamesMeanAModelOfAProvider(t *testing.T) {
	t.Parallel()
	r, _ := kept(t)
	for name, want := range map[[2]string]bool{
		{"big", "gpt-4o"}: true, {"big", "smart"}: true, {"big", "big/smart"}: true, {"big", "tiny"}: false, {"big", "unheard"}: false,
		{"small", "smart"}: true, {"open", "unheard"}: true, {"open", "tiny"}: false, {"open", "small/x"}: false, {"gone", "tiny"}: false,
		{"big", ""}: false,
	} {
		require.Equal(t, want, r.Serves(name[0], name[1]), name)
	}
}

func TestFallbackOfAnEngineIsItsOwn(t *testing.T) {
	t.Parallel()
	r, all := kept(t)
	all["open"].Call(testkit.Fail(inference.KindAuth))
	all["big"].Call(testkit.Stream("a"))
	got := run(t, r, inference.Ask{Model: "tiny", Engine: "open"})
	require.NoError(t, got.err)
	require.Equal(t, []string{"open", "big"}, got.calls)
}

func TestUnknownConversationIsBegunAnewAtOnceAndOnce(t *testing.T) {
	t.Parallel()
	lost := testkit.FailWith(&inference.Error{Kind: inference.KindBadRequest, Err: inference.ErrUnknownResume})
	r, all := kept(t)
	all["big"].Call(lost).Call(testkit.Stream("a"))
	got := run(t, r, inference.Ask{Engine: "big", Replace: true})
	require.NoError(t, got.err)
	require.Equal(t, []string{"big", "big"}, got.calls)
	require.Empty(t, got.waits)

	all["big"].Call(lost).Call(lost)
	all["small"].Call(testkit.Stream("a"))
	got = run(t, r, inference.Ask{Engine: "big", Replace: true})
	require.NoError(t, got.err)
	require.Equal(t, []string{"big", "big", "small"}, got.calls, "one that says so without a token is of no use")
	require.Equal(t, route.StateClosed, r.Health()[0].State)
}

func TestUnknownConversationIsBegunAnewByAPlainRouterToo(t *testing.T) {
	t.Parallel()
	lost := testkit.FailWith(&inference.Error{Kind: inference.KindBadRequest, Err: inference.ErrUnknownResume})
	p := testkit.NewProvider(t, testkit.Script(lost), testkit.Script(lost))
	got := run(t, testkit.Route(p), inference.Ask{})
	require.ErrorIs(t, got.err, inference.ErrUnknownResume)
	require.Len(t, got.calls, 2)
}

func TestRouteTellsWhatAModelsPromptMayTake(t *testing.T) {
	t.Parallel()
	p, own := testkit.NewProvider(t), contextpack.BytesCounter{}
	r := router(t, route.Provider{
		Backend: p, Counter: func(string) contextpack.TokenCounter { return nil },
		Models: []route.Model{{Name: "m", Window: 1000, MaxOutput: 100, Counter: own}, {Name: "n"}},
	})
	got, err := r.Route(t.Context(), "m")
	require.NoError(t, err)
	require.Equal(t, inference.Route{
		Provider: p, Model: "m", Window: 1000, MaxOutput: 100, Counter: own, Reason: `model "m" is routed to provider scripted`,
	}, got)
	got, err = r.Route(t.Context(), "n")
	require.NoError(t, err)
	require.Nil(t, got.Counter)
	_, err = route.New(route.Config{Providers: []route.Provider{{Backend: p, Models: []route.Model{{Name: "m", MaxOutput: -1}}}}})
	require.ErrorContains(t, err, "longest answer of model \"m\" is negative")
}
