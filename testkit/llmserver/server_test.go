package llmserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/correx/correx-actors/testkit/llmserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, script ...llmserver.Answer) (*llmserver.Server, *http.Client) {
	t.Helper()
	server := llmserver.New(script...)
	client, stop := server.Pipe()
	t.Cleanup(stop)
	return server, client
}

func post(t *testing.T, client *http.Client, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, llmserver.PipeURL+"/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestScriptIsPlayedInOrderAndItsLastAnswerForEver(t *testing.T) {
	t.Parallel()
	server, client := start(t, llmserver.Answer{Deltas: []string{"one"}}, llmserver.Answer{Deltas: []string{"two"}})
	for _, want := range []string{"one", "two", "two"} {
		_, text := post(t, client, `{"model":"m"}`)
		require.Contains(t, text, `"content":"`+want+`"`)
	}
	require.Len(t, server.Requests(), 3)
	require.Equal(t, "m", server.Requests()[2].Chat.Model)
}

func TestUsageIsSentOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	_, client := start(t, llmserver.Answer{Deltas: []string{"a"}, Usage: &llmserver.Usage{Input: 3, Output: 4}})
	_, text := post(t, client, `{"stream":true}`)
	require.NotContains(t, text, "usage")
	_, text = post(t, client, `{"stream":true,"stream_options":{"include_usage":true}}`)
	require.Contains(t, text, `"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}`)
	require.True(t, strings.HasSuffix(text, "data: [DONE]\n\n"))
}

func TestModelNameAsksForAQuirk(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	status, text := post(t, client, `{"model":"quirk/auth"}`)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, text, "invalid_api_key")
	status, _ = post(t, client, `{"model":"quirk/none-such"}`)
	require.Equal(t, http.StatusBadRequest, status)
	_, text = post(t, client, `{"model":"m","messages":[{"role":"user","content":"hi there"}]}`)
	require.Contains(t, text, "You said: hi there", "without a script it echoes")
}

func TestJournalTellsThatTheClientHasGone(t *testing.T) {
	t.Parallel()
	server, client := start(t, llmserver.Answer{Hold: true})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, llmserver.PipeURL+"/chat/completions", strings.NewReader(`{"stream":true}`))
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	request, err := server.Await(t.Context(), 1)
	require.NoError(t, err)
	select {
	case <-request.Gone:
		require.Fail(t, "the client is still there")
	default:
	}
	cancel()
	<-request.Gone
	<-request.Done
	require.NoError(t, resp.Body.Close())
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := server.Await(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = server.Await(t.Context(), 0)
	require.Error(t, err)
}

func TestOtherRequestsAreRefused(t *testing.T) {
	t.Parallel()
	server, client := start(t)
	status, _ := post(t, client, `no json`)
	require.Equal(t, http.StatusBadRequest, status)
	for path, want := range map[string]int{"/models": http.StatusOK, "/chat/completions": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, llmserver.PipeURL+path, http.NoBody)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
	}
	require.Empty(t, server.Requests())
}

func TestNamesOfQuirksAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, quirk := range llmserver.Quirks() {
		require.False(t, seen[quirk.Name], quirk.Name)
		require.NotEmpty(t, quirk.About, quirk.Name)
		seen[quirk.Name] = true
	}
}

func TestEchoCallsARequiredToolAndKeepsLimits(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	const tools = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"weather",
		"parameters":{"properties":{"city":{"type":"string"},"days":{"type":"number"}},"required":["city","days"]}}}]`
	_, text := post(t, client, `{"messages":[{"role":"user","content":"Paris"}],"tool_choice":{"type":"function","function":{"name":"weather"}},`+tools+`}`)
	require.Contains(t, text, `"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\",\"days\":null}"}}]`)
	require.Contains(t, text, `"finish_reason":"tool_calls"`)
	_, text = post(t, client, `{"tool_choice":"required",`+tools+`}`)
	require.Contains(t, text, `"name":"f","arguments":"{}"`)
	_, text = post(t, client, `{"messages":[{"role":"user","content":"Paris"}],"tool_choice":"auto",`+tools+`}`)
	require.Contains(t, text, "You said: Paris")
	_, text = post(t, client, `{"messages":[{"role":"user","content":[{"type":"text","text":"one two"},{"type":"text","text":" three"}]}],"max_completion_tokens":3}`)
	require.Contains(t, text, `"content":"You said: one "`)
	require.Contains(t, text, `"finish_reason":"length"`)
}

func TestToolCallsAreStreamedInPieces(t *testing.T) {
	t.Parallel()
	_, client := start(t, llmserver.Answer{
		Deltas: []string{"look"}, ToolPiece: 4,
		ToolCalls: []llmserver.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":"日本"}`}, {ID: "b", Name: "g", Arguments: `{}`}},
	})
	_, text := post(t, client, `{"stream":true}`)
	for _, want := range []string{
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":":\"日"}}]}`,
		`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}]}`, `"finish_reason":"tool_calls"`,
	} {
		require.Contains(t, text, want)
	}
}

func TestKeysAndModelsAreChecked(t *testing.T) {
	t.Parallel()
	client, stop := llmserver.NewServer(llmserver.Config{Models: []string{"small", "large"}}).Pipe()
	t.Cleanup(stop)
	status, text := post(t, client, `{"model":"huge"}`)
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "model_not_found")
	status, _ = post(t, client, `{"model":"large"}`)
	require.Equal(t, http.StatusOK, status)
	status, _ = post(t, client, `{"model":"quirk/quota"}`)
	require.Equal(t, http.StatusTooManyRequests, status)

	closed, stop := llmserver.NewServer(llmserver.Config{Key: "sk-1"}).Pipe()
	t.Cleanup(stop)
	status, text = post(t, closed, `{"model":"large"}`)
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, text, "sk-1")
}

func TestJournalKeepsTheNewestAndTellsOutcomes(t *testing.T) {
	t.Parallel()
	over := make(chan llmserver.Outcome, 3)
	server := llmserver.NewServer(llmserver.Config{Keep: 2, Observe: func(_ *llmserver.Request, o llmserver.Outcome) { over <- o }})
	client, stop := server.Pipe()
	t.Cleanup(stop)
	for _, model := range []string{"first", "second", "quirk/cut_event"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, llmserver.PipeURL+"/chat/completions", strings.NewReader(`{"model":"`+model+`"}`))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body) // one of them is cut
		require.NoError(t, resp.Body.Close())
		<-over
	}
	require.Len(t, server.Requests(), 2)
	_, err := server.Await(t.Context(), 1)
	require.ErrorContains(t, err, "only the newest 2 are kept")
	third, err := server.Await(t.Context(), 3)
	require.NoError(t, err)
	outcome, ended := third.Outcome()
	require.True(t, ended)
	require.Equal(t, "cut_event", outcome.Quirk)
	require.Equal(t, http.StatusOK, outcome.Status)
	require.Positive(t, outcome.Bytes)
	require.False(t, outcome.Gone, "it was the server that went")
	require.False(t, outcome.At.Before(third.Arrived))
}
