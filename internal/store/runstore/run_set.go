package runstore

import (
	"context"
	"encoding/json"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// InsertRuns adds first attempts of different lanes, as InsertRun does, and returns
// them as stored. If a lane has an active run already the transaction fails with
// store.ErrSetRefused.
func (tx Tx) InsertRuns(ctx context.Context, list []Run) ([]Run, error) {
	rows, byID := make([][]any, len(list)), map[string]int{}
	for i, r := range list {
		byID[r.ID] = i
		rows[i] = []any{
			r.ID, string(r.Kind), r.Lane, r.Handler, string(r.HandlerType), r.Trigger, string(r.Phase), string(r.Status), int64(r.Attempt), store.NullMillis(r.ScheduledFor),
			store.NullText(r.Owner.Node), int64(r.Owner.Bucket), r.Owner.Epoch,
		}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "id text, kind text, lane text, handler text, handler_type text, trigger_ text, phase text, status text, "+
		"attempt bigint, scheduled_for bigint, node text, bucket bigint, epoch bigint", rows)
	type stored struct {
		id      string
		created int64
	}
	found, err := tx.Query(ctx, `insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, scheduled_for, node, bucket, epoch, created_at, updated_at, started_at)
		select v.id, v.kind, v.lane, v.handler, v.handler_type, v.trigger_, v.phase, v.status, v.attempt, v.scheduled_for, v.node, v.bucket, v.epoch,
			coalesce((select case when n.created_at >= $1 then n.created_at + 1 else $1 end from runs n
				where n.kind = v.kind and n.lane = v.lane order by n.created_at desc limit 1), $1), $1, $1
		from `+table+` where true on conflict do nothing returning id, created_at`, args...)
	there, err := store.ScanAll(found, err, "insert runs", func(row store.Scanner) (s stored, err error) { return s, row.Scan(&s.id, &s.created) })
	if err == nil && len(there) != len(list) {
		err = store.ErrSetRefused
	}
	if err != nil {
		return nil, err
	}
	out := make([]Run, len(list))
	for _, s := range there {
		i := byID[s.id]
		out[i] = list[i]
		out[i].CreatedAt, out[i].UpdatedAt, out[i].StartedAt = store.FromMillis(s.created), tx.Now, tx.Now
	}
	return out, nil
}

// CommitRuns ends runs with their outputs. If one is not as its caller believes
// any more the transaction fails with store.ErrSetRefused.
func (tx Tx) CommitRuns(ctx context.Context, list []Run, outputs []json.RawMessage) ([]Run, error) {
	rows, out := make([][]any, len(list)), make([]Run, len(list))
	for i, r := range list {
		rows[i] = []any{r.ID, string(r.Phase), string(r.Status), jsonOrNull(outputs[i])}
		out[i] = tx.begun(r)
		out[i].Phase, out[i].Status, out[i].OutputState, out[i].EndedAt = pawl.PhaseCommitted, pawl.StatusCommitted, outputs[i], tx.Now
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now), pawl.PhaseCommitted, pawl.StatusCommitted}, "run text, was_phase text, was_status text, output text", rows)
	return out, tx.ChangeAll(ctx, len(list), "commit runs", `update runs set updated_at = $1, phase = $2, status = $3, output_state = v.output,
		started_at = coalesce(started_at, $1), ended_at = $1 from `+table+` where id = v.run and phase = v.was_phase and status = v.was_status`, args...)
}
