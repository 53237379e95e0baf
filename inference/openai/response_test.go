package openai

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/testkit/llmserver"
)

func TestRateLimitsAreReadInAllTheirForms(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		header           map[string]string
		requests, tokens RateLimit
	}{
		"none": {},
		"openai": {
			map[string]string{
				"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s",
				"x-ratelimit-limit-tokens": "150000", "x-ratelimit-remaining-tokens": "149984", "x-ratelimit-reset-tokens": "6m0s",
			},
			RateLimit{60, 59, time.Second, true},
			RateLimit{150000, 149984, 6 * time.Minute, true},
		},
		"azure": {
			map[string]string{"x-ratelimit-remaining-requests": "7", "x-ratelimit-remaining-tokens": "0"},
			RateLimit{0, 7, 0, true},
			RateLimit{0, 0, 0, true},
		},
		"anthropic": {
			map[string]string{
				"anthropic-ratelimit-requests-limit": "5", "anthropic-ratelimit-requests-remaining": "4",
				"anthropic-ratelimit-requests-reset": "2001-01-01T00:00:00Z",
			}, RateLimit{5, 4, 0, true}, RateLimit{},
		},
		"standard": {map[string]string{"ratelimit-limit": "9", "ratelimit-remaining": "8", "ratelimit-reset": "30"}, RateLimit{9, 8, 30 * time.Second, true}, RateLimit{}},
		"hostile": {
			map[string]string{"x-ratelimit-limit-requests": "-4", "x-ratelimit-remaining-requests": "-1", "x-ratelimit-reset-requests": "1e300"},
			RateLimit{0, 0, maxRetryAfter, true},
			RateLimit{},
		},
		"garbage": {map[string]string{"x-ratelimit-remaining-requests": "many", "x-ratelimit-remaining-tokens": ""}, RateLimit{}, RateLimit{}},
	} {
		header := http.Header{}
		for key, value := range row.header {
			header.Set(key, value)
		}
		response := Config{}.responseOf(http.StatusOK, header)
		require.Equal(t, row.requests, response.Requests, name)
		require.Equal(t, row.tokens, response.Tokens, name)
	}
	for _, text := range []string{"1e300", "NaN", "-5s", "4102444800000", "4102444800", "99999999h", "soon", ""} {
		require.GreaterOrEqual(t, reset(text), time.Duration(0), text)
		require.LessOrEqual(t, reset(text), maxRetryAfter, text)
	}
}

func TestHeadersOfAnswersAndRefusalsAreObserved(t *testing.T) {
	t.Parallel()
	server := llmserver.New()
	url, stop, err := server.Start()
	require.NoError(t, err)
	var seen []Response
	provider, err := New(Config{BaseURL: url, Observe: func(_ context.Context, r Response) { seen = append(seen, r) }})
	require.NoError(t, err)
	t.Cleanup(func() { provider.Close(); stop() })
	quiet := func(inference.Event) error { return nil }

	inspection, err := provider.Inspect(t.Context(), Trial{Model: llmserver.QuirkModel + "limits_told", User: "hi"}, quiet)
	require.NoError(t, err)
	require.Equal(t, Response{
		Status: http.StatusOK, ContentType: "text/event-stream", RequestID: "req_2",
		Requests: RateLimit{500, 499, 120 * time.Millisecond, true}, Tokens: RateLimit{30000, 29990, time.Minute + time.Second/2, true},
	}, inspection.Response)
	require.True(t, inspection.Done)
	require.Positive(t, inspection.Bytes)

	refused, err := provider.Inspect(t.Context(), Trial{Model: llmserver.QuirkModel + "rate_limited", User: "hi"}, quiet)
	require.Equal(t, inference.KindRateLimited, inference.KindOf(err))
	require.Equal(t, 7*time.Second, refused.Response.RetryAfter)
	require.Equal(t, []Response{inspection.Response, refused.Response}, seen)
}

func TestInspectAsksForTools(t *testing.T) {
	t.Parallel()
	server := llmserver.New()
	url, stop, err := server.Start()
	require.NoError(t, err)
	provider, err := New(Config{BaseURL: url, Model: llmserver.Model})
	require.NoError(t, err)
	t.Cleanup(func() { provider.Close(); stop() })
	seen, err := provider.Inspect(t.Context(), Trial{
		System: "Be brief.", User: "Paris", MaxTokens: 5, NoUsage: true, Required: true,
		Tools: []Tool{{Name: "weather", Description: "of a city", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}},
	}, func(inference.Event) error { return nil })
	require.NoError(t, err)
	require.NoError(t, seen.CallsErr)
	require.Equal(t, []ToolCall{{"call_1", "weather", `{"city":"Paris"}`}}, seen.Calls)
	require.False(t, seen.Usage.Known)
	require.JSONEq(t, `{
		"model": "fake-1", "stream": true, "max_tokens": 5, "tool_choice": "required",
		"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Paris"}],
		"tools": [{"type": "function", "function": {"name": "weather", "description": "of a city",
			"parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
	}`, string(server.Requests()[0].Body))

	provider.config.Model = ""
	_, err = provider.Inspect(t.Context(), Trial{User: "hi"}, nil)
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
}
