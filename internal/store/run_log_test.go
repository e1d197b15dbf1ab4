package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func TestRunLogsKeepTheirOrder(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var want []runstore.LogLine
		add := func(n int, phase pawl.Phase) {
			var lines []runstore.LogLine
			for range n { // the same instant for all: only the order of arrival tells
				lines = append(lines, runstore.LogLine{Phase: phase, At: store.AtForTest(1), Level: "info", Text: fmt.Sprint("line ", len(want)+len(lines), "\nü")})
			}
			want = append(want, lines...)
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				first, err := runstore.In(tx).CountRunLogs(ctx, "r")
				return errors.Join(err, runstore.In(tx).AddRunLogs(ctx, "r", first, lines))
			})
		}
		add(3, pawl.PhasePreparing)
		add(0, pawl.PhaseMutating)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return runstore.In(tx).AddRunLogs(ctx, "another run", 0, []runstore.LogLine{{Phase: pawl.PhaseExecuting, At: store.AtForTest(0), Level: "error", Text: "no"}})
		})
		add(1200, pawl.PhaseEmitting)
		for _, limit := range []int{0, 2, 1203, 5000} {
			got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]runstore.LogLine, error) {
				return runstore.In(tx).RunLogs(ctx, "r", limit)
			})
			expect := want[:min(limit, len(want))]
			if limit == 0 {
				expect = nil
			}
			if diff := cmp.Diff(expect, got); diff != "" {
				t.Errorf("limit %d (-want +got):\n%.1000s", limit, diff)
			}
		}
		if none := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]runstore.LogLine, error) {
			return runstore.In(tx).RunLogs(ctx, "nobody", 9)
		}); len(none) != 0 {
			t.Errorf("lines of nobody: %v", none)
		}
	})
}
