package workflowstore

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// What became of a proposal.
const (
	RepairActivated = "activated" // it came into force
	RepairRejected  = "rejected"  // it was looked at and refused
	RepairFailed    = "failed"    // there was none
	RepairProposed  = "proposed"  // it waits for a person
)

// Repair is a script that was proposed after a script failed.
type Repair struct {
	ID          string
	WorkflowID  string
	RunID       string // that failed
	BaseVersion string // the script that failed
	Version     string // the one that came into force; empty if none did
	State       string
	Reason      string // why it did not come into force
	Script      string
	Explanation string
	Repairer    string
	CreatedAt   time.Time
	DecidedBy   string // the person who agreed to it or refused it; empty mostly
}

const repairColumns = `id, workflow_id, run_id, base_version, version, state, reason, script, explanation, repairer, created_at, decided_by`

func scanRepair(row store.Scanner) (Repair, error) {
	var r Repair
	var version, reason, script, explanation, decided *string
	var created int64
	if err := row.Scan(&r.ID, &r.WorkflowID, &r.RunID, &r.BaseVersion, &version, &r.State, &reason, &script, &explanation, &r.Repairer, &created, &decided); err != nil {
		return Repair{}, err
	}
	r.Version, r.Reason, r.Script, r.Explanation, r.CreatedAt = store.FromNullText(version), store.FromNullText(reason), store.FromNullText(script), store.FromNullText(explanation), store.FromMillis(created)
	r.DecidedBy = store.FromNullText(decided)
	return r, nil
}

// AddRepair notes a proposal.
func (tx Tx) AddRepair(ctx context.Context, r Repair) error {
	_, err := tx.Exec(ctx, `insert into repairs (`+repairColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		store.NewID(), r.WorkflowID, r.RunID, r.BaseVersion, store.NullText(r.Version), r.State, store.NullText(r.Reason), store.NullText(r.Script), store.NullText(r.Explanation), r.Repairer, store.Millis(tx.Now), store.NullText(r.DecidedBy))
	if err != nil {
		return fmt.Errorf("note repair: %w", err)
	}
	return nil
}

// DecideRepair ends the waiting of a proposal for a run; version is the one that
// comes into force, empty if none does.
func (tx Tx) DecideRepair(ctx context.Context, runID, state, version, reason, by string) error {
	_, err := tx.Exec(ctx, `update repairs set state = $2, version = $3, reason = coalesce($4, reason), decided_by = $5 where run_id = $1 and state = 'proposed'`,
		runID, state, store.NullText(version), store.NullText(reason), store.NullText(by))
	if err != nil {
		return fmt.Errorf("decide about a repair: %w", err)
	}
	return nil
}

// RepairsOfRuns reads the proposals for some runs, the oldest first.
func (tx Tx) RepairsOfRuns(ctx context.Context, runIDs []string) ([]Repair, error) {
	var out []Repair
	for part := range store.Batches(runIDs) {
		list, args := store.In(nil, part)
		rows, err := tx.Query(ctx, `select `+repairColumns+` from repairs where run_id in `+list+` order by created_at, id`, args...)
		found, err := store.ScanAll(rows, err, "read repairs", scanRepair)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// ListRepairs reads up to limit proposals for a workflow, the newest first.
func (tx Tx) ListRepairs(ctx context.Context, workflowID string, before store.Place, limit int) ([]Repair, error) {
	var c store.Where
	c.Add("workflow_id = ?", workflowID)
	if before.ID != "" {
		c.Add("(created_at, id) < (?, ?)", store.Millis(before.CreatedAt), before.ID)
	}
	c.Args = append(c.Args, limit)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from repairs where %s order by created_at desc, id desc limit $%d`, repairColumns, c.String(), len(c.Args)), c.Args...)
	return store.ScanAll(rows, err, "list repairs", scanRepair)
}
