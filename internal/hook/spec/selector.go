package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/internal/definition"
)

// Values are one text or several. Numbers and flags count as they are written.
type Values []string

// ReadValue reads a value or a list of values.
func (s *Values) ReadValue(v definition.Value) {
	*s = nil
	items := []definition.Value{v}
	if v.Shape() == definition.List {
		items = v.Items()
		if len(items) == 0 {
			v.Refuse("the list is empty")
			return
		}
	}
	for _, item := range items {
		var one definition.Scalar
		item.Decode(&one)
		*s = append(*s, string(one))
	}
}

// MarshalJSON writes one value as a text.
func (s Values) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return json.Marshal(s[0])
	}
	return json.Marshal([]string(s))
}

// UnmarshalJSON reads the stored form.
func (s *Values) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte("[")) {
		return json.Unmarshal(raw, (*[]string)(s))
	}
	var one string
	err := json.Unmarshal(raw, &one)
	*s = Values{one}
	return err
}

// DescribeSchema says that there may be several.
func (Values) DescribeSchema(s *jsonschema.Schema) {
	scalar := func() *jsonschema.Schema { return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}} }
	*s = jsonschema.Schema{OneOf: []*jsonschema.Schema{scalar(), {Type: "array", Items: scalar(), MinItems: new(1)}}}
}

// Selector is a place in a delivery: a header, or a value in the body.
type Selector struct {
	Header string   // canonical; empty is in the body
	Path   []string // in the body; empty is all of it
}

// ParseSelector reads header:NAME, body:PATH or body.
func ParseSelector(text string) (Selector, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "body":
		return Selector{}, nil
	case kind == "header" && isHeader(rest):
		return Selector{Header: http.CanonicalHeaderKey(rest)}, nil
	case kind == "body" && rest != "" && !strings.Contains("."+rest+".", ".."):
		return Selector{Path: strings.Split(rest, ".")}, nil
	}
	return Selector{}, fmt.Errorf("it is header:NAME or body:PATH, such as header:X-Event or body:issue.id")
}

// isHeader reports whether a text can be the name of a header.
func isHeader(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != "" && textproto.TrimString(name) == name
}

// In finds the value in a body that was read with numbers as they are written; not
// ok if there is none.
func (s Selector) In(body any) (value any, ok bool) {
	for _, step := range s.Path {
		switch holder := body.(type) {
		case map[string]any:
			if body, ok = holder[step]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(holder) {
				return nil, false
			}
			body = holder[i]
		default:
			return nil, false
		}
	}
	return body, true
}

// Text is a value as it is compared: a text, a number or a flag; not ok for others.
func Text(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
