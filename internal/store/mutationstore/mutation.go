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

// Mutation is one call that has side effects. Its row is durable before the
// call leaves the host.
type Mutation struct {
	ID             string
	WorkflowID     string
	RunID          string
	N              int // counts the calls of a run; all but one have failed
	Tool           string
	Method         string
	Arguments      json.RawMessage
	IdempotencyKey string
	Title          string // what the script calls it; not to be trusted
	State          pawl.MutationState
	CanReconcile   bool
	Result         json.RawMessage
	ErrorClass     pawl.Class
	ErrorMessage   string

	ReconcileAttempts int
	LastReconcileAt   time.Time
	NextReconcileAt   time.Time
	ResolvedBy        string
	ResolvedAt        time.Time
	CreatedAt         time.Time
	UpdatedAt         time.Time

	// AbsentAfter is given to InsertMutation: how long after it is written down
	// a call may still be under way at the other end. AbsentAt is the instant
	// that it leads to, kept for whoever asks: before it, "not there" proves
	// nothing. Zero if the call cannot be asked about.
	AbsentAfter time.Duration
	AbsentAt    time.Time
	// KeptFor is the hash of the act of a call that failed without an answer:
	// whoever makes the call again uses the same key. Empty if nobody is
	// to.
	KeptFor string
}

const mutationColumns = `id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, error_class, error_message,
	reconcile_attempts, last_reconcile_at, next_reconcile_at, resolved_by, resolved_at, created_at, updated_at, absent_at, kept_for`

func scanMutation(row store.Scanner) (Mutation, error) {
	var m Mutation
	var arguments string
	var title, result, class, message, by, kept *string
	var can, created, updated int64
	var last, next, resolved, absent *int64
	err := row.Scan(&m.ID, &m.WorkflowID, &m.RunID, &m.N, &m.Tool, &m.Method, &arguments, &m.IdempotencyKey, &title, &m.State, &can, &result, &class, &message,
		&m.ReconcileAttempts, &last, &next, &by, &resolved, &created, &updated, &absent, &kept)
	if err != nil {
		return Mutation{}, err
	}
	m.Arguments, m.Title, m.CanReconcile, m.Result = json.RawMessage(arguments), store.FromNullText(title), can == 1, store.FromNullJSON(result)
	m.ErrorClass, m.ErrorMessage, m.ResolvedBy = pawl.Class(store.FromNullText(class)), store.FromNullText(message), store.FromNullText(by)
	m.LastReconcileAt, m.NextReconcileAt, m.ResolvedAt = store.FromNullMillis(last), store.FromNullMillis(next), store.FromNullMillis(resolved)
	m.CreatedAt, m.UpdatedAt = store.FromMillis(created), store.FromMillis(updated)
	m.AbsentAt, m.KeptFor = store.FromNullMillis(absent), store.FromNullText(kept)
	return m, nil
}

// InsertMutation opens the ledger row of a call, in flight, and returns it without
// its N. N and AbsentAt are given here. The key must be a new one, or one that TakeKey returned in the
// same transaction.
func (tx Tx) InsertMutation(ctx context.Context, m Mutation, inputs []string) (Mutation, error) {
	can := 0
	if m.CanReconcile {
		can = 1
	}
	var absent *int64
	if m.AbsentAfter > 0 {
		m.AbsentAt = tx.Now.Add(m.AbsentAfter)
		absent = store.NullMillis(m.AbsentAt)
	}
	err := tx.Post(ctx, `insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, created_at, updated_at, absent_at)
		values ($1, $2, $3, (select coalesce(max(n), 0) + 1 from mutations where run_id = $3), $4, $5, $6, $7, $8, 'in_flight', $9, $10, $10, $11)`,
		m.ID, m.WorkflowID, m.RunID, m.Tool, m.Method, string(m.Arguments), m.IdempotencyKey, store.NullText(m.Title), can, store.Millis(tx.Now), absent)
	if err != nil {
		return Mutation{}, fmt.Errorf("insert mutation: %w", err)
	}
	m.State, m.CreatedAt, m.UpdatedAt = pawl.MutationInFlight, tx.Now, tx.Now
	for batch := range store.Batches(inputs) {
		v := store.Values{}
		for _, id := range batch {
			v.Row(id, m.ID)
		}
		if err := tx.Post(ctx, `insert into mutation_inputs (input_id, mutation_id) values `+v.String()+` on conflict do nothing`, v.Args...); err != nil {
			return Mutation{}, fmt.Errorf("link mutation: %w", err)
		}
	}
	return m, nil
}

// RunMutations reads the calls of a run in their order.
func (tx Tx) RunMutations(ctx context.Context, runID string) ([]Mutation, error) {
	rows, err := tx.Query(ctx, `select `+mutationColumns+` from mutations where run_id = $1 order by n`, runID)
	return store.ScanAll(rows, err, "read mutations", scanMutation)
}

// MutationChange is what becomes of a mutation; empty fields stay as they are.
type MutationChange struct {
	To           pawl.MutationState
	Result       json.RawMessage
	ErrorClass   pawl.Class
	ErrorMessage string
	ResolvedBy   string // for final states
	KeepFor      string // with MutationFailed: the act whose next call carries the same key
}

// TakeKey returns the key that the next call for an act must carry, and hands
// it over to that call; it is empty if a new one is to be made.
func (tx Tx) TakeKey(ctx context.Context, workflowID, act string) (key string, err error) {
	rows, err := tx.Query(ctx, `update mutations set kept_for = null, updated_at = $3 where workflow_id = $1 and kept_for = $2 returning idempotency_key`, workflowID, act, store.Millis(tx.Now))
	keys, err := store.ScanAll(rows, err, "take the key of a call", store.ScanText)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	return keys[len(keys)-1], nil
}

