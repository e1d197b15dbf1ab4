package runstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunRead is something that a handler read, and what it was answered.
type RunRead struct {
	Phase  pawl.Phase
	Op     string          // peek, getByIds, tool
	Call   json.RawMessage // the arguments
	Answer json.RawMessage // nil: it failed, or was too large to keep
	Error  string
	Cut    bool // the answer was too large to keep
	At     time.Time
}

// AddRunReads keeps what a run read; first is how many it read before.
func (tx Tx) AddRunReads(ctx context.Context, runID string, first int, list []RunRead) error {
	for part := range store.Batches(list) {
		v := store.Values{}
		for i, r := range part {
			cut := 0
			if r.Cut {
				cut = 1
			}
			v.Row(runID, first+i, string(r.Phase), r.Op, string(r.Call), store.NullText(string(r.Answer)), store.NullText(r.Error), cut, store.Millis(r.At))
		}
		first += len(part)
		if err := tx.Post(ctx, `insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at) values `+v.String(), v.Args...); err != nil {
			return fmt.Errorf("keep what a run read: %w", err)
		}
	}
	return nil
}

// ForgetRunReads removes what a run read from a number on: it reads again.
func (tx Tx) ForgetRunReads(ctx context.Context, runID string, from int) error {
	if _, err := tx.Exec(ctx, `delete from run_reads where run_id = $1 and n >= $2`, runID, from); err != nil {
		return fmt.Errorf("forget what a run read: %w", err)
	}
	return nil
}

// RunReads reads what a run read, in its order.
func (tx Tx) RunReads(ctx context.Context, runID string) ([]RunRead, error) {
	rows, err := tx.Query(ctx, `select phase, op, call, answer, error, cut, at from run_reads where run_id = $1 order by n`, runID)
	return store.ScanAll(rows, err, "read what a run read", func(row store.Scanner) (r RunRead, err error) {
		var call string
		var answer, failure *string
		var cut int
		var at int64
		if err = row.Scan(&r.Phase, &r.Op, &call, &answer, &failure, &cut, &at); err != nil {
			return r, err
		}
		r.Call, r.Answer, r.Error, r.Cut, r.At = json.RawMessage(call), store.FromNullJSON(answer), store.FromNullText(failure), cut == 1, store.FromMillis(at)
		return r, nil
	})
}
