package messages

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"
)

// TestEventsHaveTheJSONOfTheContract: docs/protocol.md, domain events.
func TestEventsHaveTheJSONOfTheContract(t *testing.T) {
	t.Parallel()
	at := &timestamppb.Timestamp{Seconds: 1_800_000_000, Nanos: 120_000_000}
	for text, event := range map[string]Event{
		`{"type":"workflow_started","workflow_id":"w"}`:                                 &WorkflowStarted{WorkflowId: "w"},
		`{"type":"workflow_completed"}`:                                                 &WorkflowCompleted{},
		`{"type":"workflow_failed","reason":"r"}`:                                       &WorkflowFailed{Reason: "r"},
		`{"type":"orchestration_paused","pause_reason":"r"}`:                            &OrchestrationPaused{PauseReason: "r"},
		`{"type":"orchestration_resumed"}`:                                              &OrchestrationResumed{},
		`{"type":"stage_started","stage_id":"s"}`:                                       &StageStarted{StageId: "s"},
		`{"type":"stage_completed","stage_id":"s","summary":"<&>","next_stage_id":"n"}`: &StageCompleted{StageId: "s", Summary: "<&>", NextStageId: "n"},
		`{"type":"stage_failed","stage_id":"s","reason":"r"}`:                           &StageFailed{StageId: "s", Reason: "r"},
		`{"type":"stage_cancelled","stage_id":"s","reason":"r"}`:                        &StageCancelled{StageId: "s", Reason: "r"},
		`{"type":"steering_note_added","content":"c","stage_id":"s","created_at":"2027-01-15T08:00:00.12Z","turn_id":"t"}`: &SteeringNoteAdded{
			Content: "c", StageId: new("s"), CreatedAt: at, TurnId: "t",
		},
		`{"type":"steering_note_added","content":"c"}`:                        &SteeringNoteAdded{Content: "c"},
		`{"type":"Deploy","n":1.50,"z":null,"a":{"y":[1e3,-0]},"n":2}`:        &ForeignEvent{Type: "Deploy", Json: []byte(`{"type":"Deploy","n":1.50,"z":null,"a":{"y":[1e3,-0]},"n":2}`)},
		`{"a":1,"type":"turn_admitted"}`:                                      &ForeignEvent{Type: "turn_admitted", Json: []byte(`{"a":1,"type":"turn_admitted"}`)},
		`{"type":"stage_started","type_version":2,"payload_base64":"AP8="}`:   &UnknownEvent{Type: "stage_started", Version: 2, Payload: []byte{0, 0xff}},
		`{"type":"stage_skipped","type_version":1,"payload_base64":""}`:       &UnknownEvent{Type: "stage_skipped", Version: 1, Payload: []byte{}},
		`{"type":"stage_started","stage_id":"s","trace":1e2,"deep":{"a":[]}}`: &StageStarted{StageId: "s", ExtraJson: []byte(`{"trace":1e2,"deep":{"a":[]}}`)},
	} {
		b, err := EventToJSON(event)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
		got, err := EventFromJSON(b)
		require.NoError(t, err, text)
		require.IsType(t, event, got)
		if m, ok := event.(proto.Message); ok {
			require.True(t, proto.Equal(m, got.(proto.Message)), "%v", got)
		} else {
			require.Equal(t, event, got)
		}
		require.NoError(t, ValidateEvent(got))
	}
}

