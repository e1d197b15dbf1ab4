package store_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
)

// What is too large to be counted is estimated: to about a fifth how many rows there
// are, and whose they are.
func TestWhatALargeFileHasIsEstimated(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	fill := func(table, columns, values string, n int) {
		t.Helper()
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, fmt.Sprintf(`insert into %s (%s) with recursive n (i) as (select 1 union all select i + 1 from n where i < %d) select %s from n`, table, columns, n, values))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	fill("audit_log", "id, at, actor, action, subject, detail", `i * 7 + i % 5, i, 'ada', 'run.cancel', 'run ' || i, '{}'`, 30_000)
	fill("runs", "id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at", `'r' || i, 'workflow', case when i % 4 = 0 then 'busy' else 'w' || (i % 100) end,
		'h', 'producer', 'schedule', 'committed', 'committed', 1, i, i`, 20_000)
	// Where ids are far apart, as between a burst and what came before it, a sample may see
	// few of many rows; that is no reason to count them.
	fill("job_history", "id, task, state, run_at, finished_at, attempt", `case when i = 1 then 1 else 9000000000000000000 - i end, 't', 'succeeded', i, i, 1`, 5000)
	s, err := db.Storage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := map[string]store.TableSize{}
	for _, table := range s.Tables {
		size[table.Name] = table
	}
	near := func(what string, got, want, part float64) {
		t.Helper()
		if math.Abs(got-want) > want*part {
			t.Errorf("%s: about %.0f, but %.0f", what, got, want)
		}
	}
	near("runs", float64(size["runs"].Rows), 20_000, 0.01)
	near("entries", float64(size["audit_log"].Rows), 30_000, 0.25)
	if size["job_history"].Exact {
		t.Error("jobs were counted")
	}
	if size["runs"].Exact || !size["lanes"].Exact || size["lanes"].Rows != 0 {
		t.Errorf("%+v", size)
	}
	if b := size["runs"].Bytes; b < 2<<20 || b > s.Bytes || b < size["audit_log"].Bytes {
		t.Errorf("runs have %d of %d bytes, entries %d", b, s.Bytes, size["audit_log"].Bytes)
	}
}
