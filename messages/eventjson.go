package messages

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The JSON form of domain events, as docs/protocol.md shows it: {"type":"stage_completed","stage_id":…}. It is driven by the
// schema: the names are those of the protobuf fields, in their order.
//
//   - A name that the schema of a known type does not have is ignored by everything, kept in extra_json and given back after
//     the others. null is the same as absent; of a name that comes twice the last one holds.
//   - A type without a schema becomes a ForeignEvent that keeps the object with its names, order and number spellings; only
//     white space between them goes.
//   - An event of a newer build that this one cannot read is {"type":…,"type_version":…,"payload_base64":…}, these three in
//     this order and nothing else. Read back, it is the same UnknownEvent, or the event itself if this build knows it.

// Names of the form of an UnknownEvent.
const (
	typeMember    = "type"
	versionMember = "type_version"
	payloadMember = "payload_base64"
)

// EventFromJSON reads an event's JSON form and validates it. Errors: ErrInvalidEvent.
func EventFromJSON(b []byte) (Event, error) {
	if err := checkEventSize(len(b)); err != nil {
		return nil, err
	}
	members, err := parseMembers(b)
	if err != nil {
		return nil, err
	}
	name, err := memberType(members)
	if err != nil {
		return nil, err
	}
	if err := checkEventType(name); err != nil {
		return nil, err
	}
	if u, ok := opaqueForm(name, members); ok {
		return fromOpaque(u)
	}
	if knownEvent(name) {
		return knownFromJSON(name, members)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	return &ForeignEvent{Type: name, Json: compact.Bytes()}, nil
}

// EventToJSON writes an event's JSON form, on one line. An error means that the event cannot have come from EventFromJSON.
func EventToJSON(e Event) ([]byte, error) {
	w := newObjectWriter()
	if u, ok := e.(*UnknownEvent); ok {
		w.opaque(u)
		return w.close(), nil
	}
	if f, ok := e.(*ForeignEvent); ok {
		var compact bytes.Buffer
		if err := json.Compact(&compact, f.GetJson()); err != nil {
			return nil, fmt.Errorf("write event %q as JSON: %w", f.GetType(), err)
		}
		return compact.Bytes(), nil
	}
	m, ok := e.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("write event as JSON: %T is no protobuf message", e)
	}
	w.text(typeMember, e.EventType())
	if err := w.fields(m.ProtoReflect()); err != nil {
		return nil, fmt.Errorf("write event %q as JSON: %w", e.EventType(), err)
	}
	return w.close(), nil
}

// StoredEventFromJSON reads {"session_id":…,"sequence":…,"recorded_at":…,"event":{…}}; recorded_at may be absent, other names are
// ignored. Errors: ErrInvalidEvent.
func StoredEventFromJSON(b []byte) (*StoredEvent, error) {
	members, err := parseMembers(b)
	if err != nil {
		return nil, err
	}
	var stored StoredEvent
	var event json.RawMessage
	for _, m := range members {
		var err error
		switch m.name {
		case "session_id":
			err = json.Unmarshal(m.raw, &stored.SessionId)
		case "sequence":
			err = json.Unmarshal(m.raw, &stored.Sequence)
		case "recorded_at":
			var at string
			if err = json.Unmarshal(m.raw, &at); err == nil && !m.null() {
				stored.RecordedAt, err = timeFromJSON(at)
			}
		case "event":
			event = m.raw
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalidEvent, m.name, err)
		}
	}
	if _, err := ParseSessionID(stored.GetSessionId()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	if stored.GetSequence() == 0 {
		return nil, fmt.Errorf("%w: sequence is missing or 0", ErrInvalidEvent)
	}
	e, err := EventFromJSON(event)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", stored.GetSequence(), err)
	}
	if stored.Event, err = EncodeEvent(e); err != nil {
		return nil, fmt.Errorf("event %d: %w", stored.GetSequence(), err)
	}
	return &stored, nil
}

// StoredEventToJSON writes what StoredEventFromJSON reads, on one line.
func StoredEventToJSON(s *StoredEvent) ([]byte, error) {
	e, err := DecodeEvent(s.GetEvent().GetType(), s.GetEvent().GetVersion(), s.GetEvent().GetPayload())
	if err != nil {
		return nil, fmt.Errorf("write event %d as JSON: %w", s.GetSequence(), err)
	}
	event, err := EventToJSON(e)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", s.GetSequence(), err)
	}
	w := newObjectWriter()
	w.text("session_id", s.GetSessionId())
	w.number("sequence", s.GetSequence())
	if s.GetRecordedAt() != nil {
		if err := w.time("recorded_at", s.GetRecordedAt()); err != nil {
			return nil, fmt.Errorf("write event %d as JSON: %w", s.GetSequence(), err)
		}
	}
	w.raw("event", event)
	return w.close(), nil
}

// opaqueForm reads the form of an UnknownEvent; false if it is another one. It must be spelled exactly as EventToJSON does,
// else a host's event that only looks like it would not be given back as it came.
func opaqueForm(name string, members []member) (*UnknownEvent, bool) {
	if len(members) != 3 || members[0].name != typeMember || members[1].name != versionMember || members[2].name != payloadMember {
		return nil, false
	}
	u := &UnknownEvent{Type: name}
	if json.Unmarshal(members[1].raw, &u.Version) != nil || json.Unmarshal(members[2].raw, &u.Payload) != nil {
		return nil, false
	}
	given, spelled := newObjectWriter(), newObjectWriter()
	for _, m := range members {
		given.raw(m.name, m.raw)
	}
	spelled.opaque(u)
	return u, bytes.Equal(given.close(), spelled.close())
}

// fromOpaque gives u, or the event that it is if this build knows its type and version.
func fromOpaque(u *UnknownEvent) (Event, error) {
	e, err := DecodeEvent(u.Type, u.Version, u.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	if err := ValidateEvent(e); err != nil {
		return nil, err
	}
	return e, nil
}

func knownFromJSON(name string, members []member) (Event, error) {
	message := byName[name].make()
	m := message.ProtoReflect()
	extra := newObjectWriter()
	for _, member := range members {
		field := schemaField(m.Descriptor(), member.name)
		switch {
		case member.name == typeMember:
		case field == nil:
			extra.raw(member.name, member.raw)
		case member.null():
			m.Clear(field)
		default:
			v, err := fieldFromJSON(field, member.raw)
			if err != nil {
				return nil, fmt.Errorf("%w: %s of %s %w", ErrInvalidEvent, member.name, name, err)
			}
			m.Set(field, v)
		}
	}
	if extra.any {
		m.Set(m.Descriptor().Fields().ByName(extraField), protoreflect.ValueOfBytes(extra.close()))
	}
	if err := validateKnown(name, m); err != nil {
		return nil, err
	}
	return message.(Event), nil
}
