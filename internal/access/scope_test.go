package access

import (
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestScopesInclude(t *testing.T) {
	for _, c := range []struct {
		granted, need string
		want          bool
	}{
		{"*", "jobs:admin", true},
		{"*", "*", true},
		{"admin", "*", true},
		{"read", "jobs:read", true},
		{"read", "jobs:write", false},
		{"write", "jobs:read", true},
		{"admin", "tokens:admin", true},
		{"jobs:write", "jobs:read", true},
		{"jobs:write", "jobs:admin", false},
		{"jobs:admin", "tokens:read", false},
		{"jobs:admin", "read", false},
		{"jobs:admin", "*", false},
		{"write", "read", true},
		{"", "jobs:read", false},
		{"jobs", "jobs:read", false},
		{"jobs:", "jobs:read", false},
		{"jobs:everything", "jobs:read", false},
		{"read", "jobs:everything", false},
		{"*", "nonsense", false},
		{"graphs:execute", "graphs:execute", true},
		{"*", "graphs:execute", true},
		{"admin", "graphs:execute", true},
		{"write", "graphs:execute", false},
		{"graphs:admin", "graphs:execute", false},
		{"graphs:execute", "graphs:read", false},
		{"graphs:execute", "jobs:read", false},
		{"jobs:execute", "jobs:read", false},
	} {
		if got := covers([]string{c.granted}, c.need); got != c.want {
			t.Errorf("%q covers %q: %v", c.granted, c.need, got)
		}
	}
}

// What a token may do is what its scopes say and its user's role allows; the
// scope of services is for admins to give, and for nothing else.
func TestRolesBoundScopes(t *testing.T) {
	for _, c := range []struct {
		role  userstore.Role
		scope string
		need  string
		want  bool
	}{
		{userstore.RoleViewer, "*", "jobs:read", true},
		{userstore.RoleViewer, "*", "jobs:write", false},
		{userstore.RoleOperator, "*", "jobs:write", true},
		{userstore.RoleOperator, "*", "jobs:admin", false},
		{userstore.RoleAdmin, "jobs:read", "jobs:write", false},
		{userstore.RoleOperator, "*", Execute, false},
		{userstore.RoleOperator, Execute, Execute, false},
		{userstore.RoleAdmin, Execute, Execute, true},
		{"nobody", "*", "jobs:read", false},
	} {
		token := &userstore.Token{Scopes: []string{c.scope}, User: userstore.User{ID: "u", Name: "ada", Role: c.role}}
		err := Require(token, c.need)
		if Allowed(token, c.need) != c.want || (err == nil) != c.want || (err != nil && pawl.ErrorCode(err) != pawl.CodeForbidden) {
			t.Errorf("%s with %s: %s is %v", c.role, c.scope, c.need, err)
		}
	}
	if r := RoleFor([]string{"jobs:read", Execute}); r != userstore.RoleAdmin {
		t.Errorf("%s is given to a %s", Execute, r)
	}
}

func TestRulesNameAResourceAndAVerb(t *testing.T) {
	for scope, want := range map[string]bool{"jobs:read": true, Execute: true, "": false, "*": false, "read": false, "jobs": false, "jobs:": false, ":read": false, "jobs:execute": false} {
		if IsRule(scope) != want {
			t.Errorf("%q is a rule: %v", scope, !want)
		}
	}
}

// Whoever makes a definition needs the right for what it does (P1 12).
func TestDefinitionsNeedTheRightForWhatTheyDo(t *testing.T) {
	for _, c := range []struct {
		does   Definition
		scopes []string
		want   bool
	}{
		{Definition{}, nil, true},
		{Definition{Graph: "langgraph:poet"}, nil, true},
		{Definition{Graph: "workflow:pay"}, []string{"schedules:write"}, false},
		{Definition{Graph: "workflow:pay"}, []string{"workflows:read"}, false},
		{Definition{Graph: "workflow:pay"}, []string{"workflows:write"}, true},
		{Definition{Publishes: "pay"}, []string{"sources:write"}, false},
		{Definition{Publishes: "pay"}, []string{"workflows:write"}, true},
		{Definition{Connection: "books"}, []string{"sources:write", "workflows:write"}, false},
		{Definition{Connection: "books"}, []string{"connections:write"}, true},
		{Definition{Connection: "books", Publishes: "pay"}, []string{"connections:write"}, false},
	} {
		token := &userstore.Token{Scopes: c.scopes, User: userstore.User{Role: userstore.RoleOperator}}
		if err := Define(token, c.does); (err == nil) != c.want {
			t.Errorf("%+v with %v: %v", c.does, c.scopes, err)
		}
	}
}
