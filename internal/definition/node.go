package definition

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl"
)

// Shape is what a value looks like.
type Shape string

// The shapes.
const (
	Null    Shape = "nothing"
	Text    Shape = "a text"
	Number  Shape = "a number"
	Flag    Shape = "true or false"
	List    Shape = "a list"
	Mapping Shape = "a mapping"
)

// node is one value of a document, from YAML or JSON.
type node struct {
	shape Shape
	text  string // of scalars: a text itself, others as they are written
	block bool   // the text is a block (| or >), whose last line break is not meant
	place place
	items []*node // of a list
	named []named // of a mapping, in the order of the file
}

// named is a field of a mapping.
type named struct {
	name  string
	place place // of the name
	value *node
}

// place is where something is in a file; lines and columns count from 1. The
// zero place is nowhere, as in JSON that came over the network.
type place struct{ line, column int }

func (p place) in(file string) pawl.Place {
	return pawl.Place{File: file, Line: p.line, Column: p.column}
}

func (n *node) field(name string) *named {
	for i := range n.named {
		if n.named[i].name == name {
			return &n.named[i]
		}
	}
	return nil
}

// find follows a JSON pointer as far as it goes. place is where the last thing
// on the way is; found is nil if the way ends early.
func (n *node) find(pointer string) (found *node, at place) {
	at = n.place
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		next := n.step(unescape(step))
		if next == nil {
			return nil, at
		}
		n, at = next, next.place
	}
	return n, at
}

func (n *node) step(name string) *node {
	if n.shape == List {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.items) {
			return n.items[i]
		}
		return nil
	}
	if field := n.field(name); field != nil {
		return field.value
	}
	return nil
}

// json is the value as JSON, with the fields of mappings in order of their
// names, so that equal values have equal bytes.
func (n *node) json() json.RawMessage {
	var out bytes.Buffer
	n.writeJSON(&out)
	return out.Bytes()
}

func (n *node) writeJSON(out *bytes.Buffer) {
	switch n.shape {
	case Null:
		out.WriteString("null")
	case Number, Flag:
		out.WriteString(n.text)
	case Text:
		writeText(out, n.text)
	case List:
		out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				out.WriteByte(',')
			}
			item.writeJSON(out)
		}
		out.WriteByte(']')
	case Mapping:
		out.WriteByte('{')
		for i, field := range sortedByName(n.named) {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, field.name)
			out.WriteByte(':')
			field.value.writeJSON(out)
		}
		out.WriteByte('}')
	}
}

// writeText cannot fail: texts are valid UTF-8.
func writeText(out *bytes.Buffer, text string) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text)
	out.Truncate(out.Len() - 1) // the line break that Encode adds
}

// Pointer makes a JSON pointer out of the names and numbers on the way.
func Pointer(steps ...any) string {
	var b strings.Builder
	for _, step := range steps {
		b.WriteByte('/')
		switch step := step.(type) {
		case int:
			b.WriteString(strconv.Itoa(step))
		case string:
			b.WriteString(escape(step))
		}
	}
	return b.String()
}

func escape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
}

func unescape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}
