package wiring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/route"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit"
	"github.com/correx/correx-actors/wiring"
)

const someProviders = `
providers:
  - name: big
    base_url: https://ada:pw-secret@models.example/v1
    api_key: sk-very-secret
    models:
      - name: gpt-4o
        aliases: [smart, default]
        window: 64000
      - {name: gpt-4o-mini}
    limits: {concurrent: 8, requests_per_minute: 500, tokens_per_minute: 200000}
    fallback: [small/llama-3, offline]
  - name: small
    base_url: http://127.0.0.1:8080/v1
    api_key_file: KEYFILE
    models: [{name: llama-3}]
retry: {limit: 1, max_wait: 10s}
breaker: {failures: 3, pause: 1m}
`

func loadProviders(t *testing.T, text string) (wiring.Loaded, error) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("sk-from-file\n"), 0o600))
	return wiring.Load(wiring.Sources{File: file(t, strings.ReplaceAll(text, "KEYFILE", key)), Environ: []string{"HOME=/h"}})
}

func TestProvidersAreReadFromAFile(t *testing.T) {
	t.Parallel()
	got, err := loadProviders(t, someProviders)
	require.NoError(t, err)
	require.Equal(t, []wiring.Provider{
		{
			Name: "big", BaseURL: "https://ada:pw-secret@models.example/v1", APIKey: "sk-very-secret",
			Models: []wiring.Model{{Name: "gpt-4o", Aliases: []string{"smart", "default"}, Window: 64000}, {Name: "gpt-4o-mini"}},
			Limits: wiring.ProviderLimits{Concurrent: 8, RequestsPerMinute: 500, TokensPerMinute: 200_000}, Fallback: []string{"small/llama-3", "offline"},
		},
		{Name: "small", BaseURL: "http://127.0.0.1:8080/v1", APIKey: "sk-from-file", Models: []wiring.Model{{Name: "llama-3"}}},
	}, got.Config.Providers)
	require.Equal(t, "big", got.Config.Answering())
	require.Contains(t, got.Origins, "providers")

	shown, err := got.Config.YAML()
	require.NoError(t, err)
	asJSON, err := json.Marshal(got.Config)
	require.NoError(t, err)
	for _, text := range []string{string(shown), string(asJSON), fmt.Sprintf("%v %+v %#v", got.Config, got.Config, got.Config)} {
		require.Contains(t, text, "gpt-4o-mini")
		for _, secret := range []string{"sk-very-secret", "sk-from-file", "pw-secret"} {
			require.NotContains(t, text, secret)
		}
	}
	again, err := loadProviders(t, string(shown))
	require.NoError(t, err)
	require.Equal(t, got.Config.Providers[0].Models, again.Config.Providers[0].Models)

	schema, err := wiring.Schema()
	require.NoError(t, err)
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	var value map[string]any
	require.NoError(t, json.Unmarshal(asJSON, &value))
	require.NoError(t, resolved.Validate(value))
	for _, bad := range []string{
		`{"providers":{}}`, `{"providers":[{"nam":"x"}]}`, `{"providers":[{"models":["x"]}]}`, `{"providers":[{"limits":{"concurrent":-1}}]}`,
	} {
		var value map[string]any
		require.NoError(t, json.Unmarshal([]byte(bad), &value))
		require.Error(t, resolved.Validate(value), bad)
	}
}

func TestProvidersThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`providers: {a: 1}`:                                                `setting providers.a`,
		`providers: big`:                                                   "want a list of objects",
		`providers: [big]`:                                                 "providers[0]: want an object",
		`providers: [{name: a, nam: b}]`:                                   "providers[0].nam: unknown setting",
		`providers: [{name: a, limits: {x: 1}}]`:                           "providers[0].limits.x: unknown setting",
		`providers: [{name: a, limits: {concurrent: many}}]`:               "providers[0].limits.concurrent: want a whole number",
		`providers: [{name: a, limits: {concurrent: -1}}]`:                 "providers[0].limits.concurrent: want at least 0",
		`providers: [{name: a, models: [{window: 1, siz: 2}]}]`:            "providers[0].models[0].siz: unknown setting",
		`providers: [{name: a, api_key: sk-oops, api_key_file: KEYFILE}]`:  "providers[0].api_key: given both itself and as a file",
		`providers: [{name: a, api_key_file: /no/such/file}]`:              "providers[0].api_key_file: open /no/such/file",
		`providers: [{base_url: "http://x"}]`:                              "provider number 1 has no name",
		`providers: [{name: a/b}]`:                                         `the name of provider "a/b" holds a slash or a space`,
		`providers: [{name: offline}]`:                                     `"offline" is no name for a provider`,
		`providers: [{name: a, base_url: "ftp://sk-oops@x"}]`:              "provider a: base URL is not an absolute http or https URL",
		`providers: [{name: a}, {name: a}]`:                                "provider a: named twice",
		`providers: [{name: a, fallback: [b]}]`:                            `provider a: fallback "b" names no provider`,
		`providers: [{name: a, fallback: [openai]}]`:                       "provider a falls back to openai, but neither",
		`providers: [{name: a, models: [{aliases: [m]}]}]`:                 "a model without a name",
		`providers: [{name: a, api: assistants}]`:                          "providers[0].api: want chat or responses",
		`providers: [{name: a, bytes_per_token: few}]`:                     "providers[0].bytes_per_token: want a number",
		`providers: [{name: a, bytes_per_token: -0.5}]`:                    "providers[0].bytes_per_token: want at least 0",
		`providers: [{name: a, models: [{name: m, bytes_per_token: 17}]}]`: "providers[0].models[0].bytes_per_token: want at most 16",
		`retry: {limit: 11}`:                                               "want at most 10",
	} {
		_, err := loadProviders(t, text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "sk-oops", text)
	}
	_, err := wiring.Load(wiring.Sources{Environ: []string{"HOME=/h", "CORREX_PROVIDERS=sk-oops"}})
	require.ErrorContains(t, err, "which only a configuration file can hold")
	require.NotContains(t, err.Error(), "sk-oops")
}

