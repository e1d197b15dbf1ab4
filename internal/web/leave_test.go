package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/bulk"
)

// sideBySide is how many lanes of a page are read side by side on PostgreSQL: each
// may have a statement under way.
const sideBySide = 50

// A request whose client is gone asks the database nothing more, whichever
// route it is of (P1 10).
func TestEveryRouteStopsWhenItsClientLeaves(t *testing.T) {
	both(t, func(r *rig) {
		r.filled(bulk.Size{Lanes: 60, Runs: 2000})
		who := r.signedIn(r.admin)
		most := 1
		if r.db.Shared() {
			most = sideBySide
		}
		for _, path := range append(r.readable(r.admin, false), planPages()...) {
			if strings.Contains(path, "limit=500") {
				path = strings.ReplaceAll(path, "limit=500", "limit=50")
			}
			asked := len(r.asked.during(func() { r.leaving(who, path, 0) }))
			if asked < 4 { // too short to be left
				continue
			}
			after := r.asked.during(func() { r.leaving(who, path, asked/2) })
			if rest := len(after) - asked/2; rest > most {
				t.Errorf("%s: %d statements followed after its client had left, of %d:\n%s", path, rest, asked, after[len(after)-1].sql)
			}
		}
	})
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// leaving asks for something, and leaves before the nth statement; 0 stays.
func (r *rig) leaving(who *browser, path string, n int) {
	ctx, leave := context.WithCancel(r.t.Context())
	defer leave()
	if n > 0 {
		r.asked.at(n, leave)
		defer r.asked.at(0, nil)
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if strings.HasPrefix(path, "/api/") || path == "/metrics" || path == "/openapi.json" || path == "/docs" {
		req.Header.Set("Authorization", "Bearer "+r.admin)
	} else {
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		for _, c := range who.http.Jar.Cookies(mustURL(r.t, r.server.URL)) {
			req.AddCookie(c)
		}
	}
	r.site.ServeHTTP(httptest.NewRecorder(), req)
}
