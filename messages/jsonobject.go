package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// member is one name and value of a JSON object.
type member struct {
	name string
	raw  json.RawMessage
}

// null: the same as absent.
func (m member) null() bool { return string(m.raw) == "null" }

// parseMembers reads b as one JSON object and keeps the order of its members. Errors: ErrInvalidEvent.
func parseMembers(b []byte) ([]member, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrInvalidEvent)
	}
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(b) {
		return nil, fmt.Errorf("%w: it is no JSON object", ErrInvalidEvent)
	}
	var members []member
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	for dec.More() {
		var m member
		name, err := dec.Token()
		if err == nil {
			err = dec.Decode(&m.raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
		}
		m.name, _ = name.(string)
		members = append(members, m)
	}
	return members, nil
}

// memberType gives the value of "type".
func memberType(members []member) (string, error) {
	var raw json.RawMessage
	for _, m := range members {
		if m.name == typeMember {
			raw = m.raw
		}
	}
	var name string
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("%w: it has no type", ErrInvalidEvent)
	}
	if err := json.Unmarshal(raw, &name); err != nil {
		return "", fmt.Errorf("%w: its type: %w", ErrInvalidEvent, err)
	}
	return name, nil
}

// fieldFromJSON reads a field's value. The error goes on from the field's name.
func fieldFromJSON(field protoreflect.FieldDescriptor, raw json.RawMessage) (protoreflect.Value, error) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return protoreflect.Value{}, errors.New("is no string")
	}
	if field.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(s), nil
	}
	t, err := timeFromJSON(s)
	if err != nil {
		return protoreflect.Value{}, err
	}
	return protoreflect.ValueOfMessage(t.ProtoReflect()), nil
}

// objectWriter writes a JSON object member by member, without HTML escaping.
type objectWriter struct {
	buf bytes.Buffer
	enc *json.Encoder
	any bool
}

func newObjectWriter() *objectWriter {
	w := new(objectWriter)
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
	w.buf.WriteByte('{')
	return w
}

func (w *objectWriter) close() []byte {
	w.buf.WriteByte('}')
	return w.buf.Bytes()
}

func (w *objectWriter) name(name string) {
	if w.any {
		w.buf.WriteByte(',')
	}
	w.any = true
	w.quoted(name)
	w.buf.WriteByte(':')
}

func (w *objectWriter) quoted(s string) {
	_ = w.enc.Encode(s)             // a string into memory cannot fail
	w.buf.Truncate(w.buf.Len() - 1) // the newline
}

func (w *objectWriter) text(name, value string) {
	w.name(name)
	w.quoted(value)
}

func (w *objectWriter) number(name string, value uint64) {
	w.name(name)
	w.buf.Write(strconv.AppendUint(w.buf.AvailableBuffer(), value, 10))
}

// raw writes a value that is known to be JSON.
func (w *objectWriter) raw(name string, value json.RawMessage) {
	w.name(name)
	_ = json.Compact(&w.buf, value)
}

func (w *objectWriter) time(name string, t *timestamppb.Timestamp) error {
	if err := t.CheckValid(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.text(name, t.AsTime().Format(time.RFC3339Nano))
	return nil
}

// fields writes the fields that are set, in the order of the schema, and what extra_json holds.
func (w *objectWriter) fields(m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		name := string(field.Name())
		switch v := m.Get(field).Interface().(type) {
		case string:
			w.text(name, v)
		case []byte:
			members, err := parseMembers(v)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, member := range members {
				w.raw(member.name, member.raw)
			}
		case protoreflect.Message:
			t, ok := v.Interface().(*timestamppb.Timestamp)
			if !ok {
				return fmt.Errorf("%s: %s has no JSON form", name, v.Descriptor().FullName())
			}
			if err := w.time(name, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// timeFromJSON reads RFC 3339 in years 1 to 9999.
func timeFromJSON(s string) (*timestamppb.Timestamp, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return nil, errors.New("is not RFC 3339")
	}
	stamp := timestamppb.New(t)
	if stamp.CheckValid() != nil {
		return nil, errors.New("is not in years 1 to 9999")
	}
	return stamp, nil
}
