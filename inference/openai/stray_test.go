package openai

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/inference"
)

// An error in the middle of a stream is never an answer, whatever its shape; a keep-alive never is an error.
func TestErrorsOfUnusualShapesEndAStream(t *testing.T) {
	t.Parallel()
	const begun = `data: {"choices":[{"index":0,"delta":{"content":"half "}}]}` + "\n\n"
	const end = "data: [DONE]\n\n"
	for event, fails := range map[string]bool{
		`{"error":500,"message":"it broke"}`:         true,
		`{"detail":"it broke"}`:                      true,
		`{"errors":["it broke"]}`:                    true,
		`{"code":"InternalError","message":"broke"}`: true,
		`{"\u0065rror":{"message":"it broke"}}`:      true,
		`{"error":null}`:                             false,
		`{}`:                                         false,
		`{"type":"ping"}`:                            false,
		`{"choices":[]}`:                             false,
	} {
		body := []byte(begun + "data: " + event + "\n\n" + end)
		provider, err := New(Config{Model: "m", HTTPClient: &http.Client{Transport: doer{contentType: "text/event-stream", body: body, piece: 7}}})
		require.NoError(t, err)
		_, err = provider.Inspect(t.Context(), Trial{User: "hi"}, func(inference.Event) error { return nil })
		if fails {
			require.Error(t, err, event)
		} else {
			require.NoError(t, err, event)
		}
	}
}
