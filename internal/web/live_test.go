package web

import (
	"net/http"
	"testing"

	"github.com/pawlrun/pawl/internal/store/userstore"
)

// When a schedule of somebody else does something is not told either: its page
// is not there, so neither is its stream.
func TestOpenPagesAreNotToldOfSchedulesOfOthers(t *testing.T) {
	r := onSQLite(t)
	id := r.schedule("poems", "poet", "0 9 * * *")
	answer := func(b *browser) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+"/live?lane=schedule:"+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := answer(r.signedIn(r.token("bob", userstore.RoleOperator, "*"))); got != http.StatusNotFound {
		t.Errorf("bob follows a schedule of the admin: %d", got)
	}
	if got := answer(r.signedIn(r.admin)); got != http.StatusOK {
		t.Errorf("its owner cannot follow it: %d", got)
	}
}
