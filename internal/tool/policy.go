package tool

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
)

// Policy says what happens when a script calls a method.
type Policy string

// The policies.
const (
	Allow Policy = "allow" // the call is made
	Ask   Policy = "ask"   // a person is asked first
	Deny  Policy = "deny"  // the call is refused
)

// Valid reports whether p is one of the closed set.
func (p Policy) Valid() bool { return p == Allow || p == Ask || p == Deny }

// defaultPolicy is that of a method for which the operator set none.
func defaultPolicy(m Method) Policy {
	if m.Mutation {
		return Ask
	}
	return Allow
}

// policyFault is what is wrong with a method's policy, or empty.
func policyFault(p Policy) string {
	if p.Valid() {
		return ""
	}
	known := []string{string(Allow), string(Ask), string(Deny)}
	return "unknown policy " + pawl.Quote(string(p)) + ". " + pawl.Suggest(string(p), known, "The policies are "+strings.Join(known, ", ")+".")
}

// methodFault is what is wrong with the name of a method, or empty.
func methodFault(name string, methods []Method) string {
	if slices.ContainsFunc(methods, func(m Method) bool { return m.Name == name }) {
		return ""
	}
	return "there is no method " + pawl.Quote(name) + ". " + methodHint(name, methods)
}

func methodHint(name string, methods []Method) string {
	var known []string
	for _, m := range methods {
		known = append(known, m.Name)
	}
	slices.Sort(known)
	return pawl.Suggest(name, known, "The methods are "+strings.Join(known, ", ")+".")
}
