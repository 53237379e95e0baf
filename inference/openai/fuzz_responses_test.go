package openai

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/testkit/llmserver"
)

// FuzzResponses reads anything as an answer of the responses API. Whatever comes, the call ends with an answer that the server
// called ended, or with an error of a kind; only an answer is something to go on with.
func FuzzResponses(f *testing.F) {
	for _, quirk := range llmserver.ResponseQuirks() {
		if !quirk.Large {
			f.Add([]byte(quirk.Response.Body()), 1)
			f.Add([]byte(quirk.Response.Body()), 4096)
		}
	}
	request := inference.Request{Resume: "resp_0", Pack: contextpack.Pack{Entries: []contextpack.Entry{
		{Role: contextpack.RoleUser, Content: "hi", Kept: true},
	}}}
	f.Fuzz(func(t *testing.T, body []byte, piece int) {
		provider, err := New(Config{
			Model: "m", API: APIResponses, HTTPClient: &http.Client{Transport: doer{contentType: "text/event-stream", body: body, piece: piece}},
		})
		require.NoError(t, err)
		var text strings.Builder
		completion, err := provider.Infer(t.Context(), request, func(event inference.Event) error {
			if delta, ok := event.(inference.Delta); ok {
				require.NotEmpty(t, delta.Text)
				text.WriteString(delta.Text)
			}
			return nil
		})
		var typed *inference.Error
		switch {
		case err == nil:
			require.NotEmpty(t, completion.FinishReason)
			if !bytes.ContainsRune(body, '\\') { // which could spell it otherwise
				require.Contains(t, string(body), "response.", "the server must have said that it is over")
			}
		case errors.As(err, &typed):
			require.True(t, typed.Kind.Valid())
			require.Empty(t, completion.Resume)
		default:
			require.Fail(t, "an error without a kind", "%v", err)
		}
		require.LessOrEqual(t, text.Len(), 3*len(body), "a byte that is no UTF-8 becomes three")
		require.LessOrEqual(t, len(completion.Resume), maxToken)
	})
}
