package executionstore

import (
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl/internal/store"
)

// ClaimExecutions adds executions with their owners and leases. If there is one
// with such a key the transaction fails with store.ErrSetRefused.
func (tx Tx) ClaimExecutions(ctx context.Context, list []Execution) error {
	rows := make([][]any, len(list))
	for i, e := range list {
		rows[i] = []any{e.Key, e.Hash, e.RunID, int64(e.Attempt), e.GraphID, e.GrantID, rawOrNull(e.Remote), e.Owner, store.Millis(e.LeaseUntil)}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "key_ text, hash text, run text, attempt bigint, graph text, grant_ text, remote text, owner text, lease bigint", rows)
	return tx.ChangeAll(ctx, len(list), "claim executions", `insert into execution_requests (idempotency_key, request_hash, run_id, attempt, graph_id, grant_id, remote, owner, lease_until, created_at, updated_at)
		select v.key_, v.hash, v.run, v.attempt, v.graph, v.grant_, v.remote, v.owner, v.lease, $1, $1 from `+table+` where true on conflict (idempotency_key) do nothing`, args...)
}

// Success is the outcome of an execution that cost nothing.
type Success struct {
	Key, Owner string
	TraceID    string
	Output     json.RawMessage
	Remote     json.RawMessage
}

// FinishExecutions stores good outcomes and ends the claims. If one has another
// owner the transaction fails with store.ErrSetRefused.
func (tx Tx) FinishExecutions(ctx context.Context, list []Success) error {
	rows := make([][]any, len(list))
	for i, s := range list {
		rows[i] = []any{s.Key, s.Owner, store.NullText(s.TraceID), rawOrNull(s.Output), rawOrNull(s.Remote)}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "key_ text, owner_ text, trace text, output_ text, remote_ text", rows)
	return tx.ChangeAll(ctx, len(list), "finish executions", `update execution_requests set ok = 1, trace_id = v.trace, error_code = null, error_message = null, output = v.output_, remote = v.remote_, cost = 0,
		interrupt = null, owner = null, lease_until = null, updated_at = $1, finished_at = $1 from `+table+` where idempotency_key = v.key_ and owner = v.owner_ and coalesce(ok, -1) < 0`, args...)
}
