package web

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/store"
)

// What is offered to whom. The API decides what is done; this only keeps pages
// from offering what it would refuse, and guards the few reads that it does not
// have. The rules are those of the API's scopes.

// verbs are what a scope can allow, each with those before it.
func verbs() []string { return []string{"read", "write", "admin"} }

// may reports whether a token allows the verb for the resource.
func may(t *store.Token, resource, verb string) bool {
	need := slices.Index(verbs(), verb)
	if need < 0 || roleRank(t.User.Role) < need {
		return false
	}
	return slices.ContainsFunc(t.Scopes, func(scope string) bool {
		if scope == "*" {
			return true
		}
		of, have, narrow := strings.Cut(scope, ":")
		if !narrow {
			of, have = resource, scope
		}
		return of == resource && slices.Index(verbs(), have) >= need
	})
}

// roleRank is the place in verbs of the most that a role allows.
func roleRank(r store.Role) int {
	switch r {
	case store.RoleViewer:
		return 0
	case store.RoleOperator:
		return 1
	case store.RoleAdmin:
		return 2
	}
	return -1
}
