package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
)

// ReadJSON reads one definition from JSON, as it comes over the API. It may
// lack a kind. The faults have pointers and no places; the errors are those of
// Read.
func ReadJSON(raw []byte) (Document, error) {
	if len(raw) > LargestFile {
		return Document{}, tooLarge("", len(raw))
	}
	if !utf8.Valid(raw) {
		return Document{}, Invalid("read definition", []pawl.Field{{Message: "the definition is not UTF-8 text"}})
	}
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return Document{}, Invalid("read definition", []pawl.Field{{Message: syntaxMessage(err)}})
	}
	r := &jsonReader{decoder: json.NewDecoder(bytes.NewReader(raw)), faults: &Faults{}}
	r.decoder.UseNumber()
	root, err := r.value("", 0)
	if err != nil {
		return Document{}, Invalid("read definition", []pawl.Field{{Message: err.Error()}})
	}
	r.faults.root = root
	if root.shape != Mapping {
		r.faults.Add("", "a definition is a JSON object")
	}
	doc := Document{root: root}
	doc.label(r.faults)
	return doc, Invalid("read definition", r.faults.Fields())
}

func syntaxMessage(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("the definition is not valid JSON: %s, at byte %d", e, e.Offset)
	}
	return "the definition is not valid JSON"
}

// jsonReader makes nodes out of JSON that is known to be valid.
type jsonReader struct {
	decoder *json.Decoder
	faults  *Faults
	names   int // read so far
}

func (r *jsonReader) value(pointer string, depth int) (*node, error) {
	if depth > deepest {
		return nil, fmt.Errorf("the definition is nested more than %d levels deep", deepest)
	}
	next, err := r.decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("the definition is not valid JSON: %w", err)
	}
	switch next := next.(type) {
	case json.Delim:
		if next == '{' {
			return r.mapping(pointer, depth)
		}
		return r.list(pointer, depth)
	case string:
		return &node{shape: Text, text: next}, nil
	case json.Number:
		if fault := numberFault(next.String()); fault != "" {
			r.faults.addAt(place{}, pointer, "%s", fault)
			return &node{shape: Null}, nil
		}
		return &node{shape: Number, text: next.String()}, nil
	case bool:
		return &node{shape: Flag, text: fmt.Sprint(next)}, nil
	}
	return &node{shape: Null}, nil
}

func (r *jsonReader) list(pointer string, depth int) (*node, error) {
	list := &node{shape: List}
	for r.decoder.More() {
		item, err := r.value(pointer+Pointer(len(list.items)), depth+1)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, item)
	}
	_, err := r.decoder.Token() // the bracket
	return list, err
}

func (r *jsonReader) mapping(pointer string, depth int) (*node, error) {
	mapping := &node{shape: Mapping}
	seen := map[string]bool{}
	for r.decoder.More() {
		key, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if r.names++; r.names > mostNames {
			return nil, fmt.Errorf("the definition has more than %d fields", mostNames)
		}
		value, err := r.value(pointer+Pointer(name), depth+1)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			r.faults.addAt(place{}, pointer+Pointer(name), "%s is given twice", pawl.Quote(name))
			continue
		}
		seen[name] = true
		mapping.named = append(mapping.named, named{name: name, value: value})
	}
	_, err := r.decoder.Token() // the brace
	return mapping, err
}
