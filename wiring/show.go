package wiring

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
)

// YAML writes the configuration as a file that Load reads, but for its secrets, which are hidden.
func (c Config) YAML() ([]byte, error) {
	b, err := yaml.Parser().Marshal(c.tree())
	if err != nil {
		return nil, fmt.Errorf("write configuration as YAML: %w", err)
	}
	return b, nil
}

// MarshalJSON writes the configuration under its keys, durations as Go strings, secrets hidden.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.tree()) }

// tree is the configuration as nested maps.
func (c Config) tree() map[string]any {
	flat := make(map[string]any, len(fields))
	for _, f := range fields {
		flat[f.key] = f.written(f.value(c))
	}
	nested, _ := confmap.Provider(flat, ".").Read() // it has no error to give
	return nested
}

// Schema describes a configuration file.
func Schema() (*jsonschema.Schema, error) {
	root, err := schemaOf(fields)
	if err != nil {
		return nil, err
	}
	root.Title = "Configuration of correx-actors"
	return root.Schema, nil
}

// schemaOf describes an object with these fields.
func schemaOf(fields []field) (section, error) {
	root := newSection()
	for _, f := range fields {
		leaf, err := f.schema()
		if err != nil {
			return section{}, fmt.Errorf("schema of setting %s: %w", f.key, err)
		}
		at, name := root, f.key
		for i, r := range f.key {
			if r == '.' {
				at, name = at.section(f.key[:i]), f.key[i+1:]
			}
		}
		at.Properties[name] = leaf
		if f.secret() {
			at.Properties[name+fileSuffix] = &jsonschema.Schema{Type: "string", Description: "path of a file that holds " + f.key}
		}
	}
	return root, nil
}

// section is an object of the schema that takes no unknown names.
type section struct{ *jsonschema.Schema }

func newSection() section {
	return section{&jsonschema.Schema{
		Type:                 "object",
		Properties:           make(map[string]*jsonschema.Schema),
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}}
}

func (s section) section(name string) section {
	if s.Properties[name] == nil {
		s.Properties[name] = newSection().Schema
	}
	return section{s.Properties[name]}
}

func (f field) schema() (*jsonschema.Schema, error) {
	if f.objects() {
		return f.schemaOfObjects()
	}
	s, err := jsonschema.ForType(f.typ, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Secret](): {Type: "string"},
		reflect.TypeFor[URL]():    {Type: "string"},
	}})
	if err != nil {
		return nil, err
	}
	if f.kind() == "duration" {
		s = &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	}
	if f.kind() == "list" {
		s.Type, s.Types = "array", nil // not also null
	}
	s.Description = f.doc
	for _, v := range f.values {
		s.Enum = append(s.Enum, v)
	}
	if f.kind() == "number" {
		s.Minimum, s.Maximum = bound(f.min), bound(f.max)
	}
	if value := DefaultConfig().lookup(f); value != nil && f.fallback == "" && !f.secret() {
		if s.Default, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// lookup is a value in its written form; nil for a part of an object, which has no default but its zero.
func (c Config) lookup(f field) any {
	if known, ok := fieldByKey[f.key]; !ok || known.typ != f.typ || !slices.Equal(known.index, f.index) {
		return nil
	}
	if v := f.value(c); f.kind() != "duration" {
		return v
	}
	return text(f.value(c))
}

func bound(tag string) *float64 {
	if n, err := strconv.ParseFloat(tag, 64); err == nil {
		return &n
	}
	return nil
}