// KeepsKeys reports whether a workflow has a key that TakeKey would return for some
// act.
func (tx Tx) KeepsKeys(ctx context.Context, workflowID string) (bool, error) {
	var n int
	err := tx.QueryRow(ctx, `select count(*) from (select 1 from mutations where workflow_id = $1 and kept_for is not null limit 1) as k`, workflowID).Scan(&n)
	return n > 0, err
}

// MoveMutation changes the state of a mutation that is still in the given one,
// or fails with pawl.ErrConflict.
func (tx Tx) MoveMutation(ctx context.Context, id string, from pawl.MutationState, c MutationChange) error {
	final := c.To == pawl.MutationApplied || c.To == pawl.MutationFailed || c.To == pawl.MutationSkipped
	var resolved *int64
	if final {
		resolved = store.NullMillis(tx.Now)
	}
	otherwise := &pawl.Error{Code: pawl.CodeConflict, Op: "move mutation", Msg: fmt.Sprintf("the call is not %s any more", from)}
	return tx.Expect(ctx, 1, otherwise, `update mutations set state = $3, result = coalesce($4, result), error_class = coalesce($5, error_class), error_message = coalesce($6, error_message),
		resolved_by = coalesce($7, resolved_by), resolved_at = coalesce($8, resolved_at), next_reconcile_at = null, updated_at = $9, kept_for = $10
		where id = $1 and state = $2`,
		id, string(from), string(c.To), store.NullText(string(c.Result)), store.NullText(string(c.ErrorClass)), store.NullText(c.ErrorMessage), store.NullText(c.ResolvedBy), resolved, store.Millis(tx.Now), store.NullText(c.KeepFor))
}

// ReconcileLater notes that a mutation was asked for in vain, and when it is
// asked for next.
func (tx Tx) ReconcileLater(ctx context.Context, id string, attempts int, next time.Time) error {
	_, err := tx.Exec(ctx, `update mutations set reconcile_attempts = $2, last_reconcile_at = $3, next_reconcile_at = $4, updated_at = $3
		where id = $1 and state = 'needs_reconcile'`, id, attempts, store.Millis(tx.Now), store.NullMillis(next))
	if err != nil {
		return fmt.Errorf("note reconcile attempt: %w", err)
	}
	return nil
}

// TransferMutation gives the unresolved call of a run to another one, as its
// last.
func (tx Tx) TransferMutation(ctx context.Context, runID, to string) error {
	_, err := tx.Exec(ctx, `update mutations set run_id = $2, n = (select coalesce(max(n), 0) + 1 from mutations where run_id = $2), updated_at = $3
		where run_id = $1 and state in ('in_flight', 'needs_reconcile', 'indeterminate')`, runID, to, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("transfer mutation: %w", err)
	}
	return nil
}

// GetMutation reads a mutation, or fails with pawl.ErrNotFound.
func (tx Tx) GetMutation(ctx context.Context, id string) (Mutation, error) {
	m, err := scanMutation(tx.QueryRow(ctx, `select `+mutationColumns+` from mutations where id = $1`, id))
	if errors.Is(err, store.ErrNoRow) {
		return m, &pawl.Error{Code: pawl.CodeNotFound, Op: "read mutation", Msg: "there is no such call"}
	}
	return m, err
}

// MutationCursor is how far a list of mutations was read.
type MutationCursor struct {
	CreatedAt time.Time
	ID        string
}

// ListMutations reads up to limit calls of a workflow, the newest first.
func (tx Tx) ListMutations(ctx context.Context, workflowID string, before MutationCursor, limit int) ([]Mutation, error) {
	var c store.Where
	c.Add("workflow_id = ?", workflowID)
	if before.ID != "" {
		c.Add("(created_at, id) < (?, ?)", store.Millis(before.CreatedAt), before.ID)
	}
	c.Args = append(c.Args, limit)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from mutations where %s order by created_at desc, id desc limit $%d`, mutationColumns, c.String(), len(c.Args)), c.Args...)
	return store.ScanAll(rows, err, "list mutations", scanMutation)
}

// NewestMutation reads the newest call of a workflow; none if there is none. It names the
// workflow in its order, which only the index of the list has, so that it can be read for
// many in one statement; see runstore's newestRun.
func NewestMutation(ctx context.Context, tx *store.Tx, workflowID string) ([]Mutation, error) {
	rows, err := tx.Query(ctx, `select `+mutationColumns+` from mutations where workflow_id between $1 and $1 order by workflow_id desc, created_at desc, id desc limit 1`, workflowID)
	return store.ScanAll(rows, err, "read newest mutation", scanMutation)
}

// MutationsOfInput reads the calls that come from an input, the oldest first.
func (tx Tx) MutationsOfInput(ctx context.Context, inputID string) ([]Mutation, error) {
	rows, err := tx.Query(ctx, `select `+mutationColumns+` from mutations where id in (select mutation_id from mutation_inputs where input_id = $1) order by created_at, id`, inputID)
	return store.ScanAll(rows, err, "read mutations of an input", scanMutation)
}

// InputsOfMutation reads the inputs that a call comes from.
func (tx Tx) InputsOfMutation(ctx context.Context, mutationID string) ([]string, error) {
	rows, err := tx.Query(ctx, `select input_id from mutation_inputs where mutation_id = $1 order by input_id`, mutationID)
	return store.ScanAll(rows, err, "read inputs of a mutation", store.ScanText)
}
