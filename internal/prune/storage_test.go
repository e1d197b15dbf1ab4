package prune

import (
	"testing"

	"github.com/pawlrun/pawl/internal/store"
)

// A large database is not measured for every question, but after something was removed.
func TestALargeDatabaseIsMeasuredNowAndThen(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		count := func() (n int64) {
			t.Helper()
			out, err := k.s.Storage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range out.Tables {
				if out.Tables[i].Name == "calendars" {
					n = out.Tables[i].Rows
				}
				out.Tables[i] = Table{TableSize: store.TableSize{Name: "changed by its reader"}}
			}
			return n
		}
		add := func(name string) {
			k.exec(`insert into calendars (name, revision, days, created_at, updated_at) values ($1, 1, '[]', 1, 1)`, name)
		}
		add("a")
		if n := count(); n != 1 {
			t.Errorf("%d", n)
		}
		add("b")
		if n := count(); n != 2 {
			t.Errorf("a small one is not measured at each question: %d", n)
		}
		k.s.small = -1
		for _, name := range []string{"c", "d"} {
			count()
			add(name)
		}
		if n := count(); n != 2 {
			t.Errorf("a large one is measured at each question: %d", n)
		}
		if _, err := k.s.Prune(t.Context(), Options{Dry: true}); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 2 {
			t.Errorf("looking at what would go measures it anew: %d", n)
		}
		if _, err := k.s.Prune(t.Context(), Options{}); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 4 {
			t.Errorf("after a pass it is not measured anew: %d", n)
		}
	})
}