func TestEventsAreReadLeniently(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" {\n\t\"stage_id\" : \"s\" , \"type\" : \"stage_started\" } \r\n":                      `{"type":"stage_started","stage_id":"s"}`,
		`{"type":"stage_completed","stage_id":"s","summary":null}`:                              `{"type":"stage_completed","stage_id":"s"}`,
		`{"type":"stage_completed","stage_id":"s","summary":""}`:                                `{"type":"stage_completed","stage_id":"s"}`,
		`{"type":"stage_started","stage_id":"a","stage_id":"b"}`:                                `{"type":"stage_started","stage_id":"b"}`,
		`{"type":"x","type":"stage_started","stage_id":"s"}`:                                    `{"type":"stage_started","stage_id":"s"}`,
		`{"type":"stage_started","stage_id":"\u0061\/"}`:                                        `{"type":"stage_started","stage_id":"a/"}`,
		`{"type":"stage_started","stage_id":"s","Stage_ID":"x"}`:                                `{"type":"stage_started","stage_id":"s","Stage_ID":"x"}`,
		`{"type":"stage_started","stage_id":"s","extra_json":"AA=="}`:                           `{"type":"stage_started","stage_id":"s","extra_json":"AA=="}`,
		`{"type":"stage_started","x": 1.0 ,"stage_id":"s","x":null}`:                            `{"type":"stage_started","stage_id":"s","x":1.0,"x":null}`,
		`{"type":"workflow_started"}`:                                                           `{"type":"workflow_started"}`,
		`{"type":"steering_note_added","content":"c","created_at":"2027-01-15T10:00:00+02:00"}`: `{"type":"steering_note_added","content":"c","created_at":"2027-01-15T08:00:00Z"}`,
		// A known type and version in the opaque form is the event itself.
		`{"type":"stage_started","type_version":1,"payload_base64":"CgFz"}`: `{"type":"stage_started","stage_id":"s"}`,
		// Not spelled as the opaque form is: a host's own event, given back as it came.
		`{"type":"x","payload_base64":"AA==","type_version":1}`:       `{"type":"x","payload_base64":"AA==","type_version":1}`,
		`{"type":"x","type_version":1.0,"payload_base64":"AA=="}`:     `{"type":"x","type_version":1.0,"payload_base64":"AA=="}`,
		`{"type":"x","type_version":1,"payload_base64":"AB=="}`:       `{"type":"x","type_version":1,"payload_base64":"AB=="}`,
		`{"type":"x","type_version":1,"payload_base64":null}`:         `{"type":"x","type_version":1,"payload_base64":null}`,
		`{"type":"x","type_version":1,"payload_base64":"AA==","a":1}`: `{"type":"x","type_version":1,"payload_base64":"AA==","a":1}`,
	} {
		e, err := EventFromJSON([]byte(in))
		require.NoError(t, err, in)
		require.NoError(t, ValidateEvent(e), in)
		b, err := EventToJSON(e)
		require.NoError(t, err, in)
		require.Equal(t, want, string(b))
	}
}

func TestBadEventsAreRefused(t *testing.T) {
	t.Parallel()
	for in, reason := range map[string]string{
		``:                              "no JSON object",
		`null`:                          "no JSON object",
		`[]`:                            "no JSON object",
		`"x"`:                           "no JSON object",
		`{"type":"x"`:                   "no JSON object",
		`{"type":"x"}{}`:                "no JSON object",
		`{"type":"x",}`:                 "no JSON object",
		"{\"type\":\"\xff\"}":           "not UTF-8",
		strings.Repeat(`{"a":`, 20_000): "no JSON object",
		`{}`:                            "no type",
		`{"type":null}`:                 "no type",
		`{"type":5}`:                    "no type",
		`{"Type":"x"}`:                  "no type",
		`{"type":""}`:                   "type has 0 bytes",
		`{"type":"stage_started"}`:      "stage_started has no stage_id",
		`{"type":"stage_completed","stage_id":""}`:                                         "stage_completed has no stage_id",
		`{"type":"stage_failed","stage_id":null}`:                                          "stage_failed has no stage_id",
		`{"type":"stage_cancelled","reason":"x"}`:                                          "stage_cancelled has no stage_id",
		`{"type":"steering_note_added"}`:                                                   "steering_note_added has no content",
		`{"type":"stage_started","stage_id":7}`:                                            "stage_id of stage_started is no string",
		`{"type":"workflow_failed","reason":["x"]}`:                                        "reason of workflow_failed is no string",
		`{"type":"workflow_started","workflow_id":{}}`:                                     "workflow_id of workflow_started is no string",
		`{"type":"steering_note_added","content":"c","created_at":"now"}`:                  "created_at of steering_note_added is not RFC 3339",
		`{"type":"steering_note_added","content":"c","created_at":"2027-01-15 08:00:00Z"}`: "is not RFC 3339",
		`{"type":"steering_note_added","content":"c","created_at":"0000-01-15T08:00:00Z"}`: "is not in years 1 to 9999",
		`{"type":"steering_note_added","content":"c","created_at":1800000000}`:             "is no string",
		`{"type":"stage_started","type_version":1,"payload_base64":"/w=="}`:                "decode event",
		`{"type":"stage_started","type_version":1,"payload_base64":""}`:                    "stage_started has no stage_id",
		`{"type":"` + strings.Repeat("x", 256) + `"}`:                                      "type has 256 bytes",
	} {
		e, err := EventFromJSON([]byte(in))
		require.ErrorIs(t, err, ErrInvalidEvent, "%.80s", in)
		require.ErrorContains(t, err, reason, "%.80s", in)
		require.Nil(t, e, "%.80s", in)
	}
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	text := func(n int) []byte {
		head, tail := `{"type":"x","a":"`, `"}`
		return []byte(head + strings.Repeat("a", n-len(head)-len(tail)) + tail)
	}
	_, err := EventFromJSON(text(MaxEventBytes))
	require.NoError(t, err)
	_, err = EventFromJSON(text(MaxEventBytes + 1))
	require.ErrorIs(t, err, ErrInvalidEvent)
	require.ErrorContains(t, err, "at most 262144")
	require.ErrorIs(t, ValidateEvent(&StageFailed{StageId: "s", Reason: strings.Repeat("a", MaxEventBytes)}), ErrInvalidEvent)
	require.ErrorIs(t, ValidateEvent(&UnknownEvent{Type: "x", Payload: make([]byte, MaxEventBytes+1)}), ErrInvalidEvent)
}

