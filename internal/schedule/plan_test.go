package schedule

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// The statements for many slots go from the slots to their rows, by indexes that
// have one row for each; whatever else there is costs nothing.
func TestStatementsForManySlotsReadNothingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pawl.db")
	synctest.Test(t, func(t *testing.T) {
		k := newKitWith(t, "sqlite:"+file, &poet{keys: map[string]int{}})
		var mu sync.Mutex
		seen := map[string][]any{}
		k.trace = func(sql string, args []any) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(sql, "json_each") {
				seen[sql] = args
			}
		}
		sch := k.create(ask("s", ""))
		k.create(ask("t", ""))
		k.pass(time.Until(sch.NextRunAt) + time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
		k.trace = nil
		if len(seen) < 11 {
			t.Errorf("only %d statements for many", len(seen))
		}
		for sql, args := range seen {
			plan := k.plan(sql, args)
			if !strings.HasPrefix(plan[0], "SCAN json_each") {
				t.Errorf("it does not begin with the slots: %s\n%s", sql, strings.Join(plan, "\n"))
			}
			for _, step := range plan[1:] {
				if strings.HasPrefix(step, "SCAN") {
					t.Errorf("it reads a whole table: %s\n%s", sql, strings.Join(plan, "\n"))
				}
			}
		}
	})
}

// plan is how SQLite goes about a statement.
func (k *kit) plan(sql string, args []any) (steps []string) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, "explain query plan "+sql, args...)
		steps, err = store.ScanAll(rows, err, "explain", func(row store.Scanner) (step string, err error) {
			var id, parent, unused int
			return step, row.Scan(&id, &parent, &unused, &step)
		})
		return err
	})
	return steps
}
