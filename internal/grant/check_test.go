package grant

import (
	"context"
	"errors"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
)

// C-34, C-71, X-58: expired before revoked before scope, whatever else is
// wrong; the instant of expiry is expired.
func TestCheckLooksInOrder(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	before, after := now.Add(-time.Millisecond), now.Add(time.Millisecond)
	exact := []string{ScopeFor("langgraph:poet")}
	for _, c := range []struct {
		name  string
		grant Grant
		graph string
		want  contract.ErrorCode
	}{
		{"exact", Grant{Scopes: exact}, "langgraph:poet", ""},
		{"expires later", Grant{Scopes: exact, ExpiresAt: after}, "langgraph:poet", ""},
		{"expires now", Grant{Scopes: exact, ExpiresAt: now}, "langgraph:poet", contract.GrantExpired},
		{"expired, revoked and out of scope", Grant{ExpiresAt: before, RevokedAt: before}, "langgraph:poet", contract.GrantExpired},
		{"revoked and out of scope", Grant{RevokedAt: before}, "langgraph:poet", contract.GrantRevoked},
		{"revoked in the future by another clock", Grant{Scopes: exact, RevokedAt: after}, "langgraph:poet", contract.GrantRevoked},
		{"another graph", Grant{Scopes: exact}, "langgraph:poets", contract.GrantScope},
		{"another provider", Grant{Scopes: exact}, "http:poet", contract.GrantScope},
		{"other case", Grant{Scopes: exact}, "LangGraph:poet", contract.GrantScope},
		{"wildcard", Grant{Scopes: []string{wildcard}, WildcardConsentAt: before}, "langgraph:poet", ""},
		{"wildcard without consent", Grant{Scopes: []string{wildcard}}, "langgraph:poet", contract.GrantScope},
		{"the wildcard as a graph", Grant{Scopes: []string{wildcard}, WildcardConsentAt: before}, "*", contract.GrantScope},
		{"a graph with a star", Grant{Scopes: []string{ScopeFor("langgraph:*")}, WildcardConsentAt: before}, "langgraph:*", contract.GrantScope},
		{"a provider's wildcard covers nothing", Grant{Scopes: []string{ScopeFor("langgraph:*")}}, "langgraph:poet", contract.GrantScope},
		{"no scopes", Grant{}, "langgraph:poet", contract.GrantScope},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.grant, c.graph, now)
			if got, _ := RefusalCode(err); got != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%v", err)
			}
			if err != nil && pawl.ErrorCode(err) != pawl.CodeForbidden {
				t.Errorf("code %s", pawl.ErrorCode(err))
			}
		})
	}
}

// C-17, C-72, X-61: exact scopes and the one wildcard, nothing else.
func TestValidScopes(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = ScopeFor("a:b")
	}
	for _, c := range []struct {
		scopes []string
		good   bool
	}{
		{[]string{ScopeFor("langgraph:poet")}, true},
		{[]string{wildcard}, true},
		{[]string{ScopeFor("a:b"), ScopeFor("a:c")}, true},
		{nil, false},
		{many, false},
		{[]string{"*"}, false},
		{[]string{""}, false},
		{[]string{ScopeFor("")}, false},
		{[]string{ScopeFor("poet")}, false},
		{[]string{ScopeFor("langgraph:*")}, false},
		{[]string{ScopeFor("langgraph:po*")}, false},
		{[]string{ScopeFor("*:poet")}, false},
		{[]string{"graph:read:langgraph:poet"}, false},
		{[]string{" " + ScopeFor("langgraph:poet")}, false},
		{[]string{ScopeFor("langgraph:poet"), "other"}, false},
	} {
		if err := ValidScopes(c.scopes); (err == nil) != c.good {
			t.Errorf("%.80q: %v", c.scopes, err)
		}
	}
}

func authorize(ctx context.Context, db *store.DB, grantID, graphID string) error {
	return db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := Authorize(ctx, tx, grantID, graphID)
		return err
	})
}

// C-66, C-34: the gate takes two ids and tells which of four is wrong.
func TestGateTellsWhy(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		good, err := k.create(k.ada, Spec{Scopes: []string{ScopeFor("a:b")}})
		if err != nil {
			t.Fatal(err)
		}
		revoked, _ := k.create(k.ada, Spec{Scopes: []string{ScopeFor("a:b")}})
		expired, _ := k.create(k.ada, Spec{Scopes: []string{ScopeFor("a:b")}, ExpiresAt: time.Now().Add(time.Hour)})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			if _, err := (Service{}).Revoke(ctx, tx, k.ada, revoked.ID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `update execution_grants set expires_at = 1 where id = $1`, expired.ID)
			return err
		})
		for _, c := range []struct {
			grant, graph string
			want         contract.ErrorCode
		}{
			{good.ID, "a:b", ""},
			{good.ID, "a:c", contract.GrantScope},
			{revoked.ID, "a:b", contract.GrantRevoked},
			{expired.ID, "a:b", contract.GrantExpired},
			{"nobody's", "a:b", contract.GrantNotFound},
		} {
			err := authorize(t.Context(), k.db, c.grant, c.graph)
			if code, _ := RefusalCode(err); code != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%v: %v", c, err)
			}
		}
	})
}

// Lesson 58, context 3.18: a database that does not answer says nothing about
// the grant.
func TestInfrastructureErrorIsNoRefusal(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		g, err := k.create(k.ada, Spec{Scopes: []string{ScopeFor("a:b")}})
		if err != nil {
			t.Fatal(err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `alter table execution_grants rename to lost`)
			return err
		})
		err = authorize(t.Context(), k.db, g.ID, "a:b")
		if code, refused := RefusalCode(err); err == nil || refused {
			t.Errorf("%v is %s", err, code)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		err = authorize(gone, k.db, g.ID, "a:b")
		if _, refused := RefusalCode(err); refused || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
