package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func (r *rig) createToken(body map[string]any, headers ...string) (p *reply, t client.NewToken) {
	r.t.Helper()
	p = r.do("POST", "/api/v1/tokens", body, headers...).want(http.StatusCreated)
	p.into(&t)
	return p, t
}

func TestTokenIsShownOnceAndWorks(t *testing.T) {
	both(t, func(r *rig) {
		p, created := r.createToken(map[string]any{"name": "ci", "scopes": []string{"jobs:write"}, "expiresIn": "90d"})
		if p.header.Get("Cache-Control") != "no-store" || p.header.Get("Location") != "/api/v1/tokens/"+created.ID {
			t.Errorf("headers %v", p.header)
		}
		if created.Text == "" || len(string(created.Text)) != 48 || !strings.HasPrefix(string(created.Text), "pawl_") || created.User != "admin" || created.Note != "" {
			t.Fatalf("created %+v", created)
		}
		if d := time.Until(created.ExpiresAt.Time); d < 89*24*time.Hour || d > 90*24*time.Hour {
			t.Errorf("expires in %v", d)
		}
		r.as(string(created.Text), "GET", "/api/v1/jobs", nil).want(http.StatusOK)
		r.as(string(created.Text), "GET", "/api/v1/tokens", nil).problem(http.StatusForbidden, "forbidden")
		for _, path := range []string{"/api/v1/tokens", "/api/v1/tokens/" + created.ID} {
			body := string(r.do("GET", path, nil).want(http.StatusOK).body)
			if strings.Contains(body, string(created.Text)) || strings.Contains(body, userstore.HashToken(string(created.Text))) || !strings.Contains(body, created.ID) {
				t.Errorf("%s shows %s", path, body)
			}
		}
		entry := r.audited("token.create", "token:"+created.ID)
		if !strings.Contains(string(entry.Detail), `"ci"`) || strings.Contains(string(entry.Detail), string(created.Text)) {
			t.Errorf("audit detail %s", entry.Detail)
		}
		if r.count(`select count(*) from tokens where hash = $1`, string(created.Text)) != 0 || strings.Contains(r.log.String(), string(created.Text)) {
			t.Error("the text of the token was kept")
		}
	})
}

func TestRevokedTokenIsWorthNothing(t *testing.T) {
	both(t, func(r *rig) {
		for _, how := range [][2]string{{"DELETE", ""}, {"POST", "/revoke"}} {
			_, created := r.createToken(map[string]any{"name": "ci", "scopes": []string{"read"}})
			r.as(string(created.Text), "GET", "/api/v1/jobs", nil).want(http.StatusOK) // so that it is remembered
			for range 2 {                                                              // the second time changes nothing
				r.do(how[0], "/api/v1/tokens/"+created.ID+how[1], nil).want(http.StatusNoContent)
			}
			p := r.as(string(created.Text), "GET", "/api/v1/jobs", nil).problem(http.StatusUnauthorized, "unauthorized")
			if p.Detail != "The token was revoked." {
				t.Errorf("detail %q", p.Detail)
			}
			r.audited("token.revoke", "token:"+created.ID)
			var shown client.Token
			r.do("GET", "/api/v1/tokens/"+created.ID, nil).want(http.StatusOK).into(&shown)
			if shown.RevokedAt.IsZero() {
				t.Error("the revoked token is not shown as such")
			}
		}
		if n := r.count(`select count(*) from audit_log where action = 'token.revoke'`); n != 2 {
			t.Errorf("%d revocations noted, want 2", n)
		}
	})
}

// A foreign token looks as if it were not there.
func TestTokensOfOthersAreNotSeen(t *testing.T) {
	both(t, func(r *rig) {
		ada, bob := r.token("ada", userstore.RoleOperator, "write"), r.token("bob", userstore.RoleOperator, "write")
		var page client.Page[client.Token]
		r.as(ada, "GET", "/api/v1/tokens", nil).want(http.StatusOK).into(&page)
		if len(page.Items) != 1 || page.Items[0].User != "ada" {
			t.Errorf("ada sees %+v", page.Items)
		}
		foreign := "/api/v1/tokens/" + r.find(bob).ID
		unknown := "/api/v1/tokens/0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e"
		for _, path := range []string{foreign, unknown, "/api/v1/tokens/nonsense", "/api/v1/tokens/%00"} {
			for _, how := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/revoke"}} {
				p := r.as(ada, how[0], path+how[1], nil).problem(http.StatusNotFound, "not_found")
				if p.Detail != "There is no such token." {
					t.Errorf("%s: %q", path, p.Detail)
				}
			}
		}
		r.as(bob, "GET", "/api/v1/jobs", nil).want(http.StatusOK)
		r.as(ada, "DELETE", "/api/v1/tokens/"+r.find(ada).ID, nil).want(http.StatusNoContent)
		r.as(ada, "GET", "/api/v1/jobs", nil).problem(http.StatusUnauthorized, "unauthorized")
		r.do("GET", "/api/v1/tokens", nil).want(http.StatusOK).into(&page)
		if len(page.Items) != 3 {
			t.Errorf("the admin sees %d tokens", len(page.Items))
		}
	})
}

