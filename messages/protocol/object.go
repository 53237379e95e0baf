package protocol

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// object is a JSON object being read. The first thing that is wrong is kept in refusal, which all objects of a frame
// share; reading goes on and gives zero values.
type object struct {
	refusal *Error
	// path is "" for the frame itself, else "config." and the like.
	path    string
	members map[string]json.RawMessage
}

// parse reads b as one JSON object; false: it is none.
func parse(b []byte) (object, bool) {
	o := object{refusal: new(Error)}
	if !utf8.Valid(b) || tooDeep(b) {
		return o, false
	}
	// A map, not a struct: encoding/json would take "TEXT" for text.
	if err := json.Unmarshal(b, &o.members); err != nil {
		return o, false
	}
	return o, o.members != nil
}

// tooDeep says whether objects and lists of b nest deeper than MaxDepth. Broken JSON is found later.
func tooDeep(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			if depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func (o object) refuse(code, format string, args ...any) {
	if o.refusal.Code == "" {
		o.refusal.Code, o.refusal.Message = code, fmt.Sprintf(format, args...)
	}
}

// raw gives a field; false if it is absent or null.
func (o object) raw(name string) (json.RawMessage, bool) {
	raw, ok := o.members[name]
	return raw, ok && string(raw) != "null"
}

// required refuses the frame if the field is absent.
func (o object) required(name string) bool {
	_, ok := o.raw(name)
	if !ok {
		o.refuse(CodeInvalidField, "%s%s is missing", o.path, name)
	}
	return ok
}

// text reads a string; "" if it is absent.
func (o object) text(name string) string {
	s, _ := o.textOr(CodeInvalidField, name)
	return s
}

// textOr reads a string and refuses with code if it is none; false if it is absent or refused.
func (o object) textOr(code, name string) (string, bool) {
	raw, ok := o.raw(name)
	if !ok {
		return "", false
	}
	if raw[0] != '"' {
		o.refuse(code, "%s%s is not a string", o.path, name)
		return "", false
	}
	return unquote(raw), true
}

// unquote reads a JSON string that is known to be right.
func unquote(raw json.RawMessage) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// name reads a string that must not be empty if it is there.
func (o object) name(field string) string {
	s, ok := o.textOr(CodeInvalidField, field)
	if ok && s == "" {
		o.refuse(CodeInvalidField, "%s%s is empty", o.path, field)
	}
	return s
}

func (o object) flag(name string) bool {
	raw, ok := o.raw(name)
	if !ok {
		return false
	}
	if string(raw) != "true" && string(raw) != "false" {
		o.refuse(CodeInvalidField, "%s%s is not true or false", o.path, name)
	}
	return string(raw) == "true"
}

// count reads a whole number from 0; nil if it is absent.
func count[T uint32 | uint64](o object, name string) *T {
	raw, ok := o.raw(name)
	if !ok {
		return nil
	}
	var n T
	if err := json.Unmarshal(raw, &n); err != nil {
		o.refuse(CodeInvalidField, "%s%s is not a whole number from 0 to %d", o.path, name, ^T(0))
		return nil
	}
	return &n
}

// object reads an object; false if it is absent or refused.
func (o object) object(name string) (object, bool) {
	raw, ok := o.raw(name)
	if !ok {
		return object{}, false
	}
	return o.child(raw, o.path+name)
}

// list reads a list; nil if it is absent or refused.
func (o object) list(name string) []json.RawMessage {
	raw, ok := o.raw(name)
	if !ok {
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		o.refuse(CodeInvalidField, "%s%s is not a list", o.path, name)
	}
	return items
}

func (o object) child(raw json.RawMessage, path string) (object, bool) {
	c := object{refusal: o.refusal, path: path + "."}
	if err := json.Unmarshal(raw, &c.members); err != nil || c.members == nil {
		o.refuse(CodeInvalidField, "%s is not an object", path)
		return object{}, false
	}
	return c, true
}

// data reads bytes in base64, at least one.
func (o object) data(name string) []byte {
	if !o.required(name) {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(o.text(name))
	if err != nil {
		o.refuse(CodeInvalidField, "%s%s is not base64", o.path, name)
	}
	if len(b) == 0 {
		o.refuse(CodeInvalidField, "%s%s is empty", o.path, name)
	}
	return b
}
