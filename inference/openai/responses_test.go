package openai_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/inference/openai"
	"github.com/correx/correx-actors/testkit/llmserver"
)

// serveResponses starts a fake server and a provider that calls its responses endpoint.
func serveResponses(t *testing.T, script ...llmserver.Answer) (*llmserver.Server, *openai.Provider) {
	t.Helper()
	server := llmserver.New(script...)
	url, stop, err := server.Start()
	require.NoError(t, err)
	provider, err := openai.New(openai.Config{BaseURL: url, APIKey: key, Model: llmserver.Model, API: openai.APIResponses})
	require.NoError(t, err)
	t.Cleanup(func() {
		provider.Close()
		stop()
	})
	return server, provider
}

// say is a request with one message of the user.
func say(text, resume string) inference.Request {
	req := ask()
	req.Pack.Entries[1].Content, req.Resume = text, resume
	return req
}

func TestEveryQuirkOfResponsesIsReadRight(t *testing.T) {
	t.Parallel()
	for _, quirk := range llmserver.ResponseQuirks() {
		t.Run(quirk.Name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{0, 1} {
				if piece == 1 && quirk.Large {
					piece = 4093
				}
				_, provider := serveResponses(t, llmserver.Answer{Quirk: quirk.Name, Piece: piece})
				checkResponse(t, quirk, provider)
			}
		})
	}
}

func checkResponse(t *testing.T, quirk llmserver.Quirk, provider *openai.Provider) {
	t.Helper()
	h, completion, err := infer(t.Context(), provider, say("hi", "resp_0"))
	want := quirk.Want
	require.Equal(t, want.Text, h.text.String(), quirk.About)
	if want.Active {
		require.Positive(t, h.alive, quirk.About)
	}
	if want.Kind == "" {
		require.NoError(t, err, quirk.About)
		usage := inference.Usage{}
		if want.Usage != nil {
			usage = inference.Usage{InputTokens: uint64(want.Usage.Input), OutputTokens: uint64(want.Usage.Output), Known: true}
		}
		require.Equal(t, usage, completion.Usage, quirk.About)
		require.Equal(t, want.FinishReason, completion.FinishReason, quirk.About)
		require.Equal(t, want.Resume, completion.Resume, quirk.About)
		return
	}
	var failed *inference.Error
	require.ErrorAs(t, err, &failed, quirk.About)
	require.Equal(t, want.Kind, failed.Kind, "%s: %v", quirk.About, err)
	require.Contains(t, failed.Message, want.Says, quirk.About)
	require.NotContains(t, failed.Message, key, quirk.About)
	require.Equal(t, want.RetryAfter, failed.RetryAfter, quirk.About)
	require.Empty(t, completion.Resume, "a failed answer is nothing to go on with")
	if want.Lost {
		require.ErrorIs(t, err, inference.ErrUnknownResume, quirk.About)
	} else {
		require.NotErrorIs(t, err, inference.ErrUnknownResume, quirk.About)
	}
}

// What can happen to any stream happens to this one too.
func TestResponsesShareTheQuirksOfAnyStream(t *testing.T) {
	t.Parallel()
	shared := make(map[string]bool)
	for _, quirk := range llmserver.ResponseQuirks() {
		require.False(t, shared[quirk.Name], "%s is named twice", quirk.Name)
		shared[quirk.Name] = true
	}
	for _, name := range []string{
		"cut", "ended", "empty", "tail", "keep_alives", "crlf", "cr", "bom", "html", "no_content", "document_error", "stream_as_json",
		"error_event", "error_hold", "error_secret", "error_unframed", "rate_limited", "overflow", "refused_hold", "redirect", "hold_done",
	} {
		require.True(t, shared[name], name)
	}
}

func TestResponseIsTheTokenOfItsConversation(t *testing.T) {
	t.Parallel()
	server, provider := serveResponses(t, llmserver.Answer{Deltas: []string{"one"}}, llmserver.Answer{Deltas: []string{"two"}})
	_, first, err := infer(t.Context(), provider, say("a", ""))
	require.NoError(t, err)
	require.Equal(t, "resp_1", first.Resume)
	h, second, err := infer(t.Context(), provider, say("b", first.Resume))
	require.NoError(t, err)
	require.Equal(t, "two", h.text.String())
	require.Equal(t, []llmserver.Message{
		{Role: "user", Content: "a"}, {Role: "assistant", Content: "one"}, {Role: "user", Content: "b"}, {Role: "assistant", Content: "two"},
	}, server.Conversation(second.Resume), "the system's part is not kept")
	asked := server.Requests()[1].Asked
	require.Equal(t, "resp_1", asked.PreviousResponseID)
	require.Equal(t, "You are terse.", asked.Instructions, "instructions are not kept by the server, so each call brings them")
	require.Equal(t, []llmserver.Message{{Role: "user", Content: "b"}}, asked.Input)
	require.True(t, *asked.Store)
	require.True(t, asked.Stream)
}