func TestTokenCannotGiveWhatItDoesNotHave(t *testing.T) {
	both(t, func(r *rig) {
		some := r.token("some", userstore.RoleAdmin, "tokens:admin", "jobs:read")
		for scope, status := range map[string]int{
			"jobs:read": 201, "tokens:read": 201, "tokens:admin": 201,
			"jobs:write": 403, "read": 403, "write": 403, "admin": 403, "*": 403, "metrics:read": 403,
		} {
			p := r.as(some, "POST", "/api/v1/tokens", map[string]any{"name": "x", "scopes": []string{scope}}).want(status)
			if status == 403 {
				told := p.problem(403, "forbidden")
				if len(told.Errors) != 1 || told.Errors[0].Pointer != "/scopes/0" {
					t.Errorf("%s: %+v", scope, told.Errors)
				}
			}
		}
		if n := r.count(`select count(*) from tokens where name = 'x'`); n != 3 {
			t.Errorf("%d tokens, want 3", n)
		}
	})
}

func TestTokenForAnotherUser(t *testing.T) {
	both(t, func(r *rig) {
		_, created := r.createToken(map[string]any{"name": "x", "scopes": []string{"jobs:write", "read"}, "user": "ada"})
		if role := r.find(string(created.Text)).User.Role; role != userstore.RoleOperator || created.User != "ada" {
			t.Errorf("user %s with role %s", created.User, role)
		}
		p := r.do("POST", "/api/v1/tokens", map[string]any{"name": "y", "scopes": []string{"tokens:admin"}, "user": "ada"}).problem(422, "invalid")
		if p.Errors[0].Pointer != "/scopes" || !strings.Contains(p.Errors[0].Message, "operator") {
			t.Errorf("%+v", p.Errors)
		}
		if n := r.count(`select count(*) from users`); n != 2 {
			t.Errorf("%d users", n)
		}
	})
}

func TestBadTokensAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		for body, pointer := range map[string]string{
			`{"scopes":["read"]}`:                               "/name",
			`{"name":"x"}`:                                      "/scopes",
			`{"name":"x","scopes":[]}`:                          "/scopes",
			`{"name":"x","scopes":null}`:                        "/scopes",
			`{"name":"x","scopes":"read"}`:                      "/scopes",
			`{"name":"x","scopes":["read","read"]}`:             "/scopes",
			`{"name":"x","scopes":["read","jobs:reed"]}`:        "/scopes/1",
			`{"name":"x","scopes":["nothing:read"]}`:            "/scopes/0",
			`{"name":"x","scopes":[7]}`:                         "/scopes/0",
			`{"name":" x","scopes":["read"]}`:                   "/name",
			`{"name":"","scopes":["read"]}`:                     "/name",
			`{"name":"x","scopes":["read"],"expiresIn":"soon"}`: "/expiresIn",
			`{"name":"x","scopes":["read"],"expiresIn":"1d","expiresAt":"2030-01-01T00:00:00Z"}`: "/expiresIn",
			`{"name":"x","scopes":["read"],"expiresAt":"2020-01-01T00:00:00Z"}`:                  "/expiresAt",
			`{"name":"x","scopes":["read"],"expiresAt":"2999-01-01T00:00:00Z"}`:                  "/expiresAt",
			`{"name":"x","scopes":["read"],"user":"a\nb"}`:                                       "/user",
			`{"name":"x","scopes":["read"],"token":"mine"}`:                                      "/token",
		} {
			p := r.do("POST", "/api/v1/tokens", body).problem(422, "invalid")
			if len(p.Errors) == 0 || p.Errors[0].Pointer != pointer {
				t.Errorf("%s: %+v, want a fault at %s", body, p.Errors, pointer)
			}
		}
		if n := r.count(`select count(*) from tokens`); n != 1 {
			t.Errorf("%d tokens", n)
		}
	})
}

func TestTokenListHasPages(t *testing.T) {
	both(t, func(r *rig) {
		for range 6 {
			r.token("ada", userstore.RoleViewer, "read")
		}
		seen := map[string]bool{}
		query := "?limit=3"
		for range 3 {
			var page client.Page[client.Token]
			r.do("GET", "/api/v1/tokens"+query, nil).want(http.StatusOK).into(&page)
			for _, item := range page.Items {
				seen[item.ID] = true
			}
			if page.NextCursor == "" {
				break
			}
			query = "?limit=3&cursor=" + string(page.NextCursor)
		}
		if len(seen) != 7 {
			t.Errorf("saw %d tokens, want 7", len(seen))
		}
		for _, cursor := range []string{"garbage", "am9iOjE", "dG9rZW46MQ"} {
			r.do("GET", "/api/v1/tokens?cursor="+cursor, nil).problem(422, "invalid")
		}
	})
}
