package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pawlrun/pawl/internal/visible"
)

// toYAML writes JSON as YAML with its fields in the same order. It reads the
// JSON as JSON: not all of it is YAML, escaped emoji for one are not.
func toYAML(raw json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	hidden := newEscapes(raw)
	value, err := hidden.ordered(decoder)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return []byte(hidden.restore(string(text))), nil
}

// ordered reads the next value; objects keep the order of their fields.
func (e *escapes) ordered(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case string:
		return e.text(t), nil
	case json.Number:
		return number(t), nil
	case json.Delim:
		if t == '[' {
			return e.orderedList(decoder)
		}
		return e.orderedObject(decoder)
	}
	return token, nil
}

func (e *escapes) orderedList(decoder *json.Decoder) (any, error) {
	list := []any{}
	for decoder.More() {
		value, err := e.ordered(decoder)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := decoder.Token() // the closing bracket
	return list, err
}

func (e *escapes) orderedObject(decoder *json.Decoder) (any, error) {
	object := yaml.MapSlice{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := e.ordered(decoder)
		if err != nil {
			return nil, err
		}
		object = append(object, yaml.MapItem{Key: e.text(name.(string)), Value: value}) // names are texts
	}
	_, err := decoder.Token() // the closing brace
	return object, err
}

// escapes are texts with hidden characters. YAML lets a text without quotes
// carry anything to a terminal, so they are written in quotes, with escapes; the
// encoder writes a name in their place, which is replaced at the end.
type escapes struct {
	name  string // the beginning of names; nothing that is written has it
	texts []string
}

func newEscapes(raw json.RawMessage) *escapes {
	e := &escapes{name: "hidden"}
	for bytes.Contains(raw, []byte(e.name)) {
		e.name += "x"
	}
	return e
}

// text is a text as the encoder may write it.
func (e *escapes) text(s string) string {
	if !visible.Has(s) {
		return s
	}
	e.texts = append(e.texts, s)
	return fmt.Sprintf("%s-%d-", e.name, len(e.texts)-1)
}

// restore puts the texts in the place of their names.
func (e *escapes) restore(written string) string {
	for i, s := range e.texts {
		written = strings.ReplaceAll(written, fmt.Sprintf("%s-%d-", e.name, i), doubleQuoted(s))
	}
	return written
}

// doubleQuoted is a text in double quotes with the escapes of YAML.
func doubleQuoted(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case visible.Hidden(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case visible.Hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// number keeps integers whole.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return n.String()
}
