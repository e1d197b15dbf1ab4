package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// A scope is a resource and a verb, such as jobs:read. The verbs read, write
// and admin include each other upwards: whoever may write may read. A verb
// alone is for every resource, and * is everything.
//
// What a token may do is what its scopes say and its user's role allows:
// viewers read, operators write, admins decide about others.

// open is the scope of routes that need no token.
const open = ""

// verb orders what can be done.
type verb int

const (
	verbNone verb = iota
	verbRead
	verbWrite
	verbAdmin
)

func verbOf(word string) verb {
	switch word {
	case "read":
		return verbRead
	case "write":
		return verbWrite
	case "admin":
		return verbAdmin
	}
	return verbNone
}

func verbOfRole(r store.Role) verb {
	switch r {
	case store.RoleViewer:
		return verbRead
	case store.RoleOperator:
		return verbWrite
	case store.RoleAdmin:
		return verbAdmin
	}
	return verbNone
}

// roleFor is the least role that allows all of the scopes.
func roleFor(scopes []string) store.Role {
	most := verbRead
	for _, s := range scopes {
		_, v := parseScope(s)
		most = max(most, v)
	}
	for _, r := range []store.Role{store.RoleViewer, store.RoleOperator} {
		if verbOfRole(r) >= most {
			return r
		}
	}
	return store.RoleAdmin
}

// everything stands for all resources.
const everything = "*"

// parseScope takes a scope apart; the verb is verbNone if it is no scope.
func parseScope(s string) (resource string, v verb) {
	if s == everything {
		return everything, verbAdmin
	}
	resource, word, found := strings.Cut(s, ":")
	if !found {
		return everything, verbOf(s)
	}
	return resource, verbOf(word)
}

// covers reports whether one of the granted scopes includes the needed one.
func covers(granted []string, need string) bool {
	resource, v := parseScope(need)
	return slices.ContainsFunc(granted, func(g string) bool {
		r, have := parseScope(g)
		return have >= v && v != verbNone && (r == everything || r == resource)
	})
}

// allowed reports whether a token may do what needs the scope.
func allowed(t *store.Token, need string) bool {
	_, v := parseScope(need)
	return covers(t.Scopes, need) && verbOfRole(t.User.Role) >= v
}

// require fails with a problem that names the scope unless the token may.
func require(t *store.Token, need string) error {
	if allowed(t, need) {
		return nil
	}
	if covers(t.Scopes, need) {
		return newProblem(http.StatusForbidden, string(pawl.CodeForbidden),
			fmt.Sprintf("this needs the scope %s, which the role %s of %s does not allow", need, t.User.Role, t.User.Name), "Use a token of a user with a higher role.")
	}
	return newProblem(http.StatusForbidden, string(pawl.CodeForbidden), "this needs the scope "+need,
		fmt.Sprintf("The token %q has %s. Use one that has %s.", t.Name, strings.Join(t.Scopes, ", "), need))
}

// scopeWords lists every scope there is.
func (a *API) scopeWords() []string {
	words := []string{everything, "read", "write", "admin"}
	for _, resource := range sortedKeys(a.resources) {
		for _, word := range []string{"read", "write", "admin"} {
			words = append(words, resource+":"+word)
		}
	}
	return words
}
