package definition

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Interval is how a length of time is written in definitions.
const Interval = "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"

// Describer is a type that says more about its schema than the tags can: other
// forms, or how its fields depend on each other.
type Describer interface {
	// DescribeSchema changes the schema that was made from the tags.
	DescribeSchema(s *jsonschema.Schema)
}

// Schema is the JSON Schema of the definitions of a kind, made from the tags
// of the struct that they are read into, for editors. What is right by it may
// still be refused: only the reader looks at all of it.
func Schema(kind, title, doc string, of any) []byte {
	s := schemaOf(reflect.TypeOf(of), rule{})
	s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", title, doc
	if s.Properties["kind"] == nil {
		s.Properties["kind"] = &jsonschema.Schema{Description: "Needed in files; the API knows it.", Const: new(any(kind))}
		s.PropertyOrder = slices.Insert(s.PropertyOrder, 0, "kind")
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("definition: the schema of %s: %v", kind, err)) // the same for every process
	}
	return append(text, '\n')
}

// schemaOf is the schema of the values of a type, by the rule of the field that
// they are in.
func schemaOf(t reflect.Type, r rule) *jsonschema.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &jsonschema.Schema{}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
	case t == reflect.TypeFor[Secret](), t == reflect.TypeFor[time.Duration]():
		s.Type, s.MinLength = "string", new(1)
	case t == reflect.TypeFor[Secrets]():
		s.Type, s.AdditionalProperties = "object", &jsonschema.Schema{Type: "string"}
	case t == reflect.TypeFor[Size]():
		s.Types = []string{"integer", "string"}
	case r.scalar, t == reflect.TypeFor[Scalar]():
		s.Types = []string{"string", "number", "boolean"}
	case t.Kind() == reflect.Struct:
		s = structSchema(t)
	case t.Kind() == reflect.Slice:
		s.Type, s.Items = "array", schemaOf(t.Elem(), rule{})
		s.MaxItems = r.length(r.most)
	case t.Kind() == reflect.Map:
		s.Type, s.AdditionalProperties = "object", schemaOf(t.Elem(), rule{})
		s.MaxProperties = r.length(r.most)
	default:
		r.scalarSchema(t, s)
	}
	if d, ok := reflect.TypeAssert[Describer](reflect.New(t)); ok {
		d.DescribeSchema(s)
	}
	return s
}

func structSchema(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for field := range t.Fields() {
		r, ok := ruleOf(field)
		if !ok {
			continue
		}
		for i, name := range r.names {
			property := schemaOf(field.Type, r)
			property.Description = r.doc
			s.Properties[name], s.PropertyOrder = property, append(s.PropertyOrder, name)
			if i > 0 {
				s.AllOf = append(s.AllOf, NotBoth(r.names[0], name))
			}
		}
		if r.required {
			s.Required = append(s.Required, r.names[0])
		}
	}
	return s
}

// NotBoth is the schema of objects that lack one of two fields.
func NotBoth(one, other string) *jsonschema.Schema {
	return &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{one, other}}}
}

// scalarSchema says what the rule says about a text, a number or a flag.
func (r rule) scalarSchema(t reflect.Type, s *jsonschema.Schema) {
	switch t.Kind() {
	case reflect.String:
		s.Type, s.Pattern = "string", r.pattern
		s.MinLength, s.MaxLength = r.length(r.least), r.length(r.most)
		if (r.required || r.nonempty) && r.pattern == "" {
			s.MinLength = new(1)
		}
		for _, word := range r.oneof {
			s.Enum = append(s.Enum, word)
		}
		if r.normal != "" {
			s.Default = json.RawMessage(strconv.Quote(r.normal))
		}
	case reflect.Bool:
		s.Type, s.Default = "boolean", json.RawMessage(r.normal)
	default:
		s.Type, s.Default = "integer", json.RawMessage(r.normal)
		s.Minimum, s.Maximum = r.limit(r.least), r.limit(r.most)
		if r.seconds {
			number := *s
			number.Default = nil
			*s = jsonschema.Schema{Default: s.Default, OneOf: []*jsonschema.Schema{&number, {Type: "string", MinLength: new(2), Pattern: Interval}}}
		}
	}
}

func (rule) length(text string) *int {
	if text == "" {
		return nil
	}
	return new(int(measured(reflect.TypeFor[int](), text)))
}

func (rule) limit(text string) *float64 {
	if text == "" {
		return nil
	}
	return new(float64(measured(reflect.TypeFor[int](), text)))
}
