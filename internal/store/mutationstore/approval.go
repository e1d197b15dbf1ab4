package mutationstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// ApprovalState is what became of a question to a person.
type ApprovalState string

// The closed set of approval states.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalApproved ApprovalState = "approved" // and not made use of yet
	ApprovalRejected ApprovalState = "rejected"
	ApprovalExpired  ApprovalState = "expired"
	ApprovalUsed     ApprovalState = "used" // the call was made
)

// Approval is a question whether a call may be made.
type Approval struct {
	ID         string
	WorkflowID string
	RunID      string
	Tool       string
	Method     string
	Arguments  json.RawMessage // as they will be sent, secrets left out
	Address    string          // where it goes, secrets left out; empty if the connection cannot tell
	Hash       string          // of what is approved
	Title      string          // what the script calls it; not to be trusted
	State      ApprovalState
	PhaseAt    time.Time // the instant that mutate saw
	CreatedAt  time.Time
	ExpiresAt  time.Time
	WarnedAt   time.Time
	DecidedAt  time.Time
	DecidedBy  string
}

const approvalColumns = `id, workflow_id, run_id, tool, method, arguments, address, hash, title, state, phase_at, created_at, expires_at, warned_at, decided_at, decided_by`

func scanApproval(row store.Scanner) (Approval, error) {
	var a Approval
	var arguments string
	var address, title, by *string
	var phase, created, expires int64
	var warned, decided *int64
	err := row.Scan(&a.ID, &a.WorkflowID, &a.RunID, &a.Tool, &a.Method, &arguments, &address, &a.Hash, &title, &a.State, &phase, &created, &expires, &warned, &decided, &by)
	if err != nil {
		return Approval{}, err
	}
	a.Arguments, a.Address, a.Title, a.DecidedBy = json.RawMessage(arguments), store.FromNullText(address), store.FromNullText(title), store.FromNullText(by)
	a.PhaseAt, a.CreatedAt, a.ExpiresAt, a.WarnedAt, a.DecidedAt = store.FromMillis(phase), store.FromMillis(created), store.FromMillis(expires), store.FromNullMillis(warned), store.FromNullMillis(decided)
	return a, nil
}

// InsertApproval asks a question. A run has at most one that is pending.
func (tx Tx) InsertApproval(ctx context.Context, a Approval) (Approval, error) {
	a, err := scanApproval(tx.QueryRow(ctx, `insert into approvals (id, workflow_id, run_id, tool, method, arguments, address, hash, title, state, phase_at, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $12, $7, $8, 'pending', $9, $10, $11) returning `+approvalColumns,
		store.NewID(), a.WorkflowID, a.RunID, a.Tool, a.Method, string(a.Arguments), a.Hash, store.NullText(a.Title), store.Millis(a.PhaseAt), store.Millis(tx.Now), store.Millis(a.ExpiresAt), store.NullText(a.Address)))
	if err != nil {
		return Approval{}, fmt.Errorf("insert approval: %w", err)
	}
	return a, nil
}

// NewestApproval reads the last question of a run, or fails with
// pawl.ErrNotFound.
func (tx Tx) NewestApproval(ctx context.Context, runID string) (Approval, error) {
	a, err := scanApproval(tx.QueryRow(ctx, `select `+approvalColumns+` from approvals where run_id = $1 order by created_at desc, id desc limit 1`, runID))
	if errors.Is(err, store.ErrNoRow) {
		return a, &pawl.Error{Code: pawl.CodeNotFound, Op: "read approval", Msg: "nothing was asked about this run"}
	}
	return a, err
}

// MoveApproval decides a question that is still in the given state, or fails
// with pawl.ErrConflict.
func (tx Tx) MoveApproval(ctx context.Context, id string, from, to ApprovalState, by string) error {
	n, err := tx.Exec(ctx, `update approvals set state = $3, decided_at = $4, decided_by = coalesce($5, decided_by) where id = $1 and state = $2`,
		id, string(from), string(to), store.Millis(tx.Now), store.NullText(by))
	if err != nil {
		return fmt.Errorf("decide approval: %w", err)
	}
	if n == 0 {
		return &pawl.Error{Code: pawl.CodeConflict, Op: "decide approval", Msg: fmt.Sprintf("the question is not %s any more", from)}
	}
	return nil
}

