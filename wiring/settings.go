package wiring

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one thing that can be set, for documents and help.
type Setting struct {
	// Key in a file and for --set; Env is the environment variable. A key with [] is of each object of a list, which only a
	// file can hold: it has no variable.
	Key string
	Env string
	// Type is string, list, objects, duration, number, boolean or secret.
	Type string
	// Default as it would be written; "" = none.
	Default string
	// Values that are allowed; nil = any.
	Values []string
	Doc    string
}

// SettingError says which setting cannot be, where its value came from and why.
type SettingError struct {
	Key string
	// Value as it was given; a secret is hidden.
	Value string
	// Source is a flag, a variable or a file; "" = unknown.
	Source  string
	Problem string
}

// Error implements error.
func (e *SettingError) Error() string {
	text := fmt.Sprintf("setting %s is %q", e.Key, e.Value)
	if e.Source != "" {
		text += " (from " + e.Source + ")"
	}
	return text + ": " + e.Problem
}

// Settings lists all settings in the order of Config.
func Settings() []Setting {
	list := make([]Setting, 0, len(fields))
	for _, f := range fields {
		list = append(list, f.describe(f.key, f.value(DefaultConfig()))...)
	}
	return list
}

// field is what the tags of one field of Config say.
type field struct {
	key      string
	index    []int
	typ      reflect.Type
	doc      string
	fallback string // how the default is described, where it depends on the machine
	values   []string
	min, max string
}

var (
	fields     = fieldsOf(reflect.TypeFor[Config](), "", nil)
	fieldByKey = indexFields()
)

func fieldsOf(t reflect.Type, prefix string, index []int) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name := sf.Tag.Get("koanf")
		if name == "-" {
			continue
		}
		at := append(slices.Clone(index), i)
		if sf.Type.Kind() == reflect.Struct {
			out = append(out, fieldsOf(sf.Type, prefix+name+".", at)...)
			continue
		}
		f := field{
			key: prefix + name, index: at, typ: sf.Type, doc: sf.Tag.Get("doc"),
			fallback: sf.Tag.Get("default"), min: sf.Tag.Get("min"), max: sf.Tag.Get("max"),
		}
		if enum := sf.Tag.Get("enum"); enum != "" {
			f.values = strings.Split(enum, ",")
		}
		out = append(out, f)
	}
	return out
}

func indexFields() map[string]field {
	index := make(map[string]field, len(fields))
	for _, f := range fields {
		index[f.key] = f
	}
	return index
}

// env is the variable of a key: levels are joined by two underscores, since names hold single ones.
func (f field) env() string { return envName(f.key) }

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
}

func (f field) secret() bool { return f.typ == reflect.TypeFor[Secret]() }

func (f field) kind() string {
	switch {
	case f.secret():
		return "secret"
	case f.typ == reflect.TypeFor[time.Duration]():
		return "duration"
	case f.objects():
		return "objects"
	case f.typ.Kind() == reflect.Slice:
		return "list"
	case f.typ.Kind() == reflect.String:
		return "string"
	case f.typ.Kind() == reflect.Bool:
		return "boolean"
	}
	return "number"
}

// value of the field in c.
func (f field) value(c Config) any { return reflect.ValueOf(c).FieldByIndex(f.index).Interface() }

// check says what is wrong with a value of the field's type; "" = nothing.
func (f field) check(v any) string {
	switch v := v.(type) {
	case string:
		if f.values != nil && !slices.Contains(f.values, v) {
			return "want " + strings.Join(f.values, " or ")
		}
	case time.Duration:
		if low, _ := time.ParseDuration(f.min); v < low {
			return "want at least " + f.min
		}
	case float64:
		low, err := strconv.ParseFloat(f.min, 64)
		if err == nil && !(v >= low) {
			return "want at least " + f.min
		}
		if high, err := strconv.ParseFloat(f.max, 64); err == nil && v > high {
			return "want at most " + f.max
		}
	case int, int64:
		n := reflect.ValueOf(v).Int()
		if low, err := strconv.ParseInt(f.min, 10, 64); err == nil && n < low {
			return "want at least " + f.min
		}
		if high, err := strconv.ParseInt(f.max, 10, 64); err == nil && n > high {
			return "want at most " + f.max
		}
	}
	return ""
}

func (f field) fault(c Config, problem string) *SettingError {
	return &SettingError{Key: f.key, Value: text(f.value(c)), Problem: problem}
}

// text writes a value as it would be set.
func text(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return duration(v)
	case []string:
		return strings.Join(v, ",")
	case []Provider:
		names := make([]string, len(v))
		for i, p := range v {
			names[i] = p.Name
		}
		return strings.Join(names, ",")
	case []MCPServer:
		names := make([]string, len(v))
		for i, s := range v {
			names[i] = s.Name
		}
		return strings.Join(names, ",")
	}
	return fmt.Sprint(v)
}

// duration writes 10m0s as 10m.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
