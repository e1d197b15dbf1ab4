package connector

import (
	"github.com/goccy/go-yaml/ast"
)

// Name is the name that the definition gives to the connection, for messages.
// A fault in it is told by who loads the definition.
func (s *Settings) Name() string {
	node := s.find("name")
	if node == nil {
		return ""
	}
	if text, ok := unwrap(node.Value).(*ast.StringNode); ok {
		return text.Value
	}
	return ""
}

// Has reports whether a field is there, and makes it a known one.
func (s *Settings) Has(name string) bool { return s.find(name) != nil }

// Optional reads a text that need not be there and puts the secrets into it.
// It is not ok if the field is missing, which is no fault, or not a text.
func (s *Settings) Optional(name string) (field Field, ok bool) {
	if !s.Has(name) {
		return Field{}, false
	}
	return s.resolved(name)
}

// Text reads a text that may be empty and in which nothing is replaced. A missing
// one is the default; anything else is a fault.
func (s *Settings) Text(name, normal string) (field Field) {
	node := s.find(name)
	if node == nil {
		return Field{Name: name, Written: normal, Value: normal}
	}
	field = Field{Name: name, name: node.Key.GetToken(), value: node.Value.GetToken()}
	text, ok := unwrap(node.Value).(*ast.StringNode)
	if !ok {
		s.addFault(field.value, "%s must be a text", name)
		return field
	}
	field.Written, field.Value = text.Value, text.Value
	return field
}

// SecretMapping reads a field that maps names to texts and puts the secrets
// into these; none if it is missing.
func (s *Settings) SecretMapping(name string) []Field {
	var fields []Field
	for _, entry := range s.entries(name, "must map names to texts") {
		if field, ok := s.resolvedText(entry.Key.GetToken().Value, entry); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// Section reads a field that has fields of its own. Nothing is read if it is
// missing; fields in it that read does not look at are faults.
func (s *Settings) Section(name string, read func(*Settings)) {
	if node := s.find(name); node != nil {
		s.section(name, node, read)
	}
}

// Sections reads a field that maps names to sections.
func (s *Settings) Sections(name string, read func(name Field, section *Settings)) {
	for _, entry := range s.entries(name, "must map names to sections") {
		field := Field{Name: entry.Key.GetToken().Value, name: entry.Key.GetToken(), value: entry.Value.GetToken()}
		s.section(field.Name, entry, func(section *Settings) { read(field, section) })
	}
}

func (s *Settings) section(name string, node *ast.MappingValueNode, read func(*Settings)) {
	mapping, ok := unwrap(node.Value).(*ast.MappingNode)
	if !ok {
		s.addFault(node.Value.GetToken(), "%s must have fields of its own", name)
		return
	}
	inner := NewSettings(s.origin, mapping)
	read(inner)
	inner.Unread()
	s.faults = append(s.faults, inner.faults...)
	s.secrets = append(s.secrets, inner.secrets...)
}

// entries are those of a field that is a mapping; none if it is missing.
func (s *Settings) entries(name, fault string) []*ast.MappingValueNode {
	node := s.find(name)
	if node == nil {
		return nil
	}
	mapping, ok := unwrap(node.Value).(*ast.MappingNode)
	if !ok {
		s.addFault(node.Value.GetToken(), "%s %s", name, fault)
		return nil
	}
	return mapping.Values
}
