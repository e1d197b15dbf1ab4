package executionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Execution is what the execution service was asked for under one idempotency
// key, and what became of it.
type Execution struct {
	Key        string
	Hash       string // of what was asked
	RunID      string
	Attempt    int
	GraphID    string
	GrantID    string
	Remote     json.RawMessage // what the service must know to go on after a crash; nil: nothing
	Interrupt  json.RawMessage // what the graph asks a person; nil: nothing
	CancelAt   time.Time       // when somebody asked to stop it
	Owner      string          // the claim that executes it; empty: nobody does
	LeaseUntil time.Time       // by the clock of the owner; zero: nobody is expected to go on by himself
	Finished   bool
	Outcome    Outcome
	Cost       int64 // 10^-7 USD
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt time.Time
}

// Outcome is how an execution ended.
type Outcome struct {
	OK           bool
	TraceID      string
	ErrorCode    string
	ErrorMessage string
	Output       json.RawMessage
}

// Alive reports whether somebody executes it, as far as its lease tells.
func (e *Execution) Alive(now time.Time) bool {
	return !e.Finished && e.Owner != "" && now.Before(e.LeaseUntil)
}

const executionColumns = `idempotency_key, request_hash, run_id, attempt, graph_id, grant_id, trace_id, ok, error_code, error_message,
	output, cost, remote, interrupt, cancel_at, owner, lease_until, created_at, updated_at, finished_at`

func scanExecution(row store.Scanner) (Execution, error) {
	var e Execution
	var trace, code, message, output, remote, interrupt, owner *string
	var ok, cancel, lease, finished *int64
	var created, updated int64
	err := row.Scan(&e.Key, &e.Hash, &e.RunID, &e.Attempt, &e.GraphID, &e.GrantID, &trace, &ok, &code, &message,
		&output, &e.Cost, &remote, &interrupt, &cancel, &owner, &lease, &created, &updated, &finished)
	if err != nil {
		return Execution{}, err
	}
	e.Outcome = Outcome{TraceID: store.FromNullText(trace), ErrorCode: store.FromNullText(code), ErrorMessage: store.FromNullText(message), Output: rawOrNil(output)}
	e.Finished, e.Outcome.OK = ok != nil, ok != nil && *ok == 1
	e.Remote, e.Interrupt, e.Owner = rawOrNil(remote), rawOrNil(interrupt), store.FromNullText(owner)
	e.CancelAt, e.LeaseUntil, e.FinishedAt = store.FromNullMillis(cancel), store.FromNullMillis(lease), store.FromNullMillis(finished)
	e.CreatedAt, e.UpdatedAt = store.FromMillis(created), store.FromMillis(updated)
	return e, nil
}

