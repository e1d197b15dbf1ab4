package definition

import (
	"encoding/json"
	"iter"
	"reflect"
)

// Custom is a type that reads itself, such as one that may be written in
// several ways. It is implemented by a pointer.
type Custom interface {
	// ReadValue takes what it can from the value and refuses the rest.
	ReadValue(v Value)
}

// Value is one value of a document.
type Value struct {
	node    *node
	pointer string
	decoder decoder
}

// Values are the fields of the document in the order of the file, by name.
func (d Document) Values() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, field := range d.root.named {
			if !yield(field.name, Value{node: field.value, pointer: Pointer(field.name), decoder: decoder{d.Open()}}) {
				return
			}
		}
	}
}

// Shape is what the value looks like.
func (v Value) Shape() Shape { return v.node.shape }

// Text is the text of the value; empty if it is none.
func (v Value) Text() string {
	if v.node.shape != Text {
		return ""
	}
	return v.node.meant()
}

// Written is what a text, a number or a flag looks like in the file; empty for
// anything else.
func (v Value) Written() string { return v.node.written() }

func (n *node) written() string {
	switch n.shape {
	case Text, Number, Flag:
		return n.meant()
	case Null, List, Mapping:
	}
	return ""
}

// JSON is the value as JSON, with sorted names.
func (v Value) JSON() json.RawMessage { return v.node.json() }

// Items are the values of a list.
func (v Value) Items() []Value {
	var items []Value
	for i, item := range v.node.items {
		items = append(items, Value{node: item, pointer: v.pointer + Pointer(i), decoder: v.decoder})
	}
	return items
}

// Fields are the values of a mapping in the order of the file, by name.
func (v Value) Fields() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, field := range v.node.named {
			if !yield(field.name, Value{node: field.value, pointer: v.pointer + Pointer(field.name), decoder: v.decoder}) {
				return
			}
		}
	}
}

// Decode puts the value into what the pointer points to, by the rules of
// Document.Check. To decode into the own type again would never end: use a
// type with the same fields and without ReadValue.
func (v Value) Decode(into any) { v.decoder.pointed(v.node, into, v.pointer) }

// Refuse notes a fault in the value.
func (v Value) Refuse(format string, values ...any) {
	v.decoder.refuse(v.node, v.pointer, format, values...)
}

// Scalar is a text that may also be written as a number or as true or false,
// without quotes: a value of a parameter, for one.
type Scalar string

// ReadValue takes the value as it is written.
func (s *Scalar) ReadValue(v Value) {
	v.decoder.scalar(v.node, reflect.ValueOf(s).Elem(), v.pointer)
}

func (d decoder) scalar(n *node, into reflect.Value, pointer string) {
	switch n.shape {
	case Text, Number, Flag:
		into.SetString(n.written())
	case Null, List, Mapping:
		d.refuse(n, pointer, "%s must be a text, a number, true or false", last(pointer))
	}
}
