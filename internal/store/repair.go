package store

import (
	"context"
	"fmt"
	"time"
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

func scanRepair(row Scanner) (Repair, error) {
	var r Repair
	var version, reason, script, explanation, decided *string
	var created int64
	if err := row.Scan(&r.ID, &r.WorkflowID, &r.RunID, &r.BaseVersion, &version, &r.State, &reason, &script, &explanation, &r.Repairer, &created, &decided); err != nil {
		return Repair{}, err
	}
	r.Version, r.Reason, r.Script, r.Explanation, r.CreatedAt = FromNullText(version), FromNullText(reason), FromNullText(script), FromNullText(explanation), FromMillis(created)
	r.DecidedBy = FromNullText(decided)
	return r, nil
}

// AddRepair notes a proposal.
func (tx *Tx) AddRepair(ctx context.Context, r Repair) error {
	_, err := tx.Exec(ctx, `insert into repairs (`+repairColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		NewID(), r.WorkflowID, r.RunID, r.BaseVersion, NullText(r.Version), r.State, NullText(r.Reason), NullText(r.Script), NullText(r.Explanation), r.Repairer, Millis(tx.Now), NullText(r.DecidedBy))
	if err != nil {
		return fmt.Errorf("note repair: %w", err)
	}
	return nil
}

// DecideRepair ends the waiting of a proposal for a run; version is the one that
// comes into force, empty if none does.
func (tx *Tx) DecideRepair(ctx context.Context, runID, state, version, reason, by string) error {
	_, err := tx.Exec(ctx, `update repairs set state = $2, version = $3, reason = coalesce($4, reason), decided_by = $5 where run_id = $1 and state = 'proposed'`,
		runID, state, NullText(version), NullText(reason), NullText(by))
	if err != nil {
		return fmt.Errorf("decide about a repair: %w", err)
	}
	return nil
}

// RepairsOfRuns reads the proposals for some runs, the oldest first.
func (tx *Tx) RepairsOfRuns(ctx context.Context, runIDs []string) ([]Repair, error) {
	var out []Repair
	for part := range Batches(runIDs) {
		list, args := In(nil, part)
		rows, err := tx.Query(ctx, `select `+repairColumns+` from repairs where run_id in `+list+` order by created_at, id`, args...)
		found, err := ScanAll(rows, err, "read repairs", scanRepair)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// ListRepairs reads up to limit proposals for a workflow, the newest first.
func (tx *Tx) ListRepairs(ctx context.Context, workflowID string, before Place, limit int) ([]Repair, error) {
	var c Where
	c.Add("workflow_id = ?", workflowID)
	if before.ID != "" {
		c.Add("(created_at, id) < (?, ?)", Millis(before.CreatedAt), before.ID)
	}
	c.Args = append(c.Args, limit)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from repairs where %s order by created_at desc, id desc limit $%d`, repairColumns, c.String(), len(c.Args)), c.Args...)
	return ScanAll(rows, err, "list repairs", scanRepair)
}
