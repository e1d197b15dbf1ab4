package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits in bytes.
const (
	largestArguments = 4 << 20
	largestSchema    = 32 << 10 // of schemas that arguments are checked against
)

// checkArguments reads the arguments of a call, and checks them against the
// schema of the tool as far as that is cheap and safe; the server has the last
// word.
func checkArguments(raw json.RawMessage, tool definition) (json.RawMessage, *connector.Error) {
	if len(raw) > largestArguments {
		return nil, connector.BadArguments("Split it into several calls.", "the arguments have %d bytes, more than the %d allowed", len(raw), largestArguments)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		raw = []byte("{}")
	}
	var arguments map[string]any
	if err := json.Unmarshal(raw, &arguments); err != nil {
		return nil, connector.BadArguments(argumentHint(tool), "the arguments are not an object")
	}
	if err := violation(tool.InputSchema, arguments); err != nil {
		return nil, connector.BadArguments(argumentHint(tool), "the arguments do not match the tool %s: %s", pawl.Quote(tool.Name), explainViolation(err))
	}
	return raw, nil
}

// violation says how arguments break a schema. Schemas with references are
// left to the server: one that refers to itself never comes to an end. So are
// those that cannot be understood.
func violation(schema json.RawMessage, arguments map[string]any) (err error) {
	if len(schema) > largestSchema || !bytes.HasPrefix(schema, []byte("{")) || regexp.MustCompile(`"\$(ref|dynamicRef|recursiveRef)"`).Match(schema) {
		return nil
	}
	defer func() {
		if recover() != nil { // the schema comes from outside, and the validator is not made for malice
			err = nil
		}
	}()
	var parsed jsonschema.Schema
	if err := json.Unmarshal(schema, &parsed); err != nil {
		return nil // the server understands its schema; we need not
	}
	parsed.Schema = "" // whatever the dialect, the common words mean the same
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return nil // as above
	}
	return resolved.Validate(arguments)
}

// explainViolation is what the validator says, without the words that only
// mean something to those who know the schema.
func explainViolation(err error) string {
	return quote(strings.NewReplacer("validating root: ", "", "validating /properties/", "").Replace(err.Error()))
}

// argumentHint names the arguments of a tool.
func argumentHint(tool definition) string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(tool.InputSchema, &schema) != nil || len(schema.Properties) == 0 {
		return ""
	}
	return "The arguments are " + someNames(slices.Sorted(maps.Keys(schema.Properties))) + "."
}
