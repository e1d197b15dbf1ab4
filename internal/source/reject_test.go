package source

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// A row that does not fit and comes with every fetch is listed once, with how
// often it was met; rows that differ, in what they are or where, are told apart.
func TestARejectIsListedOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.api.on(func(n int, w http.ResponseWriter, _ *http.Request) bool {
			odd := `{"id":"b","n":"odd"}`
			if n == 2 {
				odd += `,{"id":"c","n":"other"},{"id":"b","n":"odd"}`
			}
			_, _ = io.WriteString(w, `{"items":[{"id":"a","n":1},`+odd+`]}`)
			return true
		})
		src := k.apply(definition("s", "/whole", ""))
		for range 3 {
			k.work(src)
			k.wantStatus("s", pawl.StatusCommitted)
			k.change(`update source_state set last_success_at = 1`)
		}
		k.work(k.apply(definition("another", "/whole", "")))
		list := func(name string, before int64, limit int) (out []sourcestore.Reject) {
			t.Helper()
			if err := k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				out, err = sourcestore.In(tx).ListRejects(ctx, name, before, limit)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return out
		}
		var told []string
		first := list("s", 0, 1)
		for _, r := range append(first, list("s", first[0].ID, 10)...) {
			told = append(told, fmt.Sprint(strings.Contains(r.Raw, `"b"`), r.Times, r.Row, r.RunID == k.look("s").row.ID, r.CreatedAt.IsZero()))
		}
		if got := strings.Join(told, "; "); got != "true 4 2 true false; false 1 3 false false" {
			t.Errorf("the rejects are %s", got)
		}
		if other := list("another", 0, 10); len(other) != 1 || other[0].Times != 1 || !strings.Contains(other[0].Reason, "n") {
			t.Errorf("the rejects of the other source are %+v", other)
		}
	})
}
