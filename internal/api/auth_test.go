package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// operation is one operation of the OpenAPI document, as a client sees it.
type operation struct {
	method, path string
	scope        string // empty is open
	raw          map[string]any
}

// operations reads the document from the server, so that a route that is added
// is covered.
func (r *rig) operations() []operation {
	r.t.Helper()
	var doc struct {
		Paths map[string]map[string]map[string]any `json:"paths"`
	}
	r.do("GET", "/openapi.json", nil).want(http.StatusOK).into(&doc)
	var out []operation
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			if strings.HasPrefix(path, "/api/internal/") {
				continue // described here, and served by another handler
			}
			op := operation{method: strings.ToUpper(method), path: path, raw: raw}
			security, _ := raw["security"].([]any)
			for _, s := range security {
				scopes, guarded := s.(map[string]any)[bearer].([]any)
				if guarded && len(scopes) == 0 {
					op.scope = anyToken
				}
				for _, scope := range scopes {
					op.scope, _ = scope.(string)
				}
			}
			out = append(out, op)
		}
	}
	if len(out) < 15 {
		r.t.Fatalf("only %d operations", len(out))
	}
	return out
}

// target is a path that names something.
func (op operation) target() string {
	return strings.NewReplacer("{id}", "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e", "{name}", "nothing", "{kind}", "workflow").Replace(op.path)
}

func TestEveryRouteButHealthNeedsAToken(t *testing.T) {
	both(t, func(r *rig) {
		revoked := r.token("gone", userstore.RoleAdmin, "*")
		r.do("DELETE", "/api/v1/tokens/"+r.find(revoked).ID, nil).want(http.StatusNoContent)
		expired := r.tokenUntil("late", userstore.RoleAdmin, time.Now().Add(-time.Second), "*")
		for _, op := range r.operations() {
			if op.scope == "" {
				if !strings.HasSuffix(op.path, "z") {
					t.Errorf("%s %s is open", op.method, op.path)
				}
				r.as("", op.method, op.target(), nil).want(http.StatusOK)
				continue
			}
			for _, token := range []string{"", "pawl_wrong", revoked, expired, strings.Repeat("x", 600)} {
				p := r.as(token, op.method, op.target(), nil)
				p.problem(http.StatusUnauthorized, "unauthorized")
				if !strings.HasPrefix(p.header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s %s: WWW-Authenticate %q", op.method, op.path, p.header.Get("WWW-Authenticate"))
				}
			}
		}
		for _, header := range []string{"Basic " + r.admin, r.admin, "Bearer", "Bearer ", "Bearer " + r.admin + " x"} {
			r.as("", "GET", "/api/v1/jobs", nil, "Authorization", header).problem(http.StatusUnauthorized, "unauthorized")
		}
		r.as("", "GET", "/api/v1/jobs", nil, "Authorization", "bearer "+r.admin).want(http.StatusOK)
	})
}

func TestEveryRouteNeedsItsScope(t *testing.T) {
	both(t, func(r *rig) {
		other := map[string]string{} // everything but the resource
		full := r.token("full", userstore.RoleAdmin, "*")
		for _, op := range r.operations() {
			if op.scope == "" || op.scope == anyToken {
				continue
			}
			resource, word, _ := strings.Cut(op.scope, ":")
			if other[resource] == "" {
				var scopes []string
				for _, s := range access.AllScopes(sortedKeys(r.api.surface.resources)) {
					if strings.Contains(s, ":") && !strings.HasPrefix(s, resource+":") {
						scopes = append(scopes, s)
					}
				}
				other[resource] = r.token("all but "+resource, userstore.RoleAdmin, scopes...)
			}
			p := r.as(other[resource], op.method, op.target(), nil).problem(http.StatusForbidden, "forbidden")
			if !strings.Contains(p.Detail, op.scope) {
				t.Errorf("%s %s: %q does not name the scope %s", op.method, op.path, p.Detail, op.scope)
			}
			if word != "read" {
				r.as(r.token("reader", userstore.RoleAdmin, "read"), op.method, op.target(), nil).problem(http.StatusForbidden, "forbidden")
				r.as(r.token("viewer", userstore.RoleViewer, "*"), op.method, op.target(), nil).problem(http.StatusForbidden, "forbidden")
			}
			if op.path == "/api/v1/stream" {
				continue // it would not end
			}
			for _, token := range []string{full, r.token("exact", userstore.RoleAdmin, op.scope), r.token("word", userstore.RoleAdmin, word)} {
				if p := r.as(token, op.method, op.target(), nil); p.status == http.StatusUnauthorized || p.status == http.StatusForbidden || p.status >= 500 {
					t.Errorf("%s %s with the scope: %d %s", op.method, op.path, p.status, p.body)
				}
			}
		}
	})
}

// A token is told what it may do, whatever it may do, and that is what it may.
func TestATokenKnowsWhatItMayDo(t *testing.T) {
	both(t, func(r *rig) {
		for name, c := range map[string]struct {
			role   userstore.Role
			scopes []string
			may    map[string]bool
		}{
			"narrow": {userstore.RoleAdmin, []string{"runs:read"}, map[string]bool{"GET /api/v1/runs": true, "GET /api/v1/lanes": false, "POST /api/v1/runs/{id}/approve": false}},
			"viewer": {userstore.RoleViewer, []string{"*"}, map[string]bool{"GET /api/v1/lanes": true, "POST /api/v1/jobs": false, "POST /api/v1/tokens": false}},
			"admin":  {userstore.RoleAdmin, []string{"*"}, map[string]bool{"GET /api/v1/lanes": true, "POST /api/v1/tokens": true}},
		} {
			token := r.token(name, c.role, c.scopes...)
			var current client.CurrentToken
			r.as(token, "GET", "/api/v1/tokens/current", nil).want(http.StatusOK).into(&current)
			if current.User != name || current.Role != string(c.role) || !slices.Equal(current.Scopes, c.scopes) {
				t.Errorf("%s is told %+v", name, current)
			}
			for route, want := range c.may {
				if slices.Contains(current.Routes, route) != want {
					t.Errorf("%s may %s: want %v", name, route, want)
				}
			}
			if !slices.Contains(current.Routes, "GET /api/v1/tokens/current") || !slices.Contains(current.Routes, "GET /healthz") {
				t.Errorf("%s is not told what everybody may", name)
			}
		}
	})
}

// LastUsedAt is written behind the request, and not for every one.
func TestUseOfATokenIsNotedOnceAMinute(t *testing.T) {
	both(t, func(r *rig) {
		token := r.token("ada", userstore.RoleViewer, "read")
		r.as(token, "GET", "/api/v1/jobs", nil).want(http.StatusOK)
		r.eventually("the use is noted", func() bool { return !r.find(token).LastUsedAt.IsZero() })
		first := r.find(token).LastUsedAt
		old := first.Add(-59 * time.Second)
		r.exec(`update tokens set last_used_at = $1`, old.UnixMilli())
		r.as(token, "GET", "/api/v1/jobs", nil).want(http.StatusOK)
		r.api.Close() // nothing is being written any more
		if got := r.find(token).LastUsedAt; !got.Equal(old) {
			t.Errorf("noted again at %v", got)
		}
	})
}
