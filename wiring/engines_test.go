package wiring_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/correx/correx-actors/actors"
	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/testkit/llmserver"
	"github.com/correx/correx-actors/wiring"
)

const engines = `
conversation: {answer_reserve: 500}
providers:
  - name: plain
    base_url: http://127.0.0.1:1/v1
    bytes_per_token: 3
    models: [{name: gpt-4o, window: 9000}, {name: mine, bytes_per_token: 2.5, max_output: 700}, {name: other}]
  - name: keeper
    api: responses
    base_url: KEEPER
    models: [{name: gpt-4.1}]
`

func TestModelsAreCountedAsTheConfigurationSays(t *testing.T) {
	t.Parallel()
	_, err := loadProviders(t, engines)
	require.Error(t, err, "the address is none")
	loaded, err := loadProviders(t, strings.ReplaceAll(engines, "KEEPER", "http://127.0.0.1:1/v1"))
	require.NoError(t, err)
	cfg := loaded.Config
	require.Equal(t, 500, cfg.Conversation.AnswerReserve)
	cfg.Listen, cfg.Journal.Driver = "127.0.0.1:0", wiring.DriverMemory
	router := routed(t, cfg)
	for model, want := range map[string]string{"gpt-4o": "o200k_base", "mine": "bytes/2.5", "other": "bytes/3"} {
		got, err := router.Route(t.Context(), model)
		require.NoError(t, err)
		require.Equal(t, want, got.Counter.Name(), model)
	}
	mine, err := router.Route(t.Context(), "mine")
	require.NoError(t, err)
	require.Equal(t, 700, mine.MaxOutput)
}

// The whole graph: a turn that names a token goes to the engine that keeps it, whatever the default is.
func TestTokenLeadsToItsEngine(t *testing.T) {
	t.Parallel()
	server := llmserver.New(llmserver.Answer{Deltas: []string{"kept"}})
	url, stop, err := server.Start()
	require.NoError(t, err)
	defer stop()
	loaded, err := loadProviders(t, strings.ReplaceAll(engines, "KEEPER", url))
	require.NoError(t, err)
	cfg := loaded.Config
	cfg.Listen, cfg.Journal.Driver = "127.0.0.1:0", wiring.DriverMemory
	var client *actors.Client
	app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), fx.Populate(&client))
	app.RequireStart()
	defer app.RequireStop()

	key := messages.NewKey("s1")
	output, err := client.Subscribe(t.Context(), key, actors.SubscribeOptions{})
	require.NoError(t, err)
	defer output.Close()
	_, err = client.Submit(t.Context(), key, &messages.SubmitTurn{Text: "begin", Model: "gpt-4.1"})
	require.NoError(t, err)
	require.Equal(t, "kept", answer(t, output))
	token := &messages.ResumeToken{Engine: "keeper", Token: "resp_1"}
	_, err = client.Submit(t.Context(), key, &messages.SubmitTurn{Text: "go on", Resume: token})
	require.NoError(t, err)
	require.Equal(t, "kept", answer(t, output))
	require.Equal(t, "resp_1", server.Requests()[1].Asked.PreviousResponseID)
	require.Equal(t, []llmserver.Message{{Role: "user", Content: "go on"}}, server.Requests()[1].Asked.Input)

	for _, refused := range []struct {
		turn *messages.SubmitTurn
		code messages.Code
	}{
		{&messages.SubmitTurn{Text: "x", Resume: token, Model: "gpt-4o"}, messages.CodeInvalidField},
		{&messages.SubmitTurn{Text: "x", Resume: &messages.ResumeToken{Engine: "plain", Token: "t"}}, messages.CodeUnsupportedResume},
	} {
		_, err = client.Submit(t.Context(), key, refused.turn)
		var failure *messages.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, string(refused.code), failure.GetCode())
	}
}

func TestOwnProviderMayKeepConversationsToo(t *testing.T) {
	t.Parallel()
	server := llmserver.New()
	url, stop, err := server.Start()
	require.NoError(t, err)
	defer stop()
	cfg := config()
	cfg.Provider, cfg.OpenAI.BaseURL, cfg.OpenAI.API = wiring.ProviderOpenAI, wiring.URL(url), "responses"
	var client *actors.Client
	app := fxtest.New(t, wiring.Module(cfg), fx.NopLogger, quiet(), fx.Populate(&client))
	app.RequireStart()
	defer app.RequireStop()
	key := messages.NewKey("s1")
	output, err := client.Subscribe(t.Context(), key, actors.SubscribeOptions{})
	require.NoError(t, err)
	defer output.Close()
	for _, text := range []string{"one", "two"} {
		_, err = client.Submit(t.Context(), key, &messages.SubmitTurn{Text: text})
		require.NoError(t, err)
		require.Equal(t, "You said: "+text, answer(t, output))
	}
	require.Equal(t, "resp_1", server.Requests()[1].Asked.PreviousResponseID)
}
