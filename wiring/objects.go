package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	koanfmaps "github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/providers/confmap"
)

// Settings that are lists of objects, such as providers, are described by the fields of their type like the configuration itself
// and are as strict: an unknown key, a wrong type or a value out of its bounds is an error that names its place.

// objects says whether a field is a list of objects.
func (f field) objects() bool {
	return f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct
}

// parts are the fields of a list's objects; they are relative to one object.
func (f field) parts() []field { return fieldsOf(f.typ.Elem(), "", nil) }

// readObjects reads a list of objects as a YAML parser gives it.
func (f field) readObjects(raw any) (any, string) {
	items, ok := raw.([]any)
	if !ok {
		return nil, "want a list of objects, which only a configuration file can hold"
	}
	list, problems := reflect.MakeSlice(f.typ, 0, len(items)), []string(nil)
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", f.key, i)
		given, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, at+": want an object")
			continue
		}
		object := reflect.New(f.typ.Elem()).Elem()
		problems = append(problems, f.fill(object, given, at)...)
		list = reflect.Append(list, object)
	}
	return list.Interface(), strings.Join(problems, "; ")
}

// fill sets an object's fields.
func (f field) fill(object reflect.Value, given map[string]any, at string) (problems []string) {
	flat, _ := koanfmaps.Flatten(given, nil, ".")
	parts, set := f.parts(), make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		raw := flat[key]
		part, secret := find(parts, key)
		switch {
		case part.key == "":
			problems = append(problems, fmt.Sprintf("%s.%s: unknown setting", at, key))
			continue
		case set[part.key]:
			problems = append(problems, fmt.Sprintf("%s.%s: given both itself and as a file", at, part.key))
			continue
		case secret:
			content, err := secretOf(raw)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s.%s: %v", at, key, err))
				continue
			}
			raw = content
		}
		set[part.key] = true
		name := part.key
		part.key = at + "." + name // for those within it
		value, problem := part.read(raw)
		if problem == "" {
			value, problem = typed(part, value)
		}
		if problem != "" {
			problems = append(problems, nested(part, problem))
			continue
		}
		object.FieldByIndex(part.index).Set(reflect.ValueOf(value))
	}
	return problems
}

// nested puts a part's place before what is wrong with it, unless that names places itself.
func nested(part field, problem string) string {
	if strings.HasPrefix(problem, part.key) {
		return problem
	}
	return part.key + ": " + problem
}

// typed gives a value the type of its field, and checks it.
func typed(part field, value any) (any, string) {
	converted := reflect.ValueOf(value).Convert(part.typ).Interface()
	return converted, part.check(converted)
}

// find gives the part that a key means; secret: the key names the file that holds it.
func find(parts []field, key string) (part field, secret bool) {
	for _, p := range parts {
		if p.key == key {
			return p, false
		}
		if p.secret() && p.key+fileSuffix == key {
			return p, true
		}
	}
	return field{}, false
}

// secretOf reads the file that holds a secret.
func secretOf(raw any) (string, error) {
	path, ok := raw.(string)
	if !ok || path == "" {
		return "", errors.New("want the path of a file")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(content)), nil
}

// treeOf is a list of objects as nested maps, without what is not set; secrets are hidden.
func (f field) treeOf(v any) []any {
	list, parts := reflect.ValueOf(v), f.parts()
	out := make([]any, 0, list.Len())
	for i := range list.Len() {
		flat := make(map[string]any)
		for _, part := range parts {
			if value := list.Index(i).FieldByIndex(part.index); !value.IsZero() {
				flat[part.key] = part.written(value.Interface())
			}
		}
		nested, _ := confmap.Provider(flat, ".").Read() // it has no error to give
		out = append(out, nested)
	}
	return out
}

// written is a value as a file would hold it.
func (f field) written(v any) any {
	switch f.kind() {
	case "duration", "secret", "string": // a string may be a URL, which hides its user
		return text(v)
	case "objects":
		return f.treeOf(v)
	}
	return v
}

// schemaOfObjects describes a list of objects.
func (f field) schemaOfObjects() (*jsonschema.Schema, error) {
	item, err := schemaOf(f.parts())
	if err != nil {
		return nil, err
	}
	return &jsonschema.Schema{Type: "array", Items: item.Schema, Description: f.doc}, nil
}

// describe lists a setting, and under it those of its objects.
func (f field) describe(key string, value any) []Setting {
	list := []Setting{{
		Key: key, Env: f.env(), Type: f.kind(), Values: f.values, Doc: f.doc, Default: cmp.Or(f.fallback, text(value)),
	}}
	if !f.objects() {
		return list
	}
	list[0].Env, list[0].Default = "", ""
	for _, part := range f.parts() {
		zero := reflect.Zero(part.typ).Interface()
		for _, s := range part.describe(key+"[]."+part.key, zero) {
			s.Env = ""
			list = append(list, s)
		}
	}
	return list
}
