package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestEveryPageAsksWhoIsThere(t *testing.T) {
	r := onSQLite(t)
	b := r.browser()
	for _, path := range pagePaths() {
		p := b.get(path).want(http.StatusSeeOther)
		if to := p.header.Get("Location"); !strings.HasPrefix(to, "/signin") {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	b.post("/workflows/x/run").want(http.StatusSeeOther)
	b.post("/runs/x/approve").want(http.StatusSeeOther)
	b.get("/live").want(http.StatusUnauthorized)
	p := b.do("GET", "/", nil, "HX-Request", "true").want(http.StatusUnauthorized)
	if p.header.Get("HX-Redirect") != "/signin" || p.body != "" {
		t.Errorf("a part of a page must not become the sign-in page: %v %q", p.header, p.body)
	}
}

// pagePaths are pages that need nothing to be there.
func pagePaths() []string {
	return []string{"/", "/?q=x&status=Idle", "/approvals", "/timeline", "/grants", "/runs", "/jobs", "/audit", "/tokens", "/nothing"}
}

func TestSignInByToken(t *testing.T) {
	both(t, func(r *rig) {
		b := r.browser()
		b.post("/signin", "token", "pawl_wrong").want(http.StatusUnauthorized).has("not valid on this server")
		b.post("/signin", "token", "").want(http.StatusUnauthorized)
		b.post("/signin", "token", strings.Repeat("x", 4096)).want(http.StatusUnauthorized)
		p := b.post("/signin", "token", " "+r.admin+"\n", "next", "/jobs").want(http.StatusSeeOther)
		cookie := p.header.Get("Set-Cookie")
		for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
			if !strings.Contains(cookie, part) {
				r.t.Errorf("the cookie %q has no %s", cookie, part)
			}
		}
		if strings.Contains(cookie, r.admin) || p.header.Get("Location") != "/jobs" {
			r.t.Errorf("cookie %q, location %q", cookie, p.header.Get("Location"))
		}
		b.get("/").want(http.StatusOK).has("Overview", "admin")
		b.post("/signout").want(http.StatusSeeOther)
		b.get("/").want(http.StatusSeeOther)
	})
}

func TestSignInLeadsToThisServerOnly(t *testing.T) {
	r := onSQLite(t)
	for _, next := range []string{"//evil.example", "///evil.example", "https://evil.example/", `/\evil.example`, "javascript:alert(1)", "evil", "/\t/evil.example"} {
		p := r.browser().post("/signin", "token", r.admin, "next", next).want(http.StatusSeeOther)
		if to := p.header.Get("Location"); to != "/" {
			t.Errorf("next %q leads to %q", next, to)
		}
	}
}

func TestOneTimeLinkWorksOnce(t *testing.T) {
	r := onSQLite(t)
	link := r.site.SignInPath()
	ahead := r.browser() // a browser that only looks ahead
	ahead.do("GET", link, nil, "Sec-Purpose", "prefetch").want(http.StatusNoContent)
	b := r.browser()
	b.get(link).want(http.StatusSeeOther)
	b.get("/").want(http.StatusOK)
	other := r.browser()
	other.get(link).want(http.StatusUnauthorized).has("already been used")
	other.get("/").want(http.StatusSeeOther)
	other.get("/signin?code=guessed").want(http.StatusUnauthorized)
}

func TestLinksAndSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLinks(), newSessions()
		code, other := l.make(time.Now()), l.make(time.Now())
		cookie, busy := s.begin("token", time.Now()), s.begin("token", time.Now())
		time.Sleep(linkLife - time.Second)
		if !l.use(code, time.Now()) || l.use(code, time.Now()) {
			t.Error("a link works once within its time")
		}
		time.Sleep(time.Second)
		if l.use(other, time.Now()) {
			t.Error("a link works after its time")
		}
		for range 20 {
			time.Sleep(sessionIdle - time.Hour)
			s.token(busy, time.Now())
		}
		if _, ok := s.token(cookie, time.Now()); ok {
			t.Error("a session that nobody used goes on")
		}
		if _, ok := s.token(busy, time.Now()); ok {
			t.Error("a session goes on for ever")
		}
	})
}

func TestRevokedTokenEndsItsSessions(t *testing.T) {
	both(t, func(r *rig) {
		text := r.token("ada", userstore.RoleViewer, "read")
		b := r.signedIn(text)
		b.get("/").want(http.StatusOK)
		found, err := userstore.On(r.db).TokenByText(r.t.Context(), text)
		if err != nil {
			r.t.Fatal(err)
		}
		err = r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := userstore.In(tx).RevokeToken(ctx, found.ID)
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
		b.get("/").want(http.StatusSeeOther)
	})
}

func TestSignedInBrowserReadsTheDocs(t *testing.T) {
	r := onSQLite(t)
	r.browser().get("/docs").want(http.StatusSeeOther)
	b := r.signedIn(r.admin)
	b.get("/docs").want(http.StatusOK).has("listLanes")
	b.get("/api/v1/lanes").want(http.StatusUnauthorized) // a cookie is no token
}
