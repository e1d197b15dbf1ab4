package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
)

func TestRunLogsKeepTheirOrder(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var want []LogLine
		add := func(n int, phase pawl.Phase) {
			var lines []LogLine
			for range n { // the same instant for all: only the order of arrival tells
				lines = append(lines, LogLine{Phase: phase, At: at(1), Level: "info", Text: fmt.Sprint("line ", len(want)+len(lines), "\nü")})
			}
			want = append(want, lines...)
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error { return tx.AddRunLogs(ctx, "r", lines) })
		}
		add(3, pawl.PhasePreparing)
		add(0, pawl.PhaseMutating)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			return tx.AddRunLogs(ctx, "another run", []LogLine{{Phase: pawl.PhaseExecuting, At: at(0), Level: "error", Text: "no"}})
		})
		add(1200, pawl.PhaseEmitting)
		for _, limit := range []int{0, 2, 1203, 5000} {
			got := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]LogLine, error) { return tx.RunLogs(ctx, "r", limit) })
			expect := want[:min(limit, len(want))]
			if limit == 0 {
				expect = nil
			}
			if diff := cmp.Diff(expect, got); diff != "" {
				t.Errorf("limit %d (-want +got):\n%.1000s", limit, diff)
			}
		}
		if none := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]LogLine, error) { return tx.RunLogs(ctx, "nobody", 9) }); len(none) != 0 {
			t.Errorf("lines of nobody: %v", none)
		}
	})
}