func TestUnknownTokenIsToldApart(t *testing.T) {
	t.Parallel()
	server, provider := serveResponses(t)
	_, first, err := infer(t.Context(), provider, say("a", ""))
	require.NoError(t, err)
	server.Forget()
	_, _, err = infer(t.Context(), provider, say("b", first.Resume))
	require.ErrorIs(t, err, inference.ErrUnknownResume)
	require.False(t, inference.KindOf(err).Retryable())

	_, provider = serveResponses(t, llmserver.Answer{Quirk: "lost_openai"})
	_, _, err = infer(t.Context(), provider, say("b", ""))
	require.NotErrorIs(t, err, inference.ErrUnknownResume, "there was no token")
	_, provider = serveResponses(t, llmserver.Answer{Quirk: "no_model"})
	_, _, err = infer(t.Context(), provider, say("b", "resp_0"))
	require.NotErrorIs(t, err, inference.ErrUnknownResume)
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
}

// I10: a cancel closes the connection at once, at whatever point of the answer.
func TestCancelClosesTheConnectionOfAResponse(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]llmserver.Answer{
		"before the text": {Deltas: []string{"late"}, FirstDelay: time.Hour}, "in the text": stuck(), "after a keep-alive": {KeepAlives: 9, KeepAliveEvery: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, provider := serveResponses(t, answer)
			ctx, cancel := context.WithCancelCause(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := provider.Infer(ctx, say("hi", ""), func(inference.Event) error { return nil })
				over <- err
			}()
			request, err := server.Await(t.Context(), 1)
			require.NoError(t, err)
			cancel(errInterrupted)
			within(t, request.Gone)
			err = <-over
			require.Equal(t, inference.KindCanceled, inference.KindOf(err))
			require.ErrorIs(t, err, errInterrupted)
		})
	}
}

// The last event ends the call: no grace is waited for, and the connection is used again.
func TestResponsesInARowShareAConnection(t *testing.T) {
	t.Parallel()
	server, provider := serveResponses(t)
	for range 5 {
		_, _, err := infer(t.Context(), provider, say("hi", ""))
		require.NoError(t, err)
	}
	remotes := make(map[string]bool)
	for _, request := range server.Requests() {
		remotes[request.Remote] = true
	}
	require.Len(t, remotes, 1)
}

func TestHeldResponseEndsWithItsLastEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, stop := llmserver.New(llmserver.Answer{Deltas: []string{"whole"}, Hold: true}).Pipe()
		provider, err := openai.New(openai.Config{
			BaseURL: llmserver.PipeURL, HTTPClient: client, Model: llmserver.Model, API: openai.APIResponses,
		})
		require.NoError(t, err)
		started := time.Now()
		_, completion, err := infer(t.Context(), provider, say("hi", ""))
		require.NoError(t, err)
		require.Equal(t, "resp_1", completion.Resume)
		require.Less(t, time.Since(started), time.Second)
		stop()
	})
}

func TestResponseRequestsAreCheckedBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	server, provider := serveResponses(t)
	for name, change := range map[string]func(*inference.Request){
		"context_overflow": func(r *inference.Request) { r.Pack.Overflow = true },
		"bad_request":      func(r *inference.Request) { r.Pack.Entries[1].Kept = false },
	} {
		req := say("hi", "")
		change(&req)
		_, _, err := infer(t.Context(), provider, req)
		require.Equal(t, inference.Kind(name), inference.KindOf(err))
	}
	odd := say("hi", "")
	odd.Pack.Entries[1].Role = contextpack.Role("tool")
	_, _, err := infer(t.Context(), provider, odd)
	require.Equal(t, inference.KindBadRequest, inference.KindOf(err))
	require.Empty(t, server.Requests())
	_, err = openai.New(openai.Config{API: "assistants"})
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
	bare, err := openai.New(openai.Config{API: openai.APIResponses})
	require.NoError(t, err)
	_, _, err = infer(t.Context(), bare, say("hi", ""))
	require.Equal(t, inference.KindConfig, inference.KindOf(err))
}

func TestResponseKeepsItsLimitOfTokens(t *testing.T) {
	t.Parallel()
	server, provider := serveResponses(t)
	req := say(strings.Repeat("word ", 20), "")
	req.MaxTokens = 3
	_, completion, err := infer(t.Context(), provider, req)
	require.NoError(t, err)
	require.Equal(t, 3, server.Requests()[0].Asked.MaxOutputTokens)
	require.Equal(t, inference.FinishLength, completion.FinishReason)
	require.NotEmpty(t, completion.Resume, "what there is of the answer is in the conversation")
}
