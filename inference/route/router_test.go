package route_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/testkit"
)

func router(t *testing.T, providers ...route.Provider) *route.Router {
	t.Helper()
	rules, breaker := route.Standard()
	r, err := route.New(route.Config{Providers: providers, Rules: rules, Breaker: breaker})
	require.NoError(t, err)
	return r
}

func models(names ...string) []route.Model {
	list := make([]route.Model, len(names))
	for i, name := range names {
		aliases := strings.Split(name, "=")
		list[i] = route.Model{Name: aliases[0], Aliases: aliases[1:]}
	}
	return list
}

func TestRouteFindsWhoServesAModelAndSaysWhy(t *testing.T) {
	t.Parallel()
	big, small, open := testkit.NewProvider(t).Named("big"), testkit.NewProvider(t).Named("small"), testkit.NewProvider(t).Named("open")
	r := router(t,
		route.Provider{Backend: big, Models: models("gpt-4o=smart=default", "o1-local=thinker")},
		route.Provider{Backend: small, Models: []route.Model{{Name: "llama-3.1", Aliases: []string{"smart"}, Window: 4096}}},
		route.Provider{Backend: open})
	for asked, want := range map[string]inference.Route{
		"":              {Provider: big, Model: "gpt-4o", Window: 128_000, Reason: `no model was asked for: default provider big as "gpt-4o"`},
		"gpt-4o":        {Provider: big, Model: "gpt-4o", Window: 128_000, Reason: `model "gpt-4o" is routed to provider big`},
		"smart":         {Provider: big, Model: "gpt-4o", Window: 128_000, Reason: `model "smart" is routed to provider big as "gpt-4o"`},
		"thinker":       {Provider: big, Model: "o1-local", Window: 200_000, Reason: `model "thinker" is routed to provider big as "o1-local"`},
		"llama-3.1":     {Provider: small, Model: "llama-3.1", Window: 4096, Reason: `model "llama-3.1" is routed to provider small`},
		"small/smart":   {Provider: small, Model: "llama-3.1", Window: 4096, Reason: `model "small/smart" was asked for by its provider's name: small as "llama-3.1"`},
		"open/any/name": {Provider: open, Model: "any/name", Reason: `model "open/any/name" was asked for by its provider's name: open as "any/name"`},
		"unheard":       {Provider: open, Model: "unheard", Reason: `model "unheard" has no route of its own: provider open takes every name`},
		"big/unheard":   {Provider: open, Model: "big/unheard", Reason: `model "big/unheard" has no route of its own: provider open takes every name`},
	} {
		got, err := r.Route(t.Context(), asked)
		require.NoError(t, err, asked)
		require.Equal(t, want, got, asked)
	}
}

func TestRouteNamesTheStandardModelOfAProviderThatListsNone(t *testing.T) {
	t.Parallel()
	p := testkit.NewProvider(t)
	got, err := router(t, route.Provider{Name: "mine", Backend: p, Standard: "gpt-4o-mini"}).Route(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, inference.Route{
		Provider: p, Model: "gpt-4o-mini", Window: 128_000, Reason: `no model was asked for: default provider mine as "gpt-4o-mini"`,
	}, got)
}

func TestRouteRefusesModelsThatNobodyServes(t *testing.T) {
	t.Parallel()
	r := router(t, route.Provider{Backend: testkit.NewProvider(t).Named("big"), Models: models("gpt-4o")})
	for _, asked := range []string{"unheard", "big/unheard", "other/gpt-4o"} {
		_, err := r.Route(t.Context(), asked)
		require.Equal(t, inference.KindConfig, inference.KindOf(err), asked)
		_, err = r.Plan(t.Context(), inference.Ask{Model: asked})
		require.ErrorContains(t, err, "no provider serves model", asked)
	}
}

func TestNewRefusesACatalogueThatCannotBe(t *testing.T) {
	t.Parallel()
	a, b := testkit.NewProvider(t).Named("a"), testkit.NewProvider(t).Named("b")
	rules, breaker := route.Standard()
	for want, providers := range map[string][]route.Provider{
		"no provider":                        nil,
		"provider 1: no backend with a name": {{}},
		"provider a: named twice":            {{Backend: a}, {Backend: a}},
		`model "m" is named twice`:           {{Backend: a, Models: models("m", "n=m")}},
		"a model without a name":             {{Backend: a, Models: []route.Model{{}}}},
		`window of model "m" is negative`:    {{Backend: a, Models: []route.Model{{Name: "m", Window: -1}}}},
		"a limit is negative":                {{Backend: a, Limits: route.Limits{Concurrent: -1}}},
		"it is its own fallback":             {{Backend: a, Fallback: []string{"a"}}},
		`fallback "c" names no provider`:     {{Backend: a, Fallback: []string{"c"}}},
		`fallback "b/n" names no provider`:   {{Backend: a, Fallback: []string{"b/n"}}, {Backend: b, Models: models("m")}},
	} {
		_, err := route.New(route.Config{Providers: providers, Rules: rules, Breaker: breaker})
		require.ErrorContains(t, err, want)
		require.Equal(t, inference.KindConfig, inference.KindOf(err))
	}
	good := []route.Provider{{Backend: a}}
	for _, bad := range []route.Config{
		{Providers: good, Rules: route.Rules{Retries: -1}, Breaker: breaker},
		{Providers: good, Rules: rules},
	} {
		require.Error(t, bad.Validate())
	}
}

func TestPerProviderTellsLimitsOnConcurrentCalls(t *testing.T) {
	t.Parallel()
	r := router(t, route.Provider{Backend: testkit.NewProvider(t).Named("a"), Limits: route.Limits{Concurrent: 4}},
		route.Provider{Backend: testkit.NewProvider(t).Named("b")})
	require.Equal(t, map[string]int{"a": 4}, r.PerProvider())
}

func TestWindowsAreKnownByFamily(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"gpt-4o": 128_000, "GPT-4o-mini": 128_000, "ft:gpt-4o-mini:acme": 128_000, "openai/gpt-4.1-nano": 1_047_576,
		"gpt-4": 8_192, "gpt-4-0613": 8_192, "gpt-5.1": 272_000, "o1": 200_000, "o1-mini-2024": 128_000, "o10": 0,
		"claude-3-5-sonnet@20241022": 200_000, "meta-llama/llama-3.1:8b": 131_072, "llama-3-8b": 8_192, "": 0, "gpt-40": 0, "mine": 0,
	} {
		require.Equal(t, want, route.Window(name), name)
	}
}
