package grant

import (
	"fmt"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
)

const (
	scopePrefix = "graph:execute:"
	wildcard    = scopePrefix + "*"
	maxScopes   = 100
)

// ScopeFor is the scope that covers one graph and no other.
func ScopeFor(graphID string) string { return scopePrefix + graphID }

// ScopesFor are the scopes that cover these graphs; * is every graph.
func ScopesFor(graphs []string) []string {
	out := make([]string, len(graphs))
	for i, id := range graphs {
		out[i] = ScopeFor(id)
	}
	return out
}

// ValidScopes refuses what is neither the scope of one graph nor of all, and
// an empty list.
func ValidScopes(scopes []string) error {
	var faults []pawl.Field
	if len(scopes) == 0 {
		faults = append(faults, pawl.Field{Pointer: "/scopes", Message: "must have at least one scope"})
	}
	if len(scopes) > maxScopes {
		faults = append(faults, pawl.Field{Pointer: "/scopes", Message: fmt.Sprintf("must have at most %d scopes", maxScopes)})
		scopes = nil
	}
	for i, scope := range scopes {
		if !validScope(scope) {
			faults = append(faults, pawl.Field{
				Pointer: fmt.Sprintf("/scopes/%d", i),
				Message: "must be " + ScopeFor("PROVIDER:NAME") + " or " + wildcard,
			})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "create grant", Msg: "the scopes of the grant are not valid", Fields: faults,
		Hint: "Name each graph, such as " + ScopeFor("langgraph:poet") + "; wildcards for one provider do not exist.",
	}
}

func validScope(scope string) bool {
	if scope == wildcard {
		return true
	}
	graphID, ok := strings.CutPrefix(scope, scopePrefix)
	if !ok {
		return false
	}
	_, _, err := contract.ParseGraphID(graphID)
	return err == nil
}

// covers reports whether the scopes hold the graph, exactly or by the wildcard
// (C-71). A graph id that is not valid is covered by nothing, not even the
// wildcard.
func covers(g Grant, graphID string) bool {
	if _, _, err := contract.ParseGraphID(graphID); err != nil {
		return false
	}
	if slices.Contains(g.Scopes, ScopeFor(graphID)) {
		return true
	}
	return slices.Contains(g.Scopes, wildcard) && !g.WildcardConsentAt.IsZero()
}
