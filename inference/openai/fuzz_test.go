package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
	"github.com/correx/correx-actors/testkit/llmserver"
)

const (
	fuzzEvent = 1 << 10
	fuzzBody  = 32 << 10
)

// FuzzGuard: whatever a server sends, the guard ends, in bounded memory; what it gives does not depend on how the bytes
// were cut into packets; and the text of an answer that it calls whole is what a plain parser of the standard reads.
func FuzzGuard(f *testing.F) {
	for _, quirk := range llmserver.Quirks() {
		if body := quirk.Response.Body(); len(body) < 64<<10 {
			f.Add([]byte(body), 1, quirk.Response.Header["Content-Type"])
			f.Add([]byte(body), 5, "text/event-stream")
		}
	}
	f.Add([]byte(strings.Repeat("data:\n", 5000)), 3, "text/event-stream")
	f.Add(bytes.Repeat([]byte("{\n"), 5000), 2, "text/event-stream")
	f.Fuzz(func(t *testing.T, body []byte, piece int, contentType string) {
		if len(body) > 64<<10 {
			t.Skip("larger than the limits that are fuzzed")
		}
		if strings.ContainsAny(contentType, "\r\n") || contentType == "" {
			contentType = "text/event-stream"
		}
		// The fuzzer itself would wait for ever.
		hangs := time.AfterFunc(30*time.Second, func() { panic("the guard hangs") })
		defer hangs.Stop()
		checkLines(t, body, piece, contentType)
		checkText(t, body, piece, contentType)
	})
}

func checkLines(t *testing.T, body []byte, piece int, contentType string) {
	t.Helper()
	limits := Config{MaxEventBytes: fuzzEvent, MaxBodyBytes: fuzzBody}
	whole, wholeErr := guarded(doer{contentType: contentType, body: body, piece: len(body)}, limits)
	cut, cutErr := guarded(doer{contentType: contentType, body: body, piece: piece}, limits)
	require.Equal(t, whole, cut)
	if wholeErr == nil {
		require.NoError(t, cutErr)
	} else {
		require.EqualError(t, cutErr, wholeErr.Error())
	}
	require.LessOrEqual(t, len(whole), 4*len(body)+64)
	for line := range strings.Lines(whole) {
		require.True(t, strings.HasPrefix(line, "data: ") && strings.HasSuffix(line, "\n"), line)
	}
}

func checkText(t *testing.T, body []byte, piece int, contentType string) {
	t.Helper()
	provider, err := New(Config{
		Model: "m", MaxEventBytes: fuzzEvent, MaxBodyBytes: fuzzBody,
		HTTPClient: &http.Client{Transport: doer{contentType: contentType, body: body, piece: piece}},
	})
	require.NoError(t, err)
	var text strings.Builder
	_, err = provider.Infer(t.Context(), inference.Request{Pack: contextpack.Pack{Entries: []contextpack.Entry{
		{Role: contextpack.RoleUser, Content: "hi", Kept: true},
	}}}, func(event inference.Event) error {
		if delta, ok := event.(inference.Delta); ok {
			text.WriteString(delta.Text)
		}
		return nil
	})
	if err == nil && contentType == "text/event-stream" {
		require.Equal(t, plainText(body), text.String())
	}
}

// plainText reads the answer of a stream as the standard describes it, from the whole body at once.
func plainText(body []byte) string {
	var text strings.Builder
	for _, data := range plainEvents(string(body)) {
		// The guard hands an event on in one line: a line end within it becomes a space, also within a text, where JSON allows none.
		if data = strings.ReplaceAll(strings.TrimSpace(data), "\n", " "); data == "[DONE]" {
			break
		}
		var event struct {
			Choices []struct {
				Index          int
				Delta, Message *struct{ Content, Refusal string }
			}
		}
		if json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		for _, choice := range event.Choices {
			said := choice.Delta
			if choice.Message != nil {
				said = choice.Message
			}
			if said != nil && choice.Index == 0 {
				text.WriteString(said.Content + said.Refusal)
			}
		}
	}
	return text.String()
}

// plainEvents gives the data of each event. The last one counts even without its blank line: servers forget it.
func plainEvents(body string) []string {
	body = strings.TrimPrefix(body, "\ufeff")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	var events []string
	for block := range strings.SplitSeq(body, "\n\n") {
		var data []string
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ":")
			if name == "data" {
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		if len(data) > 0 {
			events = append(events, strings.Join(data, "\n"))
		}
	}
	return events
}