// DropApproval ends the question of a run that is over, if there is one.
func (tx Tx) DropApproval(ctx context.Context, runID string) error {
	_, err := tx.Exec(ctx, `update approvals set state = 'expired', decided_at = $2 where run_id = $1 and state in ('pending', 'approved')`, runID, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("drop approval: %w", err)
	}
	return nil
}

// WarnedOfApproval notes that somebody was told that a question expires soon.
func (tx Tx) WarnedOfApproval(ctx context.Context, id string) error {
	_, err := tx.Exec(ctx, `update approvals set warned_at = $2 where id = $1`, id, store.Millis(tx.Now))
	return err
}

// ApprovalFilter narrows a list of questions.
type ApprovalFilter struct {
	State      ApprovalState
	WorkflowID string // empty is all
	Oldest     bool   // first; else the newest
}

// ListApprovals reads up to limit questions in a state; last is the one that
// was read last, of an earlier part of the same list.
func (tx Tx) ListApprovals(ctx context.Context, f ApprovalFilter, last store.Place, limit int) ([]Approval, error) {
	further, order := "(created_at, id) < (?, ?)", "created_at desc, id desc"
	if f.Oldest {
		further, order = "(created_at, id) > (?, ?)", "created_at, id"
	}
	var c store.Where
	c.Add("state = ?", string(f.State))
	if f.WorkflowID != "" {
		c.Add("workflow_id = ?", f.WorkflowID)
	}
	if last.ID != "" {
		c.Add(further, store.Millis(last.CreatedAt), last.ID)
	}
	c.Args = append(c.Args, limit)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from approvals where %s order by %s limit $%d`, approvalColumns, c.String(), order, len(c.Args)), c.Args...)
	return store.ScanAll(rows, err, "list approvals", scanApproval)
}

// ApprovalRule is an approval for all calls of a method by a workflow.
type ApprovalRule struct {
	ID         string
	WorkflowID string
	Tool       string
	Method     string
	CreatedBy  string
	CreatedAt  time.Time
	RevokedBy  string
	RevokedAt  time.Time
}

const ruleColumns = `id, workflow_id, tool, method, created_by, created_at, revoked_by, revoked_at`

func scanRule(row store.Scanner) (ApprovalRule, error) {
	var r ApprovalRule
	var created int64
	var revoked *int64
	var by *string
	if err := row.Scan(&r.ID, &r.WorkflowID, &r.Tool, &r.Method, &r.CreatedBy, &created, &by, &revoked); err != nil {
		return ApprovalRule{}, err
	}
	r.CreatedAt, r.RevokedAt, r.RevokedBy = store.FromMillis(created), store.FromNullMillis(revoked), store.FromNullText(by)
	return r, nil
}

// AddApprovalRule approves all calls of a method by a workflow.
func (tx Tx) AddApprovalRule(ctx context.Context, workflowID, tool, method, by string) error {
	_, err := tx.Exec(ctx, `insert into approval_rules (id, workflow_id, tool, method, created_by, created_at) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
		store.NewID(), workflowID, tool, method, by, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("add approval rule: %w", err)
	}
	return nil
}

// ApprovalRules reads the rules of a workflow that hold.
func (tx Tx) ApprovalRules(ctx context.Context, workflowID string) ([]ApprovalRule, error) {
	rows, err := tx.Query(ctx, `select `+ruleColumns+` from approval_rules where workflow_id = $1 and revoked_at is null order by tool, method`, workflowID)
	return store.ScanAll(rows, err, "read approval rules", scanRule)
}

// RevokeApprovalRule ends a rule, or fails with pawl.ErrNotFound.
func (tx Tx) RevokeApprovalRule(ctx context.Context, workflowID, tool, method, by string) error {
	n, err := tx.Exec(ctx, `update approval_rules set revoked_at = $4, revoked_by = $5 where workflow_id = $1 and tool = $2 and method = $3 and revoked_at is null`,
		workflowID, tool, method, store.Millis(tx.Now), by)
	if err != nil {
		return fmt.Errorf("revoke approval rule: %w", err)
	}
	if n == 0 {
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "revoke approval rule", Msg: fmt.Sprintf("%s.%s is not approved for good", tool, method)}
	}
	return nil
}
