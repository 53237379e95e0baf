package openai_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

func TestRequestHoldsTheKeptEntriesWithContent(t *testing.T) {
	t.Parallel()
	server, provider := serve(t)
	h, completion, err := infer(t.Context(), provider, inference.Request{Model: "other", Pack: contextpack.Pack{Entries: []contextpack.Entry{
		{Role: contextpack.RoleSystem, Content: "rules", Kept: true},
		{Role: contextpack.RoleUser, Content: "dropped"},
		{Role: contextpack.RoleUser, Content: "first", Kept: true},
		{Role: contextpack.RoleAssistant, Content: " \n", Kept: true},
		{Role: contextpack.RoleAssistant, Content: "second", Kept: true},
		{Role: contextpack.RoleUser, Content: "third", Kept: true},
	}}})
	require.NoError(t, err)
	require.Equal(t, "You said: third", h.text.String())
	require.Equal(t, llmserver.Model, completion.Model)
	require.True(t, completion.Usage.Known)

	request := server.Requests()[0]
	require.Equal(t, "/v1/chat/completions", request.Path)
	require.Equal(t, "Bearer "+key, request.Header.Get("Authorization"))
	require.JSONEq(t, `{
		"model": "other", "stream": true, "stream_options": {"include_usage": true},
		"messages": [
			{"role": "system", "content": "rules"},
			{"role": "user", "content": "first"},
			{"role": "assistant", "content": "second"},
			{"role": "user", "content": "third"}
		]}`, string(request.Body))
}

func TestNoKeySendsNoAuthorization(t *testing.T) {
	t.Parallel()
	server := llmserver.New()
	url, stop, err := server.Start()
	require.NoError(t, err)
	provider, err := openai.New(openai.Config{BaseURL: url + "/", Model: "m"})
	require.NoError(t, err)
	t.Cleanup(func() { provider.Close(); stop() })
	_, _, err = infer(t.Context(), provider, ask())
	require.NoError(t, err)
	require.NotContains(t, server.Requests()[0].Header, "Authorization")
}

func TestTokenLimitGoesIntoTheFieldThatTheModelTakes(t *testing.T) {
	t.Parallel()
	for model, field := range map[string]string{
		"llama-3": "max_tokens", "gpt-4o": "max_tokens",
		"o1": "max_completion_tokens", "o3-mini": "max_completion_tokens", "gpt-5": "max_completion_tokens",
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			server, provider := serve(t)
			request := ask()
			request.Model, request.MaxTokens = model, 77
			_, _, err := infer(t.Context(), provider, request)
			require.NoError(t, err)
			var sent map[string]any
			require.NoError(t, json.Unmarshal(server.Requests()[0].Body, &sent))
			require.EqualValues(t, 77, sent[field])
			delete(sent, field)
			require.NotContains(t, sent, "max_tokens")
			require.NotContains(t, sent, "max_completion_tokens")
		})
	}
}

func TestRequestsThatCannotBeMadeAreRefusedWithoutACall(t *testing.T) {
	t.Parallel()
	nothing := inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{{Role: contextpack.RoleUser, Content: "x"}}}}
	stranger := inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{{Role: "tool", Content: "x", Kept: true}}}}
	overflow := ask()
	overflow.Pack.Overflow = true
	refusedByLibrary := ask()
	refusedByLibrary.Model = "text-davinci-003"
	for name, row := range map[string]struct {
		request inference.Request
		kind    inference.Kind
	}{
		"nothing kept": {nothing, inference.KindBadRequest},
		"unknown role": {stranger, inference.KindBadRequest},
		"overflow":     {overflow, inference.KindContextOverflow},
		"model name":   {refusedByLibrary, inference.KindConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, provider := serve(t)
			_, _, err := infer(t.Context(), provider, row.request)
			require.Equal(t, row.kind, inference.KindOf(err), err)
			require.Empty(t, server.Requests())
		})
	}
	provider, err := openai.New(openai.Config{})
	require.NoError(t, err)
	_, _, err = infer(t.Context(), provider, ask())
	require.Equal(t, inference.KindConfig, inference.KindOf(err), "no model")
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]openai.Config{
		"relative URL":   {BaseURL: "localhost/v1"},
		"other scheme":   {BaseURL: "ftp://localhost"},
		"broken key":     {APIKey: "a\nb"},
		"negative limit": {MaxEventBytes: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(config)
			require.Equal(t, inference.KindConfig, inference.KindOf(err))
		})
	}
	provider, err := openai.New(openai.Config{APIKey: "key-from-a-file\n", ConnectTimeout: time.Second})
	require.NoError(t, err)
	require.Equal(t, "openai", provider.Name())
}

func TestServersThatCannotBeReached(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(llmserver.New())
	t.Cleanup(server.Close)
	closed := httptest.NewServer(llmserver.New())
	closed.Close()
	for name, row := range map[string]struct {
		url  string
		kind inference.Kind
	}{
		"unknown certificate": {server.URL, inference.KindConfig},
		"nobody listens":      {closed.URL, inference.KindUnavailable},
		"no TLS":              {"https" + closed.URL[len("http"):], inference.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, err := openai.New(openai.Config{BaseURL: row.url, Model: "m"})
			require.NoError(t, err)
			t.Cleanup(provider.Close)
			_, _, err = infer(t.Context(), provider, ask())
			require.Equal(t, row.kind, inference.KindOf(err), err)
		})
	}
}
