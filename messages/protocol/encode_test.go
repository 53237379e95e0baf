package protocol

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func encodeText(t *testing.T, f ServerFrame) string {
	t.Helper()
	b, err := Encode(f)
	require.NoError(t, err)
	return string(b)
}

func TestUnknownIsAbsentAndEmptyIsAList(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]ServerFrame{
		`{"type":"pong"}`: &Pong{},
		`{"type":"aborted","session_id":"s1","turn_ids":[],"run_ids":[]}`:     &Aborted{SessionID: "s1"},
		`{"type":"turn","turn_id":"t","state":"queued"}`:                      &Turn{TurnID: "t", State: "queued"},
		`{"type":"error","code":"bad_frame","message":"m","retryable":false}`: &Error{Code: CodeBadFrame, Message: "m"},
		`{"type":"router_response","session_id":"s","seq":1,"run_id":"r","turn_id":"t","turn_ids":["t"],"content":"","steering_emitted":false,` +
			`"outcome":"cancelled","usage":{"source":"unknown"},"attachments":[]}`: &RouterResponse{
			Item: Item{SessionID: "s", Seq: 1}, RunID: "r", TurnID: "t", TurnIDs: List[string]{"t"}, Outcome: "cancelled",
			Usage: &Usage{Source: "unknown"},
		},
		`{"type":"router_response","session_id":"s","run_id":"r","turn_id":"t","turn_ids":["t"],"content":"c","steering_emitted":false,` +
			`"outcome":"completed","attachments":[]}`: &RouterResponse{
			Item: Item{SessionID: "s"}, RunID: "r", TurnID: "t", TurnIDs: List[string]{"t"}, Content: "c", Outcome: "completed",
		},
	} {
		require.Equal(t, want, encodeText(t, f))
	}
	b, err := EncodeBody(&ContextPack{})
	require.NoError(t, err)
	want := `{"entries":[],"budget":0,"tokens":0,"over_budget":false,"tokenizer":""}`
	require.Equal(t, want, string(b))
}

func TestTextIsNotEscapedForHTML(t *testing.T) {
	t.Parallel()
	text := "<a href=\"x\">&</a> é \U0001F600 \x00\x1f\x7f \u2028 \n"
	f := &StreamDelta{Text: text}
	b := encodeText(t, f)
	require.Contains(t, b, `<a href=\"x\">&</a> é `+"\U0001F600")
	back, err := DecodeServer([]byte(b))
	require.NoError(t, err)
	require.Equal(t, f, back)
	require.Contains(t, encodeText(t, &RunPhase{TurnIDs: List[string]{"<&>"}}), `["<&>"]`, "in lists neither")
}

func TestEventsLeaveAsTheyAre(t *testing.T) {
	t.Parallel()
	f := &SessionEvent{SessionID: "s", Sequence: 1, Event: json.RawMessage(`{"type":"x", "n":1.50,"big":12345678901234567890123,"a":"<\u0061>"}`)}
	require.Contains(t, encodeText(t, f), `"event":{"type":"x","n":1.50,"big":12345678901234567890123,"a":"<\u0061>"}}`)
	_, err := Encode(&SessionEvent{Event: json.RawMessage(`{`)})
	require.Error(t, err, "broken JSON never leaves")
}

func TestTimesThatHaveNoTextAreErrors(t *testing.T) {
	t.Parallel()
	_, err := Encode(&SessionEvent{RecordedAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Error(t, err)
	want := `{"type":"pong","id":"next"}`
	require.Equal(t, want, encodeText(t, &Pong{ID: "next"}), "the buffer is clean")
}

func TestEncodedFramesDoNotShareABuffer(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := strings.Repeat(string(rune('a'+i)), 100)
			for range 200 {
				b, err := Encode(&Notice{Text: text})
				if err != nil || !strings.Contains(string(b), text) {
					t.Errorf("got %s, %v", b, err)
				}
			}
		})
	}
	wg.Wait()
	first, err := Encode(&Pong{ID: "1"})
	require.NoError(t, err)
	_, err = Encode(&Pong{ID: "2"})
	require.NoError(t, err)
	want := `{"type":"pong","id":"1"}`
	require.Equal(t, want, string(first))
}

func TestClientsSkipFramesOfNewerServers(t *testing.T) {
	t.Parallel()
	_, err := DecodeServer([]byte(`{"type":"of_a_newer_server","session_id":"s","seq":4}`))
	require.ErrorIs(t, err, ErrUnknownFrame)
	for _, in := range []string{``, `[]`, `{"type":5}`, `{"type":"gap","from_seq":"1"}`} {
		_, err := DecodeServer([]byte(in))
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrUnknownFrame)
	}
	f, err := DecodeServer([]byte(`{"type":"pong","later":null}`))
	require.NoError(t, err)
	require.Equal(t, &Pong{}, f)
}

// TestDeltasAreWrittenAsAllFrames holds the fast path to encoding/json.
func TestDeltasAreWrittenAsAllFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringOf(rapid.SampledFrom([]rune("a\"\\/<&\b\f\n\r\t\x00\x1f\x7fé\u2028\u2029\ufffd\U0001F600"))),
		)
		f := &StreamDelta{
			Item: Item{SessionID: text.Draw(t, "session"), Seq: rapid.Uint64Min(1).Draw(t, "seq")}, RunID: text.Draw(t, "run"),
			Attempt: rapid.Uint32().Draw(t, "attempt"), Offset: rapid.Uint64().Draw(t, "offset"), Text: text.Draw(t, "text"),
		}
		fast, err := Encode(f)
		require.NoError(t, err)
		plain, err := encodeFrame(f.FrameType(), f)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(fast))
	})
}

func BenchmarkEncodeStreamDelta(b *testing.B) {
	f := &StreamDelta{Item: sampleItem, RunID: sampleRun, Attempt: 1, Offset: 1000, Text: strings.Repeat("twenty bytes of text", 10)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeRouterResponse(b *testing.B) {
	var f ServerFrame
	for _, sample := range serverSamples() {
		if r, ok := sample.(*RouterResponse); ok {
			f = r
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeChatInput(b *testing.B) {
	in := []byte(`{"type":"chat_input","id":"1","session_id":"s1","text":"how far are we?","queue_mode":"collect","idempotency_key":"k-1"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := Decode(in); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