func rawOrNil(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

func rawOrNull(raw json.RawMessage) *string { return store.NullText(string(raw)) }

// ExecutionByKey reads an execution, or fails with pawl.ErrNotFound.
func (tx Tx) ExecutionByKey(ctx context.Context, key string) (Execution, error) {
	e, err := scanExecution(tx.QueryRow(ctx, `select `+executionColumns+` from execution_requests where idempotency_key = $1`, key))
	if errors.Is(err, store.ErrNoRow) {
		return Execution{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "find execution", Msg: "nothing was asked for under this idempotency key"}
	}
	if err != nil {
		return Execution{}, fmt.Errorf("find execution: %w", err)
	}
	return e, nil
}

// ClaimExecution adds an execution with its owner and lease. It changes nothing
// and reports false if there is one with its key; a rival that is under way is
// waited for.
func (tx Tx) ClaimExecution(ctx context.Context, e Execution) (claimed bool, err error) {
	n, err := tx.Exec(ctx, `insert into execution_requests (idempotency_key, request_hash, run_id, attempt, graph_id, grant_id, remote, owner, lease_until, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10) on conflict (idempotency_key) do nothing`,
		e.Key, e.Hash, e.RunID, e.Attempt, e.GraphID, e.GrantID, rawOrNull(e.Remote), e.Owner, store.Millis(e.LeaseUntil), store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("claim execution: %w", err)
	}
	return n == 1, nil
}

// TakeExecution makes next the state of an execution that nobody executes:
// its hash, grant, attempt, remote, cancellation, owner and lease; an outcome or interrupt
// of before is gone. It compares and sets: unless the row is still as it was
// seen it changes nothing and reports false.
func (tx Tx) TakeExecution(ctx context.Context, seen, next Execution) (taken bool, err error) {
	n, err := tx.Exec(ctx, `update execution_requests set attempt = $6, remote = $7, cancel_at = $8, owner = $9, lease_until = $10, updated_at = $11,
			ok = null, trace_id = null, error_code = null, error_message = null, output = case when attempt = $6 then output end, interrupt = null, finished_at = null, request_hash = $12, grant_id = $13
		where idempotency_key = $1 and attempt = $2 and coalesce(owner, '') = $3 and coalesce(lease_until, 0) = $4 and (ok is not null) = ($5 = 1)`,
		seen.Key, seen.Attempt, seen.Owner, store.MillisOrZero(seen.LeaseUntil), oneIf(seen.Finished),
		next.Attempt, rawOrNull(next.Remote), store.NullMillis(next.CancelAt), next.Owner, store.Millis(next.LeaseUntil), store.Millis(tx.Now), next.Hash, next.GrantID)
	if err != nil {
		return false, fmt.Errorf("take over execution: %w", err)
	}
	return n == 1, nil
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// owned ends a write by the owner of an execution: no changed row means that
// it is another's now.
func owned(op string, n int64, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if n == 0 {
		return &pawl.Error{Code: pawl.CodeLeaseLost, Op: op, Msg: "another process owns this execution now"}
	}
	return nil
}

// BeatExecution moves the lease of an execution and tells when somebody asked
// to stop it, or zero. It fails with pawl.ErrLeaseLost.
func (tx Tx) BeatExecution(ctx context.Context, key, owner string, until time.Time) (cancelAt time.Time, err error) {
	var cancel *int64
	err = tx.QueryRow(ctx, `update execution_requests set lease_until = $3, updated_at = $4
		where idempotency_key = $1 and owner = $2 and ok is null returning cancel_at`, key, owner, store.Millis(until), store.Millis(tx.Now)).Scan(&cancel)
	if errors.Is(err, store.ErrNoRow) {
		return time.Time{}, owned("extend lease of execution", 0, nil)
	}
	return store.FromNullMillis(cancel), err
}

// RememberExecution stores what is needed to go on after a crash. It fails with
// pawl.ErrLeaseLost.
func (tx Tx) RememberExecution(ctx context.Context, key, owner string, remote json.RawMessage) error {
	n, err := tx.Exec(ctx, `update execution_requests set remote = $3, updated_at = $4
		where idempotency_key = $1 and owner = $2 and ok is null`, key, owner, rawOrNull(remote), store.Millis(tx.Now))
	return owned("remember execution", n, err)
}

// FinishExecution stores the outcome and ends the claim. Without an output that
// which was shown last stays. It fails with
// pawl.ErrLeaseLost.
func (tx Tx) FinishExecution(ctx context.Context, key, owner string, o Outcome, remote json.RawMessage, cost int64) error {
	n, err := tx.Exec(ctx, `update execution_requests set ok = $3, trace_id = $4, error_code = $5, error_message = $6, output = coalesce($7, output), remote = $8, cost = $9,
			interrupt = null, owner = null, lease_until = null, updated_at = $10, finished_at = $10
		where idempotency_key = $1 and owner = $2 and ok is null`, key, owner, oneIf(o.OK), store.NullText(o.TraceID), store.NullText(o.ErrorCode),
		store.NullText(o.ErrorMessage), rawOrNull(o.Output), rawOrNull(remote), cost, store.Millis(tx.Now))
	return owned("finish execution", n, err)
}

// InterruptExecution stores what the graph asks a person and ends the claim
// until there is an answer. It fails with pawl.ErrLeaseLost.
func (tx Tx) InterruptExecution(ctx context.Context, key, owner, traceID string, interrupt, remote json.RawMessage, cost int64) error {
	n, err := tx.Exec(ctx, `update execution_requests set interrupt = $3, trace_id = $4, remote = $5, cost = $6,
			owner = null, lease_until = null, updated_at = $7
		where idempotency_key = $1 and owner = $2 and ok is null`,
		key, owner, rawOrNull(interrupt), store.NullText(traceID), rawOrNull(remote), cost, store.Millis(tx.Now))
	return owned("interrupt execution", n, err)
}

// ReleaseExecution ends the claim without an outcome, so that whoever asks next
// goes on. It fails with pawl.ErrLeaseLost.
func (tx Tx) ReleaseExecution(ctx context.Context, key, owner string) error {
	n, err := tx.Exec(ctx, `update execution_requests set owner = null, lease_until = $3, updated_at = $3
		where idempotency_key = $1 and owner = $2 and ok is null`, key, owner, store.Millis(tx.Now))
	return owned("release execution", n, err)
}

// AskCancelExecution notes that an execution is to be stopped. It reports false
// if there is none that has not ended.
func (tx Tx) AskCancelExecution(ctx context.Context, key string) (asked bool, err error) {
	n, err := tx.Exec(ctx, `update execution_requests set cancel_at = coalesce(cancel_at, $2), updated_at = $2
		where idempotency_key = $1 and ok is null`, key, store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("cancel execution: %w", err)
	}
	return n == 1, nil
}

// AbandonedExecutions reads up to limit executions whose lease ended before an
// instant and that nobody took over, the longest abandoned first.
func (tx Tx) AbandonedExecutions(ctx context.Context, before time.Time, limit int) ([]Execution, error) {
	rows, err := tx.Query(ctx, `select `+executionColumns+` from execution_requests
		where ok is null and lease_until < $1 order by lease_until limit $2`, store.Millis(before), limit)
	return store.ScanAll(rows, err, "list abandoned executions", scanExecution)
}

// ShowExecution keeps what an execution has written so far, for whoever looks while
// it runs. It fails with pawl.ErrLeaseLost.
func (tx Tx) ShowExecution(ctx context.Context, key, owner string, output json.RawMessage) error {
	n, err := tx.Exec(ctx, `update execution_requests set output = $3, updated_at = $4
		where idempotency_key = $1 and owner = $2 and ok is null`, key, owner, rawOrNull(output), store.Millis(tx.Now))
	return owned("show execution", n, err)
}

// ReopenExecution lets a later attempt of an execution that failed be another
// request, with what is remembered from now on. It reports false if there is none
// that ended so.
func (tx Tx) ReopenExecution(ctx context.Context, key string, remote json.RawMessage) (bool, error) {
	n, err := tx.Exec(ctx, `update execution_requests set request_hash = '', remote = $2, updated_at = $3
		where idempotency_key = $1 and ok = 0`, key, rawOrNull(remote), store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("reopen execution: %w", err)
	}
	return n > 0, nil
}

// PlainOutputs reads what executions without a grant have written, by key; others,
// and those that have written nothing, are left out.
func (tx Tx) PlainOutputs(ctx context.Context, keys []string) (map[string]json.RawMessage, error) {
	list := make([][]any, len(keys))
	for i, key := range keys {
		list[i] = []any{key}
	}
	table, args := tx.Rowset(nil, "key text", list)
	rows, err := tx.Query(ctx, `select v.key, (select case when e.graph_id like 'pawl:%' then e.output end from execution_requests e where e.idempotency_key = v.key) from `+table, args...)
	type pair struct {
		key    string
		output *string
	}
	found, err := store.ScanAll(rows, err, "read outputs", func(row store.Scanner) (p pair, err error) {
		err = row.Scan(&p.key, &p.output)
		return p, err
	})
	out := make(map[string]json.RawMessage, len(found))
	for _, p := range found {
		if p.output != nil {
			out[p.key] = json.RawMessage(*p.output)
		}
	}
	return out, err
}
