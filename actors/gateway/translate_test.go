package gateway

import (
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/correx/correx-actors/messages"
	"github.com/correx/correx-actors/messages/protocol"
)

// closing is a connection of which only the end is seen.
func closing(at chan<- time.Time) net.Conn { return closeOnly{at: at} }

type closeOnly struct {
	net.Conn
	at chan<- time.Time
}

func (c closeOnly) Close() error {
	c.at <- time.Now()
	return nil
}

// fill sets every field of a message, of a oneof the one that is set already.
func fill[M proto.Message](m M) M {
	fillMessage(m.ProtoReflect())
	return m
}

func fillMessage(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if one := field.ContainingOneof(); one != nil && !one.IsSynthetic() && m.WhichOneof(one) != field {
			continue
		}
		switch {
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			fillMessage(m.Mutable(field).List().AppendMutable().Message())
		case field.IsList():
			m.Mutable(field).List().Append(protoreflect.ValueOfString(string(field.Name())))
		case field.Kind() == protoreflect.MessageKind:
			fillMessage(m.Mutable(field).Message())
		default:
			m.Set(field, value(field))
		}
	}
}

func value(field protoreflect.FieldDescriptor) protoreflect.Value {
	number := field.Number()
	switch field.Default().Interface().(type) {
	case string:
		return protoreflect.ValueOfString(string(field.Name()))
	case bool:
		return protoreflect.ValueOfBool(true)
	case uint32:
		return protoreflect.ValueOfUint32(uint32(number)) //nolint:gosec // small
	case uint64:
		return protoreflect.ValueOfUint64(uint64(number)) //nolint:gosec // small
	case int64:
		return protoreflect.ValueOfInt64(int64(number))
	case int32:
		return protoreflect.ValueOfInt32(int32(number))
	case []byte:
		return protoreflect.ValueOfBytes([]byte(field.Name()))
	}
	panic(fmt.Sprintf("field %s has a kind of its own", field.FullName()))
}

// unset lists the fields of a frame that are zero.
func unset(v reflect.Value, path string) (names []string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return unset(v.Elem(), path)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			names = append(names, unset(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
		return names
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Index(0).Kind() == reflect.Struct:
		return unset(v.Index(0), path)
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}

// later are parts of the contract that nothing fills in this release.
var later = []string{".Resume", ".PendingCompaction"}

func requireWhole(t *testing.T, f any) {
	t.Helper()
	for _, name := range unset(reflect.ValueOf(f), "") {
		known := false
		for _, suffix := range later {
			known = known || len(name) >= len(suffix) && name[len(name)-len(suffix):] == suffix
		}
		require.True(t, known, "%T%s is lost on the way", f, name)
	}
}

func TestEveryAnswerReachesTheWireWhole(t *testing.T) {
	t.Parallel()
	key := messages.NewKey("s1")
	for _, reply := range []messages.Reply{
		fill(&messages.SessionStarted{}), fill(&messages.TurnAccepted{}), fill(&messages.EventsRecorded{}),
		fill(&messages.Subscribed{}), fill(&messages.Unsubscribed{}), fill(&messages.SessionState{}),
		fill(&messages.TurnFound{}), fill(&messages.Aborted{}), fill(&messages.Failure{}),
		fill(&messages.Explanation{}), fill(&messages.Withdrawn{}),
	} {
		requireWhole(t, answerFrame("id", key, reply))
	}
	requireWhole(t, contextPack(fill(&messages.PackView{})))
	requireWhole(t, resyncFrame(fill(&messages.Resync{})))
	unexpected, ok := answerFrame("id", key, &messages.ContextExplained{}).(*protocol.Error)
	require.True(t, ok)
	require.Equal(t, protocol.CodeInternal, unexpected.Code)
}

func TestEveryItemReachesTheWireWhole(t *testing.T) {
	t.Parallel()
	one := new(messages.DeliveryIntent).ProtoReflect().Descriptor().Oneofs().ByName("body")
	require.NotZero(t, one.Fields().Len())
	for i := range one.Fields().Len() {
		m := new(messages.DeliveryIntent)
		field := one.Fields().Get(i)
		m.ProtoReflect().Set(field, m.ProtoReflect().NewField(field))
		f := itemFrame(fill(m))
		require.NotNil(t, f, field.Name())
		require.Equal(t, string(field.Name()), f.FrameType())
		requireWhole(t, f)
	}
	require.Nil(t, itemFrame(new(messages.DeliveryIntent)))
}

// missing lists the fields of a message that are not set.
func missing(m proto.Message) (names []string) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !m.ProtoReflect().Has(fields.Get(i)) {
			names = append(names, string(fields.Get(i).Name()))
		}
	}
	return names
}

func TestEveryFrameReachesTheSessionWhole(t *testing.T) {
	t.Parallel()
	n, m := uint64(3), uint32(4)
	input := protocol.ChatInput{
		ID: "id", SessionID: "s1", Text: "t", Mode: "CHAT", QueueMode: "collect", IdempotencyKey: "k",
		Resume: &protocol.ResumeToken{Engine: "e", Token: "t"}, Sender: "s", Model: "m",
		Attachments: []protocol.Attachment{{Name: "n", MediaType: "t", Data: []byte("d")}},
	}
	for _, f := range []protocol.ClientFrame{
		&protocol.StartSession{ID: "id", SessionID: "s1", Config: &protocol.SessionConfig{
			Model: "m", QueueMode: "collect", ConversationKeepLast: &m, TokenBudget: &m,
		}},
		&input,
		&protocol.Explain{ChatInput: input},
		&protocol.Subscribe{ID: "id", SessionID: "s1", AfterSeq: &n, Events: true, AfterEvent: &n},
		&protocol.Unsubscribe{ID: "id", SessionID: "s1"},
		&protocol.Abort{ID: "id", SessionID: "s1", Scope: "turn", TurnID: "t", RunID: "r", Reason: "why"},
		&protocol.Withdraw{ID: "id", SessionID: "s1", TurnID: "t"},
		&protocol.GetTurn{ID: "id", SessionID: "s1", TurnID: "t", IdempotencyKey: "k"},
		&protocol.GetSession{ID: "id", SessionID: "s1"},
		&protocol.RecordEvents{
			ID: "id", SessionID: "s1", Events: []json.RawMessage{json.RawMessage(`{"type":"custom"}`)}, ExpectedSequence: &n,
		},
		&protocol.Ack{ID: "id", SessionID: "s1", Seq: 3},
	} {
		require.Empty(t, unset(reflect.ValueOf(f), ""), "the test fills all of %T", f)
		in, refusal := commandOf(f)
		require.Nil(t, refusal)
		require.Equal(t, "id", in.id)
		require.Equal(t, messages.NewKey("s1"), in.key)
		switch cmd := in.cmd.(type) {
		case *messages.Subscribe:
			require.Equal(t, []string{"keep"}, missing(cmd), "a subscribe replaces the one before")
			require.Equal(t, &n, in.afterEvent)
		case *messages.SubmitTurn:
			require.Equal(t, []string{"task_result"}, missing(cmd), "only hosts bring results of tasks")
		case *messages.Explain:
			require.Equal(t, []string{"subscribe", "task_result"}, missing(cmd.GetTurn()))
		default:
			require.Empty(t, missing(cmd), "%T", cmd)
		}
	}
	_, refusal := commandOf(&protocol.Ping{ID: "id"})
	require.NotNil(t, refusal)
}
