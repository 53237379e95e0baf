package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/testkit"
)

// TestHostileTextArrivesUnchangedOverStreams: whatever an answer holds, a stream's lines stay its own.
func TestHostileTextArrivesUnchangedOverStreams(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"cjk":               "漢字かな交じり文。한국어",
		"emoji with joiner": "👩‍👩‍👧‍👦🏳️‍🌈👍🏽",
		"combining marks":   "Z͑ͫ̓ͪ̂a̴̡͎l͕͖̉g̙o e\u0301 \u200b\u200e\u202e",
		"line separators":   "a\u2028b\u2029c\u0085d\x0be\x0cf",
		"nul":               "a\x00b",
		"cr":                "a\rb\r\nc\r",
		"only line ends":    "\n\n\r\r\n\n",
		"an event inside":   "a\n\ndata: {\"type\":\"router_response\"}\n\nid: 99999\nevent: error\n: comment\nretry: 1\n",
		"bom":               "\ufeffid: 1\n",
		"json inside":       `","seq":9,"text":"\u0000\\`,
		"html":              "<script>alert('x')</script> & \"</pre>\"",
		"a mebibyte":        strings.Repeat("x", 1<<20),
		"long of all":       strings.Repeat("\r\n\u2028👩‍👧\x00\"\\", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			half := len(text) / 2
			for half > 0 && text[half]&0xC0 == 0x80 { // deltas are whole characters
				half--
			}
			s.model.Call(testkit.Stream(text[:half], text[half:]))
			s.call(http.MethodPost, "/v1/sessions/s1/events", `{"events":[{"type":"custom"}]}`)
			output := s.stream(t, http.MethodGet, outputOfS1+"?after_seq=0", "")
			turn, _ := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`)
			for _, r := range []*sseReader{turn, output} {
				final, items := r.until("router_response")
				require.True(t, text == final.text("content"), "the final is the text") //nolint:testifylint // it may be long
				var streamed strings.Builder
				for _, f := range only(items, "stream_delta") {
					streamed.WriteString(f.text("text"))
				}
				require.True(t, text == streamed.String(), "and so are the deltas")     //nolint:testifylint // it may be long
				require.True(t, text == only(items, "stream_finalize")[0].text("text")) //nolint:testifylint // it may be long
				r.close()
			}
			again, _ := s.streamTurn(t, `{"text":"hi","idempotency_key":"k"}`)
			require.True(t, text == again.expect("router_response").text("content"), "a duplicate's end too") //nolint:testifylint // it may be long
			again.close()
		})
	}
}

// The event log's stream as well: a host's event is what the host wrote.
func TestHostileEventsArriveUnchangedOverStreams(t *testing.T) {
	t.Parallel()
	s := start(t)
	text := "a\n\ndata: x\r\u2028\x00👩‍👧"
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	body := `{"events":[{"type":"custom","text":` + string(quoted) + "\n,\r\n\t\"n\" : 1.50 }]}"
	status, _, _ := s.call(http.MethodPost, "/v1/sessions/s1/events", body)
	require.Equal(t, http.StatusOK, status)
	r := s.stream(t, http.MethodGet, "/v1/sessions/s1/events", "")
	f, id, name, err := r.event()
	require.NoError(t, err)
	require.Equal(t, "session_event", name)
	require.Equal(t, "1", id)
	require.Equal(t, text, frame(f["event"].(map[string]any)).text("text"))
	r.close()
}
