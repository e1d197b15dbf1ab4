package web

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/store/userstore"
)

// The page of storage tells tables, lanes and ages, to administrators alone.
func TestStoragePageIsForAdministrators(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", "put", "1")
		r.waitDone("orders")
		p := r.signedIn(r.admin).get("/storage")
		for _, want := range []string{"<code>runs</code>", "orders", "<code>idle-runs</code>", "90d", "forever", "as below", "What it grows by is not known yet."} {
			if p.status != 200 || !strings.Contains(p.body, want) {
				t.Errorf("%d: there is no %q in %s", p.status, want, p.body)
			}
		}
		if p := r.signedIn(r.token("ann", userstore.RoleOperator, "*")).get("/storage"); p.status != 403 || strings.Contains(p.body, "orders") {
			t.Errorf("%d: %s", p.status, p.body)
		}
	})
}
