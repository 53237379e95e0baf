package messages

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// MaxEventBytes bounds a domain event, in its JSON form and as a payload.
const MaxEventBytes = 256 << 10

// ErrInvalidEvent is wrapped by every error about an event that may not be recorded.
var ErrInvalidEvent = errors.New("invalid event")

// requiredFields lists, by the type's name, what an event means nothing without. Everything else may be absent: a host's
// fact is not refused for a label that nobody reads.
var requiredFields = map[string]protoreflect.Name{
	"stage_started":       "stage_id",
	"stage_completed":     "stage_id",
	"stage_failed":        "stage_id",
	"stage_cancelled":     "stage_id",
	"steering_note_added": "content",
}

// extraField is the field of an event that keeps what its JSON form had beyond the schema.
const extraField protoreflect.Name = "extra_json"

// ValidateEvent says whether e may be recorded. Only what comes in is validated: an event of the log is a fact, and replay
// asks nothing. Errors: ErrInvalidEvent.
func ValidateEvent(e Event) error {
	if u, ok := e.(*UnknownEvent); ok {
		return validateUnknown(u)
	}
	m, ok := e.(proto.Message)
	if !ok || !m.ProtoReflect().IsValid() {
		return fmt.Errorf("%w: it is nil", ErrInvalidEvent)
	}
	if err := checkEventSize(proto.Size(m)); err != nil {
		return err
	}
	if f, ok := e.(*ForeignEvent); ok {
		return validateForeign(f)
	}
	return validateKnown(e.EventType(), m.ProtoReflect())
}

func validateUnknown(u *UnknownEvent) error {
	if u == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalidEvent)
	}
	if err := checkEventType(u.Type); err != nil {
		return err
	}
	if reg, ok := byName[u.Type]; ok && reg.stream == StreamEvents && reg.version == u.Version {
		return fmt.Errorf("%w: %s version %d is known", ErrInvalidEvent, u.Type, u.Version)
	}
	return checkEventSize(len(u.Payload))
}

func validateForeign(f *ForeignEvent) error {
	if err := checkEventType(f.GetType()); err != nil {
		return err
	}
	// Else a host could record a fact that the reducer does not see.
	if knownEvent(f.GetType()) {
		return fmt.Errorf("%w: %s is not foreign", ErrInvalidEvent, f.GetType())
	}
	members, err := parseMembers(f.GetJson())
	if err != nil {
		return err
	}
	if name, err := memberType(members); err != nil || name != f.GetType() {
		return fmt.Errorf("%w: the type of its JSON is not %q", ErrInvalidEvent, f.GetType())
	}
	return nil
}

func validateKnown(name string, m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	if required := requiredFields[name]; required != "" && !m.Has(fields.ByName(required)) {
		return fmt.Errorf("%w: %s has no %s", ErrInvalidEvent, name, required)
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		switch v := m.Get(field).Interface().(type) {
		case string:
			if !utf8.ValidString(v) {
				return fmt.Errorf("%w: %s of %s is not UTF-8", ErrInvalidEvent, field.Name(), name)
			}
		case protoreflect.Message:
			if t, ok := v.Interface().(*timestamppb.Timestamp); ok && t.CheckValid() != nil {
				return fmt.Errorf("%w: %s of %s is no time", ErrInvalidEvent, field.Name(), name)
			}
		}
	}
	return validateExtra(name, m)
}

// validateExtra makes sure that no field has two values.
func validateExtra(name string, m protoreflect.Message) error {
	field := m.Descriptor().Fields().ByName(extraField)
	if !m.Has(field) {
		return nil
	}
	members, err := parseMembers(m.Get(field).Bytes())
	if err != nil {
		return fmt.Errorf("%s of %s: %w", extraField, name, err)
	}
	for _, member := range members {
		if member.name == "type" || schemaField(m.Descriptor(), member.name) != nil {
			return fmt.Errorf("%w: %s of %s holds %s, which is a field", ErrInvalidEvent, extraField, name, member.name)
		}
	}
	return nil
}

// schemaField finds the field that a name of the JSON form stands for; nil if there is none.
func schemaField(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if name == string(extraField) {
		return nil
	}
	return d.Fields().ByName(protoreflect.Name(name))
}

// knownEvent says whether the JSON form of a type has a schema.
func knownEvent(name string) bool {
	reg, ok := byName[name]
	return ok && reg.stream == StreamEvents && name != foreignName
}

func checkEventType(name string) error {
	if name == "" || len(name) > MaxTypeName {
		return fmt.Errorf("%w: its type has %d bytes, want 1 to %d", ErrInvalidEvent, len(name), MaxTypeName)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("%w: its type is not UTF-8", ErrInvalidEvent)
	}
	return nil
}

func checkEventSize(n int) error {
	if n > MaxEventBytes {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrInvalidEvent, n, MaxEventBytes)
	}
	return nil
}
