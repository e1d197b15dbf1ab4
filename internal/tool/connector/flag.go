package connector

import (
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// Flag reads true or false. A missing one is the default; anything else is a
// fault.
func (s *Settings) Flag(name string, normal bool) bool {
	node := s.find(name)
	if node == nil {
		return normal
	}
	flag, ok := unwrap(node.Value).(*ast.BoolNode)
	if !ok {
		s.addFault(node.Value.GetToken(), "%s must be true or false", name)
		return normal
	}
	return flag.Value
}

// Number reads a whole number. A missing one is the default; one that is not
// between the limits is a fault.
func (s *Settings) Number(name string, normal, least, most int) int {
	field, ok := s.measure(name)
	if !ok {
		return normal
	}
	n, err := strconv.Atoi(field.Value)
	if err != nil || n < least || n > most {
		s.Refuse(field, "%s must be a number from %d to %d", name, least, most)
		return normal
	}
	return n
}
