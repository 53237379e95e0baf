package messages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// implementers scans the package's source for the marker methods: marker → names of the types that have it. Source, not a
// list, so that a type that somebody adds is found.
func implementers(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := make(map[string][]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !strings.HasPrefix(fn.Name.Name, "is") || len(fn.Body.List) != 0 {
				continue
			}
			star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
			require.True(t, ok, "%s must have a pointer receiver", fn.Name.Name)
			found[fn.Name.Name] = append(found[fn.Name.Name], star.X.(*ast.Ident).Name)
		}
	}
	return found
}

// newByName makes an empty message of a Go type's name.
func newByName(t *testing.T, name string) proto.Message {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("correx.v1." + name))
	require.NoError(t, err)
	return mt.New().Interface()
}

func TestEveryMarkerIsUsed(t *testing.T) {
	t.Parallel()
	markers := slices.Sorted(mapKeys(implementers(t)))
	require.Equal(t, []string{
		"isCommand", "isEvent", "isIntent", "isLedgerRecord", "isNotification", "isReply", "isRouterEvent",
	}, markers)
}

func TestEveryImplementerRoundTrips(t *testing.T) {
	t.Parallel()
	for marker, names := range implementers(t) {
		for _, name := range names {
			if name == "UnknownEvent" { // no message; has its own tests
				continue
			}
			t.Run(marker+"/"+name, func(t *testing.T) {
				t.Parallel()
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				fill := randomFill(seed)
				for range 50 {
					in := newByName(t, name)
					fill.message(in.ProtoReflect())
					b, err := proto.Marshal(in)
					require.NoError(t, err)
					out := newByName(t, name)
					require.NoError(t, proto.Unmarshal(b, out))
					require.True(t, proto.Equal(in, out), "%v\n%v", in, out)
				}
			})
		}
	}
}

func TestEveryEventIsRegisteredAndRoundTrips(t *testing.T) {
	t.Parallel()
	fill := randomFill(1)
	for _, name := range implementers(t)["isEvent"] {
		if name == "UnknownEvent" {
			continue
		}
		in := newByName(t, name)
		fill.message(in.ProtoReflect())
		event, ok := in.(Event)
		require.True(t, ok)
		encoded, err := EncodeEvent(event)
		require.NoError(t, err, "%s is not registered", name)
		require.NotZero(t, encoded.GetVersion())
		if _, foreign := event.(*ForeignEvent); !foreign {
			require.Equal(t, event.EventType(), encoded.GetType())
		}
		out, err := DecodeEvent(encoded.GetType(), encoded.GetVersion(), encoded.GetPayload())
		require.NoError(t, err)
		require.IsType(t, event, out)
		require.True(t, proto.Equal(in, out.(proto.Message)))
	}
}

func TestEveryLedgerRecordIsRegisteredAndRoundTrips(t *testing.T) {
	t.Parallel()
	fill := randomFill(2)
	for _, goName := range implementers(t)["isLedgerRecord"] {
		in, ok := newByName(t, goName).(LedgerRecord)
		require.True(t, ok)
		fill.message(in.ProtoReflect())
		name, version, payload, err := EncodeLedger(in)
		require.NoError(t, err, "%s is not registered", goName)
		out, err := DecodeLedger(name, version, payload)
		require.NoError(t, err)
		require.IsType(t, in, out)
		require.True(t, proto.Equal(in, out))
	}
}

func TestEveryRegistrationHasAnImplementer(t *testing.T) {
	t.Parallel()
	found := implementers(t)
	marked := append(slices.Clone(found["isEvent"]), found["isLedgerRecord"]...)
	require.Len(t, registrations, len(marked)-1, "all but UnknownEvent")
	require.Len(t, byName, len(registrations), "a name comes twice")
	require.Len(t, byType, len(registrations), "a type comes twice")
	for _, reg := range registrations {
		m := reg.make()
		require.Contains(t, marked, reflect.TypeOf(m).Elem().Name())
		_, event := m.(Event)
		require.Equal(t, event, reg.stream == StreamEvents, reg.name)
	}
}

// TestRouterWritesOnlySteeringNotes is I2 as the compiler sees it.
func TestRouterWritesOnlySteeringNotes(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"SteeringNoteAdded"}, implementers(t)["isRouterEvent"])
}

func TestDeliveryIntentHoldsEveryIntent(t *testing.T) {
	t.Parallel()
	var held []string
	body := new(DeliveryIntent).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields()
	for i := range body.Len() {
		held = append(held, string(body.Get(i).Message().Name()))
	}
	require.ElementsMatch(t, held, implementers(t)["isIntent"])
}

func TestEveryIntentCanBeNumbered(t *testing.T) {
	t.Parallel()
	for _, name := range implementers(t)["isIntent"] {
		body, ok := newByName(t, name).(Intent)
		require.True(t, ok)
		d := NewIntent(NewKey("s"), 4, body)
		require.Equal(t, "default/s#4", fmt.Sprintf("%s/%s#%d", d.GetTenantId(), d.GetSessionId(), d.GetSeq()))
		require.Same(t, body, d.Intent(), name)
	}
	require.Nil(t, new(DeliveryIntent).Intent(), "of a newer build")
}

func TestLedgerRefusesUnknownTypesAndVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		version uint32
	}{{"run_started", 2}, {"run_paused", 1}, {"stage_started", 1}} {
		_, err := DecodeLedger(c.name, c.version, nil)
		require.ErrorIs(t, err, ErrUnknownType)
	}
	_, err := DecodeLedger("run_started", 1, []byte{0xff})
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrUnknownType, "damage is not a newer build")
}

func TestUnknownEventsPassByteForByte(t *testing.T) {
	t.Parallel()
	payload := []byte{0xff, 0, 1, 0xfe}
	for _, c := range []struct {
		name    string
		version uint32
	}{{"stage_started", 2}, {"stage_skipped", 1}, {"turn_admitted", 1}, {"", 0}} {
		e, err := DecodeEvent(c.name, c.version, payload)
		require.NoError(t, err)
		require.Equal(t, &UnknownEvent{Type: c.name, Version: c.version, Payload: payload}, e)
		require.Equal(t, c.name, e.EventType())
		encoded, err := EncodeEvent(e)
		require.NoError(t, err)
		require.True(t, proto.Equal(&EncodedEvent{Type: c.name, Version: c.version, Payload: payload}, encoded))
	}
	_, err := DecodeEvent("stage_started", 1, []byte{0xff})
	require.Error(t, err, "damage of a known type is told")
}

// TestNewerFieldsOfKnownEventsPass: a payload written by a newer build keeps the fields that this one does not have.
func TestNewerFieldsOfKnownEventsPass(t *testing.T) {
	t.Parallel()
	payload := append([]byte("\x0a\x01a"), "\xa2\x06\x05later"...) // field 100
	e, err := DecodeEvent("stage_started", 1, payload)
	require.NoError(t, err)
	encoded, err := EncodeEvent(e)
	require.NoError(t, err)
	require.Equal(t, payload, encoded.GetPayload())
}
