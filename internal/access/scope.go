package access

import (
	"fmt"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Execute is the scope of services that run graphs.
const Execute = "graphs:execute"

// everything stands for all resources.
const everything = "*"

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

func verbOfRole(r userstore.Role) verb {
	switch r {
	case userstore.RoleViewer:
		return verbRead
	case userstore.RoleOperator:
		return verbWrite
	case userstore.RoleAdmin:
		return verbAdmin
	}
	return verbNone
}

// parse takes a scope apart; the verb is verbNone if it is no scope. Execute
// ranks with what only admins may do, and is a resource of its own.
func parse(s string) (resource string, v verb) {
	switch s {
	case everything:
		return everything, verbAdmin
	case Execute:
		return Execute, verbAdmin
	}
	resource, word, found := strings.Cut(s, ":")
	if !found {
		return everything, verbOf(s)
	}
	return resource, verbOf(word)
}

// covers reports whether one of the granted scopes includes the needed one.
func covers(granted []string, need string) bool {
	resource, v := parse(need)
	return slices.ContainsFunc(granted, func(g string) bool {
		r, have := parse(g)
		return have >= v && v != verbNone && (r == everything || r == resource)
	})
}

// Allowed reports whether a token may do what needs the scope.
func Allowed(t *userstore.Token, need string) bool {
	_, v := parse(need)
	return covers(t.Scopes, need) && verbOfRole(t.User.Role) >= v
}

// IsAdmin reports whether the token's user may decide about others, as far as
// scopes let them.
func IsAdmin(t *userstore.Token) bool { return t.User.Role == userstore.RoleAdmin }

// Require fails with an error of code forbidden that names the scope, unless
// the token may do what needs it.
func Require(t *userstore.Token, need string) error {
	if Allowed(t, need) {
		return nil
	}
	if covers(t.Scopes, need) {
		return &pawl.Error{
			Code: pawl.CodeForbidden, Msg: fmt.Sprintf("this needs the scope %s, which the role %s of %s does not allow", need, t.User.Role, t.User.Name),
			Hint: "Use a token of a user with a higher role.",
		}
	}
	return &pawl.Error{
		Code: pawl.CodeForbidden, Msg: "this needs the scope " + need,
		Hint: fmt.Sprintf("The token %q has %s. Use one that has %s.", t.Name, strings.Join(t.Scopes, ", "), need),
	}
}

// Reach is the user whose things of a resource a token reaches: its own, or
// everybody's (empty) for those who administer the resource.
func Reach(t *userstore.Token, resource string) string {
	if Allowed(t, resource+":admin") {
		return ""
	}
	return t.User.ID
}

// RoleFor is the least role that allows all of the scopes.
func RoleFor(scopes []string) userstore.Role {
	most := verbRead
	for _, s := range scopes {
		_, v := parse(s)
		most = max(most, v)
	}
	for _, r := range []userstore.Role{userstore.RoleViewer, userstore.RoleOperator} {
		if verbOfRole(r) >= most {
			return r
		}
	}
	return userstore.RoleAdmin
}

// RoleAllows reports whether a role is at least as high as another.
func RoleAllows(have, need userstore.Role) bool { return verbOfRole(have) >= verbOfRole(need) }

// IsRule reports whether a route can ask for this: a resource and a verb.
func IsRule(scope string) bool {
	resource, v := parse(scope)
	return v != verbNone && resource != everything && resource != ""
}

// AllScopes lists every scope there is, for the resources that routes name.
func AllScopes(resources []string) []string {
	words := []string{everything, "read", "write", "admin"}
	for _, resource := range resources {
		for _, word := range []string{"read", "write", "admin"} {
			words = append(words, resource+":"+word)
		}
	}
	return append(words, Execute)
}

// Actor is how the audit log calls whoever holds a token.
func Actor(t *userstore.Token) string { return t.User.Name + " (token " + t.ID + ")" }
