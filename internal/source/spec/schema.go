package spec

import (
	"encoding/json"
	"maps"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/internal/definition"
)

// Schema is the JSON Schema of a definition.
func Schema() []byte {
	return definition.Schema(Kind, "Source", "What a source fetches, how its rows are read, where they go and when.", Definition{})
}

// What the schema says beyond the tags.

// DescribeSchema says which fields there must be, and that there is one way to
// get from page to page.
func (Definition) DescribeSchema(s *jsonschema.Schema) {
	s.Required = append(s.Required, "response")
	s.Properties["labels"].AdditionalProperties.MaxLength = new(2 * longestName)
	s.Properties["params"].Items.Properties["name"].Description = "Name of the parameter."
	s.Properties["headers"].Items.Properties["name"].Description = "Name of the header."
	s.AllOf = []*jsonschema.Schema{
		definition.NotBoth("offsetPagination", "cursorPagination"),
		definition.NotBoth("offsetPagination", "linkPagination"),
		definition.NotBoth("cursorPagination", "linkPagination"),
	}
}

// DescribeSchema adds the short forms.
func (Schedule) DescribeSchema(s *jsonschema.Schema) {
	interval, cron := *s, *s
	interval.Properties, cron.Properties = maps.Clone(s.Properties), maps.Clone(s.Properties)
	delete(interval.Properties, "cron")
	delete(cron.Properties, "interval")
	interval.PropertyOrder, interval.Required = nil, []string{"interval"}
	cron.PropertyOrder, cron.Required = nil, []string{"cron"}
	*s = jsonschema.Schema{Default: json.RawMessage(`"daily"`), OneOf: []*jsonschema.Schema{
		{Type: "string", Enum: []any{"daily", "hourly"}},
		{Type: "string", Pattern: "^interval: *" + definition.Interval[1:]},
		&interval, &cron,
	}}
}

// DescribeSchema says that there are fields, or rows as they came.
func (Response) DescribeSchema(s *jsonschema.Schema) {
	s.Properties["raw"].Default = json.RawMessage("false")
	s.Properties["maxTotalBytes"].Default = json.RawMessage("4294967296")
	s.Properties["maxTotalBytes"].Minimum = new(1.0)
	s.Properties["maxTotalBytes"].Maximum = new(float64(mostBytes))
	raw := &jsonschema.Schema{Required: []string{"raw"}, Properties: map[string]*jsonschema.Schema{"raw": {Const: new(any(true))}}}
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"fields"}}, raw}
}

// DescribeSchema says what fields without the flag are.
func (Field) DescribeSchema(s *jsonschema.Schema) {
	s.Properties["required"].Default = json.RawMessage("false")
}

// DescribeSchema says what a key is, and that rows are brought up to date by
// one.
func (Write) DescribeSchema(s *jsonschema.Schema) {
	key := s.Properties["key"]
	key.UniqueItems, key.Items.Pattern = true, identifierPattern.String()
	s.If = &jsonschema.Schema{Required: []string{"mode"}, Properties: map[string]*jsonschema.Schema{"mode": {Const: new(any(Upsert))}}}
	s.Then = &jsonschema.Schema{Required: []string{"key"}, Properties: map[string]*jsonschema.Schema{"key": {MinItems: new(1)}}}
}

// DescribeSchema says that pages or rows are counted.
func (OffsetPagination) DescribeSchema(s *jsonschema.Schema) {
	s.OneOf = []*jsonschema.Schema{{Required: []string{"pageParam"}}, {Required: []string{"offsetParam"}}}
}

// DescribeSchema says that a limit must be sent somewhere.
func (CursorPagination) DescribeSchema(s *jsonschema.Schema) {
	s.DependentRequired = map[string][]string{"limit": {"limitParam"}}
}

// DescribeSchema says that the link is in one place.
func (LinkPagination) DescribeSchema(s *jsonschema.Schema) {
	s.OneOf = []*jsonschema.Schema{{Required: []string{"header"}}, {Required: []string{"nextPath"}}}
}

// DescribeSchema says how long the names may be.
func (Publish) DescribeSchema(s *jsonschema.Schema) {
	for _, name := range s.Properties {
		name.MaxLength = new(longestTopic)
	}
}
