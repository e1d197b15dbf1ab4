package connector

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Headers reads the headers that go with every request. Their values are
// secrets, so faults name the headers only. Refuse is what is wrong with a
// header that Pawl sets itself, or empty.
func (s *Settings) Headers(written definition.Secrets, refuse func(name string) string) http.Header {
	headers := http.Header{}
	for _, field := range written {
		fault := refuse(field.Name)
		switch {
		case !outbound.IsHeaderName(field.Name):
			s.AddName(field.Pointer, "%s is not the name of a header", pawl.Quote(field.Name))
		case fault != "":
			s.AddName(field.Pointer, "the header %s %s", field.Name, fault)
		case headers.Get(field.Name) != "":
			s.AddName(field.Pointer, "the header %s is there twice", field.Name)
		case !outbound.IsHeaderValue(field.Value):
			s.Add(field.Pointer, "the value of the header %s holds a line break or another control character", field.Name)
		default:
			headers.Set(field.Name, field.Value)
		}
	}
	return headers
}

// Environment reads the variables that a program gets, as NAME=value.
func (s *Settings) Environment(written definition.Secrets) []string {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	var env []string
	for _, variable := range written {
		if !name.MatchString(variable.Name) {
			s.AddName(variable.Pointer, "%s is not the name of an environment variable", pawl.Quote(variable.Name))
		}
		if strings.ContainsRune(variable.Value, 0) {
			s.Add(variable.Pointer, "%s holds a character that no environment variable can hold", variable.Name)
		}
		env = append(env, variable.Name+"="+variable.Value)
	}
	return env
}
