package tools

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema checks arguments, and tells all that is wrong with them: a model that is told one fault at a time needs a round for each.
type schema struct {
	whole *jsonschema.Resolved
	// properties are checked one by one to find who is at fault; those that cannot stand alone are missing here.
	properties map[string]*jsonschema.Resolved
}

func newSchema(of *jsonschema.Schema) (*schema, error) {
	if of.Type != "object" {
		return nil, fmt.Errorf("its type is %q, not object", of.Type)
	}
	whole, err := of.Resolve(nil)
	if err != nil {
		return nil, err
	}
	s := &schema{whole: whole, properties: make(map[string]*jsonschema.Resolved)}
	for name, property := range of.Properties {
		// One that refers to the rest of the schema does not resolve alone.
		if alone, err := property.CloneSchemas().Resolve(nil); err == nil {
			s.properties[name] = alone
		}
	}
	return s, nil
}

// faults are what is wrong with an object, by property; none: it is valid.
func (s *schema) faults(object map[string]any) []string {
	err := s.whole.Validate(object)
	if err == nil {
		return nil
	}
	of := s.whole.Schema()
	var faults []string
	for _, name := range of.Required {
		if _, given := object[name]; !given {
			faults = append(faults, name+": is required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if one, known := s.properties[name]; known {
			if err := one.Validate(object[name]); err != nil {
				faults = append(faults, name+": "+withoutValue(err.Error()))
			}
		} else if _, known := of.Properties[name]; !known && closed(of) {
			faults = append(faults, fmt.Sprintf("%.64q: is unknown", name))
		}
	}
	if len(faults) == 0 {
		faults = append(faults, withoutValue(err.Error()))
	}
	return faults
}

// closed says whether nothing but the properties may be given.
func closed(of *jsonschema.Schema) bool {
	rest := of.AdditionalProperties
	return rest != nil && rest.Not != nil && len(of.PatternProperties) == 0
}

var (
	// where is the way to what failed, which the validator puts in front of its words.
	where = regexp.MustCompile(`^(?:validating (?:root|/[^\s:]*|[^\s:]*): )+`)
	// verdicts begin what the validator says after it has quoted the value.
	verdicts = []string{
		" has type ", " does not equal ", " is not a multiple of ", " is less than ", " is greater than ", " contains ",
		" does not match regular expression ",
	}
)

// withoutValue is what the validator says without the value, which may be a secret and of any length.
func withoutValue(text string) string {
	text = where.ReplaceAllString(text, "")
	keyword, rest, found := strings.Cut(text, ": ")
	if !found {
		return "is not valid"
	}
	switch keyword {
	case "required", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties":
		return rest
	}
	for _, verdict := range verdicts {
		// The last one: an earlier one may stand in the value.
		if at := strings.LastIndex(rest, verdict); at >= 0 {
			return rest[at+1:]
		}
	}
	return "does not satisfy " + keyword
}
