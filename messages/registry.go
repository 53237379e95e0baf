package messages

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// registration ties a name in the journal to a Go type. The name is given, never reflected: renaming a Go type changes no
// record.
type registration struct {
	name    string
	version uint32
	stream  Stream
	make    func() proto.Message
}

// registrations lists every type that the journal may hold. A test fails when an implementer of Event or LedgerRecord is
// missing here.
var registrations = []registration{
	{"workflow_started", 1, StreamEvents, func() proto.Message { return new(WorkflowStarted) }},
	{"workflow_completed", 1, StreamEvents, func() proto.Message { return new(WorkflowCompleted) }},
	{"workflow_failed", 1, StreamEvents, func() proto.Message { return new(WorkflowFailed) }},
	{"orchestration_paused", 1, StreamEvents, func() proto.Message { return new(OrchestrationPaused) }},
	{"orchestration_resumed", 1, StreamEvents, func() proto.Message { return new(OrchestrationResumed) }},
	{"stage_started", 1, StreamEvents, func() proto.Message { return new(StageStarted) }},
	{"stage_completed", 1, StreamEvents, func() proto.Message { return new(StageCompleted) }},
	{"stage_failed", 1, StreamEvents, func() proto.Message { return new(StageFailed) }},
	{"stage_cancelled", 1, StreamEvents, func() proto.Message { return new(StageCancelled) }},
	{"steering_note_added", 1, StreamEvents, func() proto.Message { return new(SteeringNoteAdded) }},
	{foreignName, 1, StreamEvents, func() proto.Message { return new(ForeignEvent) }},
	{"session_configured", 1, StreamLedger, func() proto.Message { return new(SessionConfigured) }},
	{"turn_admitted", 1, StreamLedger, func() proto.Message { return new(TurnAdmitted) }},
	{"turn_returned", 1, StreamLedger, func() proto.Message { return new(TurnReturned) }},
	{"turn_injected", 1, StreamLedger, func() proto.Message { return new(TurnInjected) }},
	{"slot_awaited", 1, StreamLedger, func() proto.Message { return new(SlotAwaited) }},
	{"run_started", 1, StreamLedger, func() proto.Message { return new(RunStarted) }},
	{"tools_launched", 1, StreamLedger, func() proto.Message { return new(ToolsLaunched) }},
	{"run_suspended", 1, StreamLedger, func() proto.Message { return new(RunSuspended) }},
	{"run_ended", 1, StreamLedger, func() proto.Message { return new(RunEnded) }},
	{"turn_ended", 1, StreamLedger, func() proto.Message { return new(TurnEnded) }},
	{"abort_requested", 1, StreamLedger, func() proto.Message { return new(AbortRequested) }},
	{"output_reserved", 1, StreamLedger, func() proto.Message { return new(OutputReserved) }},
	{"session_alive", 1, StreamLedger, func() proto.Message { return new(SessionAlive) }},
	{"finals_acked", 1, StreamLedger, func() proto.Message { return new(FinalsAcked) }},
	{"ledger_checkpoint", 1, StreamLedger, func() proto.Message { return new(LedgerCheckpoint) }},
}

// foreignName is the journal's name of every ForeignEvent; the host's type name is inside.
const foreignName = "foreign_event"

var (
	byName = indexByName()
	byType = indexByType()
)

// ErrUnknownType is wrapped when a ledger record has a type or version that this build does not know: the session must not
// be activated by it.
var ErrUnknownType = errors.New("unknown record type")

// EncodeEvent writes e for the journal or the network.
func EncodeEvent(e Event) (*EncodedEvent, error) {
	if u, ok := e.(*UnknownEvent); ok {
		return &EncodedEvent{Type: u.Type, Version: u.Version, Payload: u.Payload}, nil
	}
	m, ok := e.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("encode event: %T is no protobuf message", e)
	}
	name, version, payload, err := encode(m)
	if err != nil {
		return nil, err
	}
	return &EncodedEvent{Type: name, Version: version, Payload: payload}, nil
}

// DecodeEvent reads what EncodeEvent wrote. A type or version that this build does not know becomes an UnknownEvent that
// shares payload. An error means that the payload of a known type is damaged.
func DecodeEvent(name string, version uint32, payload []byte) (Event, error) {
	reg, ok := byName[name]
	if !ok || reg.stream != StreamEvents || reg.version != version {
		return &UnknownEvent{Type: name, Version: version, Payload: payload}, nil
	}
	m := reg.make()
	if err := proto.Unmarshal(payload, m); err != nil {
		return nil, fmt.Errorf("decode event %q: %w", name, err)
	}
	return m.(Event), nil
}

// EncodeLedger writes r for the journal.
func EncodeLedger(r LedgerRecord) (name string, version uint32, payload []byte, err error) {
	return encode(r)
}

// DecodeLedger reads what EncodeLedger wrote. Errors: ErrUnknownType for a type or version of a newer build, else damage.
func DecodeLedger(name string, version uint32, payload []byte) (LedgerRecord, error) {
	reg, ok := byName[name]
	if !ok || reg.stream != StreamLedger || reg.version != version {
		return nil, fmt.Errorf("decode ledger record %q version %d: %w", name, version, ErrUnknownType)
	}
	m := reg.make()
	if err := proto.Unmarshal(payload, m); err != nil {
		return nil, fmt.Errorf("decode ledger record %q: %w", name, err)
	}
	return m.(LedgerRecord), nil
}

func encode(m proto.Message) (string, uint32, []byte, error) {
	reg, ok := byType[reflect.TypeOf(m)]
	if !ok {
		return "", 0, nil, fmt.Errorf("encode %T: %w", m, ErrUnknownType)
	}
	payload, err := proto.Marshal(m)
	if err != nil {
		return "", 0, nil, fmt.Errorf("encode %q: %w", reg.name, err)
	}
	return reg.name, reg.version, payload, nil
}

// indexByType goes by Go types: descriptors do not exist yet when package variables are made.
func indexByType() map[reflect.Type]registration {
	index := make(map[reflect.Type]registration, len(registrations))
	for _, reg := range registrations {
		index[reflect.TypeOf(reg.make())] = reg
	}
	return index
}

func indexByName() map[string]registration {
	index := make(map[string]registration, len(registrations))
	for _, reg := range registrations {
		index[reg.name] = reg
	}
	return index
}
