package runstore

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// LogLine is one line that a handler logged.
type LogLine struct {
	Phase pawl.Phase
	At    time.Time
	Level string
	Text  string
}

// CountRunLogs counts the lines of a run.
func (tx Tx) CountRunLogs(ctx context.Context, runID string) (n int, err error) {
	if err := tx.QueryRow(ctx, `select count(*) from run_logs where run_id = $1`, runID).Scan(&n); err != nil {
		return 0, fmt.Errorf("count run logs: %w", err)
	}
	return n, nil
}

// AddRunLogs keeps lines of a run, behind the first ones that it has.
func (tx Tx) AddRunLogs(ctx context.Context, runID string, first int, lines []LogLine) error {
	for batch := range store.Batches(lines) {
		v := store.Values{}
		for _, l := range batch {
			v.Row(runID, first, string(l.Phase), store.Millis(l.At), l.Level, l.Text)
			first++
		}
		if err := tx.Post(ctx, `insert into run_logs (run_id, n, phase, at, level, text) values `+v.String(), v.Args...); err != nil {
			return fmt.Errorf("add run logs: %w", err)
		}
	}
	return nil
}

// RunLogs reads up to limit lines of a run, in their order.
func (tx Tx) RunLogs(ctx context.Context, runID string, limit int) ([]LogLine, error) {
	rows, err := tx.Query(ctx, `select phase, at, level, text from run_logs where run_id = $1 order by n limit $2`, runID, limit)
	return store.ScanAll(rows, err, "read run logs", func(row store.Scanner) (l LogLine, err error) {
		var at int64
		err = row.Scan(&l.Phase, &at, &l.Level, &l.Text)
		l.At = store.FromMillis(at)
		return l, err
	})
}
