package connector

import "github.com/goccy/go-yaml/ast"

// List reads a list of texts in which nothing is replaced. It is not ok if the
// field is missing, which is no fault, or if it or something in it is wrong.
func (s *Settings) List(name string) (fields []Field, ok bool) {
	node := s.find(name)
	if node == nil {
		return nil, false
	}
	sequence, isList := unwrap(node.Value).(*ast.SequenceNode)
	if !isList || len(sequence.Values) == 0 {
		s.addFault(node.Value.GetToken(), "%s must be a list of texts, such as [node, server.js]", name)
		return nil, false
	}
	ok = true
	for _, value := range sequence.Values {
		field := Field{Name: name, name: node.Key.GetToken(), value: value.GetToken()}
		text, isText := unwrap(value).(*ast.StringNode)
		if !isText {
			s.Refuse(field, "%s must be a list of texts; put others in quotes", name)
			ok = false
			continue
		}
		field.Written, field.Value = text.Value, text.Value
		fields = append(fields, field)
	}
	return fields, ok
}

// RefuseWhole notes a fault that is in no field, such as one that is missing.
func (s *Settings) RefuseWhole(format string, values ...any) {
	s.addFault(s.start, format, values...)
}
