package messages

import (
	"bytes"
	"encoding/base64"
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

// parseMembers reads b as one JSON object and keeps the order of its members; their values share b. Errors: ErrInvalidEvent.
func parseMembers(b []byte) ([]member, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrInvalidEvent)
	}
	rest := skipSpace(b)
	if len(rest) == 0 || rest[0] != '{' || !json.Valid(b) {
		return nil, fmt.Errorf("%w: it is no JSON object", ErrInvalidEvent)
	}
	// From here on the JSON is known to be right, so that finding where values end is all there is to do.
	members := make([]member, 0, 8)
	for rest = skipSpace(rest[1:]); rest[0] != '}'; {
		var name, value []byte
		name, rest = cutValue(rest)
		value, rest = cutValue(skipSpace(skipSpace(rest)[1:]))
		if rest = skipSpace(rest); rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
		text, _ := unquote(name)
		members = append(members, member{name: text, raw: value})
	}
	return members, nil
}

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// cutValue splits valid JSON after its first value.
func cutValue(b []byte) (value, rest []byte) {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 { // of the object around a number
				return b[:i], b[i:]
			}
			depth--
		case depth > 0:
		case c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n':
			return b[:i], b[i:]
		default: // inside a number, true, false or null
			continue
		}
		if depth == 0 && !quoted {
			return b[:i+1], b[i+1:]
		}
	}
	return b, nil
}

// unquote reads a valid JSON value as a string; false: it is none.
func unquote(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// memberType gives the value of "type".
func memberType(members []member) (string, error) {
	var raw json.RawMessage
	for _, m := range members {
		if m.name == typeMember {
			raw = m.raw
		}
	}
	name, ok := unquote(raw)
	if !ok {
		return "", fmt.Errorf("%w: it has no type", ErrInvalidEvent)
	}
	return name, nil
}

// fieldFromJSON reads a field's value. The error goes on from the field's name.
func fieldFromJSON(field protoreflect.FieldDescriptor, raw json.RawMessage) (protoreflect.Value, error) {
	s, ok := unquote(raw)
	if !ok {
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
	_ = w.enc.Encode(s)             //nolint:errchkjson // a string into memory cannot fail
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

// opaque writes the members of an event that this build cannot read.
func (w *objectWriter) opaque(u *UnknownEvent) {
	w.text(typeMember, u.Type)
	w.number(versionMember, uint64(u.Version))
	w.text(payloadMember, base64.StdEncoding.EncodeToString(u.Payload))
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