// routed starts the graph's router and asks it.
func routed(t *testing.T, cfg wiring.Config, options ...fx.Option) *route.Router {
	t.Helper()
	var router *route.Router
	app := fxtest.New(t, append(options, wiring.Module(cfg), fx.NopLogger, quiet(), fx.Populate(&router))...)
	app.RequireStart()
	t.Cleanup(app.RequireStop)
	return router
}

func TestRouterKnowsTheConfiguredProviders(t *testing.T) {
	t.Parallel()
	loaded, err := loadProviders(t, someProviders)
	require.NoError(t, err)
	cfg := loaded.Config
	cfg.Listen, cfg.Journal.Driver = "127.0.0.1:0", wiring.DriverMemory
	router := routed(t, cfg)
	for asked, want := range map[string]string{
		"":              `no model was asked for: default provider big as "gpt-4o"`,
		"smart":         `model "smart" is routed to provider big as "gpt-4o"`,
		"llama-3":       `model "llama-3" is routed to provider small`,
		"small/llama-3": `model "small/llama-3" was asked for by its provider's name: small as "llama-3"`,
		"offline":       `model "offline" is routed to provider offline`,
	} {
		got, err := router.Route(t.Context(), asked)
		require.NoError(t, err, asked)
		require.Equal(t, want, got.Reason)
	}
	_, err = router.Route(t.Context(), "unheard")
	require.Equal(t, inference.KindConfig, inference.KindOf(err), "nothing is sent where nobody said it should go")
	smart, err := router.Route(t.Context(), "smart")
	require.NoError(t, err)
	require.Equal(t, 64000, smart.Window)
	require.Equal(t, map[string]int{"big": 8}, router.PerProvider())
	require.Len(t, router.Health(), 3)
}

func TestProviderSettingStandsInFrontOfTheList(t *testing.T) {
	t.Parallel()
	loaded, err := loadProviders(t, someProviders)
	require.NoError(t, err)
	cfg := loaded.Config
	cfg.Listen, cfg.Journal.Driver = "127.0.0.1:0", wiring.DriverMemory
	cfg.Provider, cfg.OpenAI.APIKey = wiring.ProviderOpenAI, "k"
	router := routed(t, cfg)
	for asked, want := range map[string]string{
		"":        `no model was asked for: default provider openai as "gpt-4o-mini"`,
		"unheard": `model "unheard" has no route of its own: provider openai takes every name`,
		"smart":   `model "smart" is routed to provider big as "gpt-4o"`,
	} {
		got, err := router.Route(t.Context(), asked)
		require.NoError(t, err)
		require.Equal(t, want, got.Reason)
	}
}

func TestImplicitProviderTakesEveryModel(t *testing.T) {
	t.Parallel()
	router := routed(t, config(), answeredBy(testkit.NewProvider(t)))
	for _, asked := range []string{"", "any", "a/b"} {
		got, err := router.Route(t.Context(), asked)
		require.NoError(t, err)
		require.Equal(t, asked, got.Model)
		require.Equal(t, "scripted", got.Provider.Name())
	}
}

func TestDeadProviderIsAnsweredForByItsFallback(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Provider, cfg.Retry.Limit = wiring.ProviderAuto, 0
	cfg.Providers = []wiring.Provider{{Name: "dead", BaseURL: "http://127.0.0.1:1/v1", Fallback: []string{"offline"}}}
	var client *actors.Client
	app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), fx.Populate(&client))
	app.RequireStart()
	defer app.RequireStop()
	key := messages.NewKey("s1")
	output, err := client.Subscribe(t.Context(), key, actors.SubscribeOptions{})
	require.NoError(t, err)
	defer output.Close()
	_, err = client.Submit(t.Context(), key, &messages.SubmitTurn{Text: "how is it going?"})
	require.NoError(t, err)
	require.NotEmpty(t, answer(t, output))
}
