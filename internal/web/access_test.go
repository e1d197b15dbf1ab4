package web

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Pages have no way around the rules of the API: whoever may nothing can do
// nothing with any form, and pages that are not for them say so.
func TestFormsHaveNoRightsOfTheirOwn(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", "put", "1")
		r.waitDone("orders")
		text, err := os.ReadFile("routes.go")
		if err != nil {
			t.Fatal(err)
		}
		forms := regexp.MustCompile(`s\.page\("POST (/[^"]+)"`).FindAllSubmatch(text, -1)
		if len(forms) < 20 {
			t.Fatalf("only %d forms", len(forms))
		}
		lines := r.auditLines()
		b := r.signedIn(r.token("nobody", userstore.RoleOperator, "docs:read"))
		for _, form := range forms {
			path := strings.NewReplacer("{name}", "orders", "{id}", "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e").Replace(string(form[1]))
			if path == "/signout" {
				continue
			}
			p := b.post(path, "graphs", "http:poet", "name", "x", "scopes", "read", "days", "1", "from", "2020-01-01", "to", "2020-01-02", "outcome", "skip")
			if p.status < 400 || p.status >= 500 {
				t.Errorf("%s: %d", path, p.status)
			}
		}
		if after := r.auditLines(); after != lines {
			t.Errorf("%d lines of the audit log became %d", lines, after)
		}
	})
}

func (r *rig) auditLines() int {
	r.t.Helper()
	lines, err := r.db.AuditLog(r.t.Context(), 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(lines)
}

// an administrator sees Pawl's own jobs, and is not offered to change
// them; to others they are not there.
func TestPawlsOwnJobsAreShownAndNotTouched(t *testing.T) {
	both(t, func(r *rig) {
		var id int64
		err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
			jobs, err := tx.Enqueue(ctx, []store.JobSpec{{Task: "fail", Key: "workflow:x", RunAt: time.Now().Add(time.Hour)}})
			if err == nil {
				id = jobs[0].ID
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		path := "/jobs/" + strconv.FormatInt(id, 10)
		admin, otto := r.signedIn(r.admin), r.signedIn(r.token("otto", userstore.RoleOperator, "*"))
		admin.get(path).want(http.StatusOK).has("Pawl; it cannot be changed").hasNot("Cancel the job")
		admin.post(path+"/cancel", "back", path).want(http.StatusForbidden)
		otto.get(path).want(http.StatusNotFound)
		otto.post(path+"/cancel", "back", "/jobs").want(http.StatusNotFound)
		admin.get(path).want(http.StatusOK)
	})
}

// P1 15: what a page follows ends with the token of its session, and one user
// cannot follow everything there is.
func TestLivePagesEndWithTheirToken(t *testing.T) {
	both(t, func(r *rig) {
		text := r.token("vera", userstore.RoleViewer, "read")
		token, err := userstore.On(r.db).TokenByText(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		b := r.signedIn(text)
		done := make(chan struct{})
		go func() { defer close(done); b.get(livePath) }() // reads until it ends
		r.eventually("it is followed", func() bool { return r.pulse.count.Load() == 1 })
		var open []*access.Stream
		for range access.MostStreamsOfUser - 1 {
			s, err := r.site.cfg.Keeper.Open(&token)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, s)
		}
		if p := b.get(livePath).want(http.StatusTooManyRequests); p.header.Get("Retry-After") == "" {
			t.Error("does not say when to try again")
		}
		for _, s := range open {
			s.Close()
		}
		if err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := userstore.In(tx).RevokeToken(ctx, token.ID) // as another process does
			return err
		}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Error("goes on")
		}
	})
}
