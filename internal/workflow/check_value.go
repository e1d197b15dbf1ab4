package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// value is a value that a script made: JSON, or a function, which JSON lacks.
// The zero value is one that is not there.
type value struct {
	raw      json.RawMessage
	function bool
}

// kind names the type of a value in a sentence.
func (v value) kind() string {
	raw := bytes.TrimLeft(v.raw, " \t\r\n")
	switch {
	case v.function:
		return "a function"
	case len(raw) == 0:
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (v value) isNull() bool { return v.kind() == "null" }

// text returns a string.
func (v value) text() (s string, ok bool) {
	if v.kind() != "a string" || json.Unmarshal(v.raw, &s) != nil {
		return "", false
	}
	return s, true
}

// list returns the elements of a list, never nil when it is one.
func (v value) list() ([]value, bool) {
	elements := []json.RawMessage{}
	if v.kind() != "a list" || json.Unmarshal(v.raw, &elements) != nil {
		return nil, false
	}
	list := make([]value, len(elements))
	for i, raw := range elements {
		list[i] = value{raw: raw}
	}
	return list, true
}

// object returns the fields of an object, in the order in which they stand.
func (v value) object() (object, bool) {
	if v.kind() != "an object" {
		return object{}, false
	}
	o := object{fields: map[string]value{}}
	decoder := json.NewDecoder(bytes.NewReader(v.raw))
	if _, err := decoder.Token(); err != nil { // the brace
		return object{}, false
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return object{}, false
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return object{}, false
		}
		o.set(name.(string), value{raw: raw}) // the decoder takes nothing else there
	}
	_, err := decoder.Token() // the brace that ends it
	return o, err == nil
}

// object is an object with its fields in order.
type object struct {
	names  []string
	fields map[string]value
}

// get returns a field, or the zero value if there is none.
func (o object) get(name string) value { return o.fields[name] }

func (o object) has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

func (o *object) set(name string, v value) {
	if !o.has(name) {
		o.names = append(o.names, name)
	}
	o.fields[name] = v
}

// unknown returns the fields that are none of the known ones.
func (o object) unknown(known []string) []string {
	var names []string
	for _, name := range o.names {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}

// mostQuoted bounds what messages repeat of a script's own text, in characters.
const mostQuoted = 100

// quoted shows a script's own text in a message.
func quoted(text string) string { return strconv.Quote(cutText(text, mostQuoted)) }

// quotedList shows several texts, and how many more there are.
func quotedList(texts []string) string {
	const most = 10
	var shown []string
	for _, text := range texts[:min(len(texts), most)] {
		shown = append(shown, quoted(text))
	}
	list := strings.Join(shown, ", ")
	if more := len(texts) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// cutText shortens a text to a number of characters.
func cutText(text string, most int) string {
	count := 0
	for i := range text {
		if count == most {
			return text[:i]
		}
		count++
	}
	return text
}
