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
