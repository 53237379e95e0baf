package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func nested(levels int) string {
	return `{"type":"ping","x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

func TestBadFramesAreRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, ` `, `null`, `true`, `5`, `"ping"`, `[]`, `[{"type":"ping"}]`, `{`, `{"type":"ping"`, `{"type":"ping",}`, `{type:"ping"}`,
		`{"type":"ping"} {"type":"ping"}`, `{"type":"ping"}x`, "{\"type\":\"ping\",\"x\":\"\xff\"}", "{\"type\":\"ping\",\"x\":\"\n\"}",
		"\ufeff" + `{"type":"ping"}`, `{"type":"ping","x":01}`, `{"type":"ping","x":NaN}`, nested(MaxDepth + 1), strings.Repeat("[", 100_000),
	} {
		f, refusal := Decode([]byte(in))
		require.Nil(t, f, "%.60s", in)
		require.Equal(t, badFrame(), refusal, "%.60s", in)
	}
	f, refusal := Decode([]byte(nested(MaxDepth)))
	require.Nil(t, refusal)
	require.Equal(t, &Ping{}, f)
	f, refusal = Decode([]byte(`{"type":"ping","x":"` + strings.Repeat(`[{\"`, 500) + `"}`))
	require.Nil(t, refusal, "brackets in strings do not nest")
	require.Equal(t, &Ping{}, f)
}

// TestBadFieldsAreRefused: every refusal has its code, says what is wrong and gives back the frame's id and session.
func TestBadFieldsAreRefused(t *testing.T) {
	t.Parallel()
	chat := func(fields string) string {
		return `{"type":"chat_input","session_id":"s1","text":"hi",` + fields + `}`
	}
	long := strings.Repeat("k", MaxIdempotencyKey+1)
	for _, c := range []struct{ in, code, message string }{
		{`{}`, CodeInvalidField, "type is missing"},
		{`{"type":null}`, CodeInvalidField, "type is missing"},
		{`{"type":7}`, CodeInvalidField, "type is not a string"},
		{`{"Type":"ping"}`, CodeInvalidField, "type is missing"},
		{`{"type":""}`, CodeUnknownType, `no frame has the type ""`},
		{`{"type":"PING"}`, CodeUnknownType, `no frame has the type "PING"`},
		{`{"type":"hello"}`, CodeUnknownType, `no frame has the type "hello"`},
		{`{"type":"keep_run_alive","session_id":"s1"}`, CodeInvalidField, `run_id is missing`},
		{`{"type":"keep_run_alive","session_id":"s1","run_id":"r","decision":"perhaps"}`, CodeInvalidField, `decision is not continue or cancel`},

		{`{"type":"start_session","session_id":""}`, CodeInvalidSessionID, "session_id has 0 bytes, want 1 to 200"},
		{`{"type":"start_session","session_id":5}`, CodeInvalidSessionID, "session_id is not a string"},
		{`{"type":"start_session","config":[]}`, CodeInvalidField, "config is not an object"},
		{`{"type":"start_session","config":{"model":1}}`, CodeInvalidField, "config.model is not a string"},
		{`{"type":"start_session","config":{"queue_mode":"fast"}}`, CodeInvalidQueueMode, "config.queue_mode is not one of collect, followup, steer, steer_backlog, interrupt"},
		{`{"type":"start_session","config":{"token_budget":-1}}`, CodeInvalidField, "config.token_budget is not a whole number from 0 to 4294967295"},
		{`{"type":"start_session","config":{"conversation_keep_last":4294967296}}`, CodeInvalidField, "config.conversation_keep_last is not a whole number from 0 to 4294967295"},

		{`{"type":"chat_input","text":"hi"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"chat_input","session_id":null,"text":"hi"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"chat_input","session_id":"a b","text":"hi"}`, CodeInvalidSessionID, `session_id has byte ' ' at 1, allowed are A-Z a-z 0-9 . _ ~ : -`},
		{`{"type":"chat_input","session_id":"` + strings.Repeat("s", 201) + `","text":"hi"}`, CodeInvalidSessionID, "session_id has 201 bytes, want 1 to 200"},
		{`{"type":"chat_input","session_id":"s1"}`, CodeInvalidField, "text is missing"},
		{`{"type":"chat_input","session_id":"s1","text":null}`, CodeInvalidField, "text is missing"},
		{`{"type":"chat_input","session_id":"s1","text":["hi"]}`, CodeInvalidField, "text is not a string"},
		{`{"type":"chat_input","session_id":"s1","text":""}`, CodeEmptyInput, "text is empty or only white space"},
		{`{"type":"chat_input","session_id":"s1","text":" \t\r\n\u00a0\u2003\u3000"}`, CodeEmptyInput, "text is empty or only white space"},
		{chat(`"mode":"chat"`), CodeInvalidMode, "mode is not CHAT or STEERING"},
		{chat(`"mode":""`), CodeInvalidMode, "mode is not CHAT or STEERING"},
		{chat(`"mode":1`), CodeInvalidMode, "mode is not a string"},
		{chat(`"queue_mode":"later"`), CodeInvalidQueueMode, "queue_mode is not one of collect, followup, steer, steer_backlog, interrupt"},
		{chat(`"queue_mode":""`), CodeInvalidQueueMode, "queue_mode is not one of collect, followup, steer, steer_backlog, interrupt"},
		{chat(`"queue_mode":{}`), CodeInvalidQueueMode, "queue_mode is not a string"},
		{chat(`"idempotency_key":""`), CodeInvalidField, "idempotency_key is empty"},
		{chat(`"idempotency_key":"` + long + `"`), CodeInvalidField, "idempotency_key has 257 bytes, at most 256 are allowed"},
		{chat(`"resume":"t"`), CodeInvalidField, "resume is not an object"},
		{chat(`"resume":{"token":"t"}`), CodeInvalidField, "resume.engine is missing"},
		{chat(`"resume":{"engine":"e"}`), CodeInvalidField, "resume.token is missing"},
		{chat(`"resume":{"engine":"e","token":""}`), CodeInvalidField, "resume.token is empty"},
		{chat(`"sender":{}`), CodeInvalidField, "sender is not a string"},
		{chat(`"model":false`), CodeInvalidField, "model is not a string"},
		{chat(`"attachments":{}`), CodeInvalidField, "attachments is not a list"},
		{chat(`"attachments":[null]`), CodeInvalidField, "attachments[0] is not an object"},
		{chat(`"attachments":[{"data":"aGk="},{"name":"x"}]`), CodeInvalidField, "attachments[1].data is missing"},
		{chat(`"attachments":[{"data":"?"}]`), CodeInvalidField, "attachments[0].data is not base64"},
		{chat(`"attachments":[{"data":""}]`), CodeInvalidField, "attachments[0].data is empty"},
		{chat(`"attachments":[{"data":5}]`), CodeInvalidField, "attachments[0].data is not a string"},
		{chat(`"attachments":[{"name":5,"data":"aGk="}]`), CodeInvalidField, "attachments[0].name is not a string"},

		{`{"type":"subscribe"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"subscribe","session_id":"s1","after_seq":-1}`, CodeInvalidField, "after_seq is not a whole number from 0 to 18446744073709551615"},
		{`{"type":"subscribe","session_id":"s1","after_seq":1.5}`, CodeInvalidField, "after_seq is not a whole number from 0 to 18446744073709551615"},
		{`{"type":"subscribe","session_id":"s1","after_seq":"1"}`, CodeInvalidField, "after_seq is not a whole number from 0 to 18446744073709551615"},
		{`{"type":"subscribe","session_id":"s1","after_event":18446744073709551616}`, CodeInvalidField, "after_event is not a whole number from 0 to 18446744073709551615"},
		{`{"type":"subscribe","session_id":"s1","events":1}`, CodeInvalidField, "events is not true or false"},
		{`{"type":"unsubscribe"}`, CodeInvalidField, "session_id is missing"},

		{`{"type":"abort"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"abort","session_id":"s1","scope":"all"}`, CodeInvalidField, "scope is not run, turn or session"},
		{`{"type":"abort","session_id":"s1","scope":""}`, CodeInvalidField, "scope is not run, turn or session"},
		{`{"type":"abort","session_id":"s1","scope":"turn"}`, CodeInvalidField, "turn_id is missing, the scope is turn"},
		{`{"type":"abort","session_id":"s1","run_id":""}`, CodeInvalidField, "run_id is empty"},
		{`{"type":"abort","session_id":"s1","reason":1}`, CodeInvalidField, "reason is not a string"},

		{`{"type":"explain","text":"hi"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"explain","session_id":"s1"}`, CodeInvalidField, "text is missing"},
		{`{"type":"explain","session_id":"s1","text":" "}`, CodeEmptyInput, "text is empty or only white space"},
		{`{"type":"explain","session_id":"s1","text":"hi","queue_mode":"later"}`, CodeInvalidQueueMode, "queue_mode is not one of collect, followup, steer, steer_backlog, interrupt"},

		{`{"type":"withdraw","turn_id":"t"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"withdraw","session_id":"s1"}`, CodeInvalidField, "turn_id is missing"},
		{`{"type":"withdraw","session_id":"s1","turn_id":null}`, CodeInvalidField, "turn_id is missing"},
		{`{"type":"withdraw","session_id":"s1","turn_id":""}`, CodeInvalidField, "turn_id is empty"},
		{`{"type":"withdraw","session_id":"s1","turn_id":7}`, CodeInvalidField, "turn_id is not a string"},

		{`{"type":"get_turn","session_id":"s1"}`, CodeInvalidField, "want turn_id or idempotency_key, one of them"},
		{`{"type":"get_turn","session_id":"s1","turn_id":"t","idempotency_key":"k"}`, CodeInvalidField, "want turn_id or idempotency_key, one of them"},
		{`{"type":"get_turn","session_id":"s1","turn_id":5}`, CodeInvalidField, "turn_id is not a string"},
		{`{"type":"get_turn","turn_id":"t"}`, CodeInvalidField, "session_id is missing"},
		{`{"type":"get_session"}`, CodeInvalidField, "session_id is missing"},

		{`{"type":"record_events","session_id":"s1"}`, CodeInvalidField, "events is missing"},
		{`{"type":"record_events","session_id":"s1","events":{}}`, CodeInvalidField, "events is not a list"},
		{`{"type":"record_events","session_id":"s1","events":[]}`, CodeInvalidField, "events has 0 items, want 1 to 1000"},
		{`{"type":"record_events","session_id":"s1","events":[` + strings.Repeat(`{},`, 1000) + `{}]}`, CodeInvalidField, "events has 1001 items, want 1 to 1000"},
		{`{"type":"record_events","session_id":"s1","events":[{},"x"]}`, CodeInvalidEvent, "events[1] is not an object"},
		{`{"type":"record_events","session_id":"s1","events":[{}],"expected_sequence":"0"}`, CodeInvalidField, "expected_sequence is not a whole number from 0 to 18446744073709551615"},

		{`{"type":"ack","session_id":"s1"}`, CodeInvalidField, "seq is missing"},
		{`{"type":"ack","session_id":"s1","seq":true}`, CodeInvalidField, "seq is not a whole number from 0 to 18446744073709551615"},
	} {
		in := strings.Replace(c.in, `{`, `{"id":"i-7",`, 1)
		in = strings.Replace(in, `,}`, `}`, 1)
		f, refusal := Decode([]byte(in))
		require.Nil(t, f, in)
		require.NotNil(t, refusal, in)
		want := &Error{ID: "i-7", Code: c.code, Message: c.message}
		if strings.Contains(in, `"session_id":"s1"`) {
			want.SessionID = "s1"
		}
		require.Equal(t, want, refusal, in)
		require.EqualError(t, refusal, c.code+": "+c.message)
	}
}

func TestIDsOfFramesAreBounded(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("i", MaxID)
	f, refusal := Decode(fmt.Appendf(nil, `{"type":"ping","id":%q}`, id))
	require.Nil(t, refusal)
	require.Equal(t, id, f.FrameID())
	_, refusal = Decode(fmt.Appendf(nil, `{"type":"nope","session_id":"s1","id":%q}`, id+"i"))
	require.Equal(t, &Error{SessionID: "s1", Code: CodeInvalidField, Message: "id has 129 bytes, at most 128 are allowed"}, refusal)
	_, refusal = Decode([]byte(`{"type":"ping","id":7}`))
	require.Equal(t, &Error{Code: CodeInvalidField, Message: "id is not a string"}, refusal)
	f, refusal = Decode([]byte(`{"type":"ping","id":null}`))
	require.Nil(t, refusal)
	require.Empty(t, f.FrameID())
}

func TestFramesAreReadLeniently(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]ClientFrame{
		" {\n\t\"type\" : \"ping\" } \r\n":                         &Ping{},
		`{"type":"nope","type":"ping"}`:                            &Ping{},
		`{"type":"start_session"}`:                                 &StartSession{},
		`{"type":"start_session","session_id":null,"config":null}`: &StartSession{},
		`{"type":"start_session","config":{"queue_mode":null}}`:    &StartSession{Config: &SessionConfig{}},
		`{"type":"start_session","config":{"queue_mode":"Steer_Backlog","model":"m","later":{"x":[null]}}}`: &StartSession{
			Config: &SessionConfig{QueueMode: "steer_backlog", Model: "m"},
		},
		`{"type":"chat_input","session_id":"s1","text":" <hi> \u0000\n"}`: &ChatInput{SessionID: "s1", Text: " <hi> \x00\n", Mode: ModeChat},
		`{"type":"chat_input","session_id":"s1","text":"hi","TEXT":"no","mode":null,"queue_mode":"INTERRUPT","sender":"","attachments":[],"resume":null,"unknown":1}`: &ChatInput{
			SessionID: "s1", Text: "hi", Mode: ModeChat, QueueMode: "interrupt",
		},
		`{"type":"chat_input","session_id":"s1","text":"a","text":"b"}`:           &ChatInput{SessionID: "s1", Text: "b", Mode: ModeChat},
		`{"type":"subscribe","session_id":"agent:a~3A:main"}`:                     &Subscribe{SessionID: "agent:a~3A:main"},
		`{"type":"subscribe","session_id":"s1","after_seq":null,"events":false}`:  &Subscribe{SessionID: "s1"},
		`{"type":"subscribe","session_id":"s1","after_seq":18446744073709551615}`: &Subscribe{SessionID: "s1", AfterSeq: new(^uint64(0))},
		`{"type":"abort","session_id":"s1"}`:                                      &Abort{SessionID: "s1", Scope: ScopeRun},
		`{"type":"abort","session_id":"s1","scope":"session"}`:                    &Abort{SessionID: "s1", Scope: ScopeSession},
		`{"type":"get_turn","session_id":"s1","idempotency_key":"k"}`:             &GetTurn{SessionID: "s1", IdempotencyKey: "k"},
		`{"type":"explain","session_id":"s1","text":"hi","queue_mode":"FollowUp"}`: &Explain{ChatInput: ChatInput{
			SessionID: "s1", Text: "hi", Mode: ModeChat, QueueMode: "followup",
		}},
		`{"type":"withdraw","session_id":"s1","turn_id":"t","later":1}`: &Withdraw{SessionID: "s1", TurnID: "t"},
		`{"type":"ack","session_id":"s1","seq":0}`:                      &Ack{SessionID: "s1"},
		`{"type":"record_events","session_id":"s1","events":[ {"type":"x", "n":1.0} ]}`: &RecordEvents{
			SessionID: "s1", Events: []json.RawMessage{json.RawMessage(`{"type":"x", "n":1.0}`)},
		},
	} {
		f, refusal := Decode([]byte(in))
		require.Nil(t, refusal, in)
		require.Equal(t, want, f, in)
	}
}

func TestDecodedFramesDoNotShareTheirInput(t *testing.T) {
	t.Parallel()
	for _, f := range clientSamples() {
		b, err := EncodeClient(f)
		require.NoError(t, err)
		got, refusal := Decode(b)
		require.Nil(t, refusal)
		clear(b)
		require.Equal(t, f, got)
	}
}

func TestBodiesOfRequestsAreRead(t *testing.T) {
	t.Parallel()
	turn, refusal := DecodeTurnBody("s1", []byte(`{"session_id":"other","type":"x","text":"hi","id":"7","idempotency_key":"k"}`))
	require.Nil(t, refusal)
	require.Equal(t, &ChatInput{ID: "7", SessionID: "s1", Text: "hi", Mode: ModeChat, IdempotencyKey: "k"}, turn)
	explain, refusal := DecodeExplainBody("s1", []byte(`{"session_id":"other","type":"x","text":"hi","queue_mode":"steer"}`))
	require.Nil(t, refusal)
	require.Equal(t, &Explain{ChatInput: ChatInput{SessionID: "s1", Text: "hi", Mode: ModeChat, QueueMode: "steer"}}, explain)
	events, refusal := DecodeEventsBody("s1", []byte(`{"events":[{"type":"x"}],"expected_sequence":3}`))
	require.Nil(t, refusal)
	require.Equal(t, &RecordEvents{SessionID: "s1", Events: []json.RawMessage{json.RawMessage(`{"type":"x"}`)}, ExpectedSequence: new(uint64(3))}, events)
	for _, body := range []string{"", "{}"} {
		abort, refusal := DecodeAbortBody("s1", []byte(body))
		require.Nil(t, refusal)
		require.Equal(t, &Abort{SessionID: "s1", Scope: ScopeRun}, abort)
	}

	_, refusal = DecodeExplainBody("s1", []byte(`{"text":"hi","queue_mode":"later"}`))
	require.Equal(t, CodeInvalidQueueMode, refusal.Code)
	_, refusal = DecodeTurnBody("s1", nil)
	require.Equal(t, badFrame(), refusal)
	_, refusal = DecodeTurnBody("a b", []byte(`{"text":"hi","session_id":"s1"}`))
	require.Equal(t, CodeInvalidSessionID, refusal.Code)
	require.Empty(t, refusal.SessionID, "the body's session is not the one that was asked for")
	_, refusal = DecodeTurnBody("s1", []byte(`{"text":" "}`))
	require.Equal(t, &Error{SessionID: "s1", Code: CodeEmptyInput, Message: "text is empty or only white space"}, refusal)
	_, refusal = DecodeEventsBody("s1", []byte(`{"events":[5]}`))
	require.Equal(t, CodeInvalidEvent, refusal.Code)
	_, refusal = DecodeAbortBody("s1", []byte(`{"scope":"turn"}`))
	require.Equal(t, CodeInvalidField, refusal.Code)
}

func TestIdempotencyKeyOfTheHeader(t *testing.T) {
	t.Parallel()
	f := &ChatInput{SessionID: "s1"}
	require.Nil(t, f.SetIdempotencyKey(""))
	require.Empty(t, f.IdempotencyKey)
	require.Equal(t, CodeInvalidField, f.SetIdempotencyKey(strings.Repeat("k", MaxIdempotencyKey+1)).Code)
	require.Nil(t, f.SetIdempotencyKey("k"))
	require.Nil(t, f.SetIdempotencyKey("k"), "both and equal")
	require.Equal(t, &Error{
		SessionID: "s1", Code: CodeInvalidField, Message: "idempotency_key differs from the Idempotency-Key header",
	}, f.SetIdempotencyKey("other"))
	require.Equal(t, "k", f.IdempotencyKey)
}

// FuzzDecode: no input panics (I13), and a frame that was read is read the same from its own text.
func FuzzDecode(f *testing.F) {
	for _, frame := range clientSamples() {
		b, err := EncodeClient(frame)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"type":"chat_input","session_id":"s","text":"\ud800"}`))
	f.Add([]byte(`[[[{"type":`))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, refusal := Decode(b)
		if refusal != nil {
			require.Nil(t, frame)
			require.NotEmpty(t, refusal.Code)
			require.NotEmpty(t, refusal.Message)
			_, err := Encode(refusal)
			require.NoError(t, err)
			return
		}
		text, err := EncodeClient(frame)
		require.NoError(t, err)
		again, refusal := Decode(text)
		require.Nil(t, refusal, "%s", text)
		second, err := EncodeClient(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(second))
	})
}