func TestEventsOfGoHostsAreValidated(t *testing.T) {
	t.Parallel()
	for _, e := range []Event{
		nil, (*UnknownEvent)(nil), (*StageStarted)(nil), (*ForeignEvent)(nil),
		&StageStarted{}, &StageStarted{StageId: "\xff"}, &SteeringNoteAdded{},
		&SteeringNoteAdded{Content: "c", CreatedAt: &timestamppb.Timestamp{Nanos: -1}},
		&StageStarted{StageId: "s", ExtraJson: []byte(`[]`)},
		&StageStarted{StageId: "s", ExtraJson: []byte(`{"stage_id":"other"}`)},
		&StageStarted{StageId: "s", ExtraJson: []byte(`{"type":"other"}`)},
		&ForeignEvent{}, &ForeignEvent{Type: "x"}, &ForeignEvent{Type: "x", Json: []byte(`{"type":"y"}`)},
		&ForeignEvent{Type: "x", Json: []byte(`"x"`)},
		&ForeignEvent{Type: "stage_started", Json: []byte(`{"type":"stage_started"}`)},
		&UnknownEvent{}, &UnknownEvent{Type: "\xff"}, &UnknownEvent{Type: "stage_started", Version: 1},
	} {
		require.ErrorIs(t, ValidateEvent(e), ErrInvalidEvent, "%T %v", e, e)
	}
}

func TestFactsThatNoJSONCanSayAreErrors(t *testing.T) {
	t.Parallel()
	for _, e := range []Event{
		nil,
		&ForeignEvent{Type: "x", Json: []byte(`{`)},
		&StageStarted{StageId: "s", ExtraJson: []byte(`{`)},
		&SteeringNoteAdded{Content: "c", CreatedAt: &timestamppb.Timestamp{Seconds: 1 << 60}},
	} {
		_, err := EventToJSON(e)
		require.Error(t, err)
	}
}

// drawJSON makes any JSON value, numbers in odd spellings too.
func drawJSON(t *rapid.T, depth int) string {
	text := func() string {
		b, err := json.Marshal(rapid.String().Draw(t, "text"))
		require.NoError(t, err)
		return string(b)
	}
	switch k := rapid.IntRange(0, 6).Draw(t, "kind"); {
	case k <= 1 && depth > 0:
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = drawJSON(t, depth-1)
			if k == 1 {
				items[i] = text() + ":" + items[i]
			}
		}
		if k == 1 {
			return "{" + strings.Join(items, ",") + "}"
		}
		return "[" + strings.Join(items, ",") + "]"
	case k <= 3:
		return text()
	}
	return rapid.SampledFrom([]string{"0", "-0", "1.0", "1.50", "1e3", "1E+3", "12345678901234567890123", "null", "true", "false"}).Draw(t, "atom")
}

func TestForeignEventsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z.]{1,20}!`).Draw(t, "type")
		members := []string{fmt.Sprintf(`"type":%q`, name)}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			members = append(members, fmt.Sprintf(`%q:%s`, rapid.StringMatching(`[A-Za-z_]{1,9}!`).Draw(t, "name"), drawJSON(t, 3)))
		}
		in := "{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}"
		spaced := new(bytes.Buffer)
		require.NoError(t, json.Indent(spaced, []byte(in), " ", "\t"))
		e, err := EventFromJSON(spaced.Bytes())
		require.NoError(t, err)
		require.Equal(t, name, e.EventType())
		encoded, err := EncodeEvent(e)
		require.NoError(t, err)
		back, err := DecodeEvent(encoded.GetType(), encoded.GetVersion(), encoded.GetPayload())
		require.NoError(t, err)
		out, err := EventToJSON(back)
		require.NoError(t, err)
		compact := new(bytes.Buffer)
		require.NoError(t, json.Compact(compact, []byte(in)))
		require.Equal(t, compact.String(), string(out))
	})
}

// TestNoFieldOfAKnownEventIsLost: known fields by meaning, others as they were spelled.
func TestNoFieldOfAKnownEventIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		extra := rapid.MapOfN(rapid.StringMatching(`x_[a-z]{1,6}`), rapid.Custom(func(t *rapid.T) string { return drawJSON(t, 2) }), 0, 4).Draw(t, "extra")
		reason := rapid.String().Draw(t, "reason")
		quoted, err := json.Marshal(reason)
		require.NoError(t, err)
		members := []string{`"type":"stage_failed"`, `"stage_id":"s"`, `"reason":` + string(quoted)}
		for name, value := range extra {
			members = append(members, fmt.Sprintf("%q:%s", name, value))
		}
		e, err := EventFromJSON([]byte("{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}"))
		require.NoError(t, err)
		require.Equal(t, reason, e.(*StageFailed).GetReason())
		b, err := EventToJSON(e)
		require.NoError(t, err)
		var out map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(b, &out))
		for name, value := range extra {
			compact := new(bytes.Buffer)
			require.NoError(t, json.Compact(compact, []byte(value)))
			require.Equal(t, compact.String(), string(out[name]))
		}
		again, err := EventFromJSON(b)
		require.NoError(t, err)
		require.True(t, proto.Equal(e.(proto.Message), again.(proto.Message)))
	})
}

func TestEveryEventTypeHasAJSONForm(t *testing.T) {
	t.Parallel()
	for _, reg := range registrations {
		if reg.stream != StreamEvents || reg.name == foreignName {
			continue
		}
		m := reg.make()
		wholeFill().message(m.ProtoReflect())
		fields := m.ProtoReflect().Descriptor().Fields()
		require.NotNil(t, fields.ByName(extraField), "%s cannot keep unknown fields", reg.name)
		m.ProtoReflect().Clear(fields.ByName(extraField))
		b, err := EventToJSON(m.(Event))
		require.NoError(t, err)
		got, err := EventFromJSON(b)
		require.NoError(t, err)
		require.True(t, proto.Equal(m, got.(proto.Message)), "%s: %s", reg.name, b)
		if required := requiredFields[reg.name]; required != "" {
			require.NotNil(t, fields.ByName(required))
		}
	}
}

func TestStoredEventsHaveTheJSONOfTheContract(t *testing.T) {
	t.Parallel()
	for text, event := range map[string]Event{
		`{"session_id":"s","sequence":12,"recorded_at":"2027-01-15T08:00:00.000000001Z","event":{"type":"stage_started","stage_id":"<a>"}}`: &StageStarted{StageId: "<a>"},
		`{"session_id":"s","sequence":12,"recorded_at":"2027-01-15T08:00:00.000000001Z","event":{"type":"x","n":1.0}}`:                      &ForeignEvent{Type: "x", Json: []byte(`{"type":"x","n":1.0}`)},
		`{"session_id":"s","sequence":12,"recorded_at":"2027-01-15T08:00:00.000000001Z","event":{"type":"x","type_version":3,"payload_base64":"` +
			base64.StdEncoding.EncodeToString([]byte("new")) + `"}}`: &UnknownEvent{Type: "x", Version: 3, Payload: []byte("new")},
	} {
		encoded, err := EncodeEvent(event)
		require.NoError(t, err)
		stored := &StoredEvent{SessionId: "s", Sequence: 12, RecordedAt: &timestamppb.Timestamp{Seconds: 1_800_000_000, Nanos: 1}, Event: encoded}
		b, err := StoredEventToJSON(stored)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
		got, err := StoredEventFromJSON(b)
		require.NoError(t, err)
		require.True(t, proto.Equal(stored, got), "%v", got)
	}
	got, err := StoredEventFromJSON([]byte(`{"type":"session_event","event":{"type":"x"},"sequence":1,"session_id":"s","recorded_at":null}`))
	require.NoError(t, err)
	require.Nil(t, got.GetRecordedAt())
	b, err := StoredEventToJSON(got)
	require.NoError(t, err)
	want := `{"session_id":"s","sequence":1,"event":{"type":"x"}}`
	require.Equal(t, want, string(b))
}

func TestBadStoredEventsAreRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `[]`, `{"type":"stage_started","stage_id":"s"}`,
		`{"sequence":1,"event":{"type":"x"}}`, `{"session_id":"a b","sequence":1,"event":{"type":"x"}}`,
		`{"session_id":"s","event":{"type":"x"}}`, `{"session_id":"s","sequence":0,"event":{"type":"x"}}`,
		`{"session_id":"s","sequence":-1,"event":{"type":"x"}}`, `{"session_id":"s","sequence":"1","event":{"type":"x"}}`,
		`{"session_id":"s","sequence":1}`, `{"session_id":"s","sequence":1,"event":null}`, `{"session_id":"s","sequence":1,"event":{}}`,
		`{"session_id":"s","sequence":1,"recorded_at":"x","event":{"type":"x"}}`,
		`{"session_id":"s","sequence":1,"recorded_at":5,"event":{"type":"x"}}`,
	} {
		_, err := StoredEventFromJSON([]byte(in))
		require.ErrorIs(t, err, ErrInvalidEvent, in)
	}
	_, err := StoredEventToJSON(&StoredEvent{Event: &EncodedEvent{Type: "stage_started", Version: 1, Payload: []byte{0xff}}})
	require.Error(t, err)
	_, err = StoredEventToJSON(&StoredEvent{Event: &EncodedEvent{Type: "x"}, RecordedAt: &timestamppb.Timestamp{Nanos: -1}})
	require.Error(t, err)
}

func FuzzEventFromJSON(f *testing.F) {
	f.Add([]byte(`{"type":"stage_completed","stage_id":"a","x":1.0}`))
	f.Add([]byte(`{"type":"zoo","b":1e3}`))
	f.Add([]byte(`{"type":"x","type_version":2,"payload_base64":"AA=="}`))
	f.Add([]byte(`{"type":"steering_note_added","content":"c","created_at":"2027-01-15T08:00:00Z"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := EventFromJSON(in)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidEvent)
			return
		}
		require.NoError(t, ValidateEvent(e))
		b, err := EventToJSON(e)
		require.NoError(t, err)
		require.NotContains(t, string(b), "\n")
		again, err := EventFromJSON(b)
		require.NoError(t, err)
		second, err := EventToJSON(again)
		require.NoError(t, err)
		require.Equal(t, string(b), string(second))
	})
}

func BenchmarkEventFromJSON(b *testing.B) {
	in := []byte(`{"type":"stage_completed","stage_id":"build","summary":"the stage did its work","next_stage_id":"deploy"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EventFromJSON(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEventToJSON(b *testing.B) {
	e := &StageCompleted{StageId: "build", Summary: "the stage did its work", NextStageId: "deploy"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EventToJSON(e); err != nil {
			b.Fatal(err)
		}
	}
}
