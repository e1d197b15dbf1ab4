package workflowstore

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/internal/store"
)

// How a workflow came to a right.
const (
	RightDeclared = "declared" // a version that a person deployed names the call
	RightUsed     = "used"     // such a version made it
	RightGranted  = "granted"  // a person said so
	RightAsked    = "asked"    // none: it was refused, and a person may grant it
)

// Right is a method of a connection that versions of a workflow may call which
// no person deployed.
type Right struct {
	Tool    string
	Method  string
	How     string
	Subject string // the version that declared or used it, or the run that was refused
}

// AddRights keeps rights that people gave by what they deployed. One that is
// there stays as it is; one that was only asked for becomes a right.
func (tx Tx) AddRights(ctx context.Context, workflowID string, list []Right) error {
	for part := range store.Batches(list) {
		v := store.Values{}
		for _, r := range part {
			v.Row(workflowID, r.Tool, r.Method, r.How, r.Subject, store.Millis(tx.Now))
		}
		err := tx.Post(ctx, `insert into workflow_rights (workflow_id, tool, method, how, subject, created_at) values `+v.String()+`
			on conflict (workflow_id, tool, method) do update set how = excluded.how, subject = excluded.subject, created_at = excluded.created_at
			where workflow_rights.how = 'asked'`, v.Args...)
		if err != nil {
			return fmt.Errorf("keep rights: %w", err)
		}
	}
	return nil
}

// GrantRights turns what was refused to a run into rights, and returns them.
func (tx Tx) GrantRights(ctx context.Context, workflowID, runID, by string) ([]Right, error) {
	rows, err := tx.Query(ctx, `update workflow_rights set how = 'granted', created_by = $3, created_at = $4
		where workflow_id = $1 and subject = $2 and how = 'asked' returning tool, method, how, subject`, workflowID, runID, by, store.Millis(tx.Now))
	return store.ScanAll(rows, err, "grant rights", scanRight)
}

// WorkflowRights reads the rights of a workflow.
func (tx Tx) WorkflowRights(ctx context.Context, workflowID string) ([]Right, error) {
	rows, err := tx.Query(ctx, `select tool, method, how, subject from workflow_rights where workflow_id = $1 and how <> 'asked' order by tool, method`, workflowID)
	return store.ScanAll(rows, err, "read rights", scanRight)
}

func scanRight(row store.Scanner) (r Right, err error) {
	return r, row.Scan(&r.Tool, &r.Method, &r.How, &r.Subject)
}

// FreeWorkflowVersion notes that a person deployed a version that was made by
// auto-fix; it reports whether that is news.
func (tx Tx) FreeWorkflowVersion(ctx context.Context, workflowID, version string) (bool, error) {
	n, err := tx.Exec(ctx, `update workflow_versions set confined = 0 where workflow_id = $1 and version = $2 and confined = 1`, workflowID, version)
	if err != nil {
		return false, fmt.Errorf("change workflow version: %w", err)
	}
	return n > 0, nil
}
