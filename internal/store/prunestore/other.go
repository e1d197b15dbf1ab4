package prunestore

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Old is a row that is old and that nothing speaks against removing.
type Old struct {
	ID    string
	Lane  string // whose it is, as its table calls it; empty: nobody's
	Run   string // that it belongs to; empty: none
	At    time.Time
	Bytes int64
	Keep  bool // it is needed
	Place Place
}

func scanOld(row store.Scanner) (o Old, err error) {
	var at, keep int64
	err = row.Scan(&o.ID, &o.Lane, &o.Run, &at, &o.Bytes, &keep, &o.Place.At)
	o.At, o.Keep, o.Place.ID = store.FromMillis(at), keep != 0, o.ID
	return o, err
}

// OldSlots reads slots of schedules whose instant is before the cut. Those that
// are open, that belong to a backfill which is not at its end, and the last one of
// each schedule are needed.
func (tx Tx) OldSlots(ctx context.Context, schedule string, after Place, cut time.Time, limit int) ([]Old, error) {
	var c store.Where
	if schedule != "" {
		c.Add("s.schedule_id = ?", schedule)
	}
	c.Add("s.scheduled_for >= ? and (s.scheduled_for, s.id) > (?, ?)", after.At, after.At, after.ID)
	c.Add("s.scheduled_for < ?", store.Millis(cut))
	text := c.String()
	rows, err := tx.Query(ctx, `select s.id, s.schedule_id, s.run_id, coalesce(s.completed_at, s.scheduled_for), 600 + coalesce(length(s.error_message), 0),
		case when s.completed_at is null or s.completed_at >= `+fmt.Sprint(store.Millis(cut))+` then 1
			when s.backfill_id is not null and exists (select 1 from backfills b where b.id = s.backfill_id and b.state in ('planned', 'running', 'paused')) then 1
			when not exists (select 1 from schedule_runs n where n.schedule_id = s.schedule_id and n.scheduled_for > s.scheduled_for) then 1
			when exists (select 1 from charge_reservations q where q.run_id = s.run_id) then 1 else 0 end, s.scheduled_for
		from schedule_runs s where `+text+` order by s.scheduled_for, s.id`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "read old slots", scanOld)
}

// DeleteSlots removes slots with what the execution service knows of them.
func (tx Tx) DeleteSlots(ctx context.Context, list []Old) (int64, error) {
	ids, runs := make([]string, len(list)), []string{}
	for i, s := range list {
		if ids[i] = s.ID; s.Run != "" {
			runs = append(runs, s.Run)
		}
	}
	for batch := range store.Batches(runs) {
		text, args := store.In(nil, batch)
		if _, err := tx.Exec(ctx, `delete from execution_requests where ok is not null and run_id in `+text, args...); err != nil {
			return 0, fmt.Errorf("remove executions: %w", err)
		}
	}
	return deleteIn(ctx, tx, "schedule_runs", "id", ids)
}

// OldMutations reads calls of the next workflow behind a place that has some from
// before the cut. Those whose outcome is open, or whose key the next call carries,
// are needed.
func (tx Tx) OldMutations(ctx context.Context, workflow string, after Place, cut time.Time, limit int) (list []Old, next Place, err error) {
	part := after.Part
	if workflow != "" {
		part = workflow
	}
	if part == "" {
		if part, err = tx.partAfter(ctx, "workflows", ""); err != nil || part == "" {
			return nil, Place{}, err
		}
	}
	rows, err := tx.Query(ctx, `select m.id, m.workflow_id, m.run_id, m.created_at, 500 + length(m.arguments) + coalesce(length(m.result), 0),
		case when m.resolved_at is null or m.resolved_at >= $2 or m.kept_for is not null or m.state not in ('applied', 'failed', 'skipped') then 1 else 0 end, m.created_at
		from mutations m where m.workflow_id = $1 and m.created_at < $2 and (m.created_at, m.id) > ($3, $4) order by m.created_at, m.id limit $5`,
		part, store.Millis(cut), after.At, after.ID, limit)
	list, err = store.ScanAll(rows, err, "read old calls", scanOld)
	if err != nil {
		return nil, Place{}, err
	}
	next = Place{Part: part}
	if len(list) == limit {
		next.At, next.ID = list[limit-1].Place.At, list[limit-1].ID
		return list, next, nil
	}
	if workflow != "" {
		return list, Place{}, nil
	}
	next.Part, err = tx.partAfter(ctx, "workflows", part)
	return list, next, err
}

// partAfter is the id of the next row of a table; empty at the end.
func (tx Tx) partAfter(ctx context.Context, table, id string) (string, error) {
	rows, err := tx.Query(ctx, `select id from `+table+` where id > $1 order by id limit 1`, id)
	list, err := store.ScanAll(rows, err, "find the next part", store.ScanText)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0], nil
}

// DeleteMutations removes calls with the inputs they came from.
func (tx Tx) DeleteMutations(ctx context.Context, ids []string) (int64, error) {
	if _, err := deleteIn(ctx, tx, "mutation_inputs", "mutation_id", ids); err != nil {
		return 0, err
	}
	return deleteIn(ctx, tx, "mutations", "id", ids)
}

// OldReceipts reads receipts of the next account behind a place that has some from
// before the cut; those of runs that are not settled are needed.
func (tx Tx) OldReceipts(ctx context.Context, after Place, cut time.Time, limit int) (list []Old, next Place, err error) {
	part := after.Part
	if part == "" {
		if part, err = tx.partAfter(ctx, "billing_accounts", ""); err != nil || part == "" {
			return nil, Place{}, err
		}
	}
	rows, err := tx.Query(ctx, `select c.id, '', c.run_id, c.created_at, 400,
		case when exists (select 1 from charge_reservations q where q.run_id = c.run_id) then 1 else 0 end, c.created_at
		from charge_receipts c where c.billing_account_id = $1 and c.created_at < $2 and (c.created_at, c.id) > ($3, $4) order by c.created_at, c.id limit $5`,
		part, store.Millis(cut), after.At, after.ID, limit)
	list, err = store.ScanAll(rows, err, "read old receipts", scanOld)
	if err != nil {
		return nil, Place{}, err
	}
	next = Place{Part: part}
	if len(list) == limit {
		next.At, next.ID = list[limit-1].Place.At, list[limit-1].ID
		return list, next, nil
	}
	next.Part, err = tx.partAfter(ctx, "billing_accounts", part)
	return list, next, err
}

// deleteNumbers removes rows of a table by their ids, which are numbers.
func (tx Tx) deleteNumbers(ctx context.Context, table string, list []Old) (int64, error) {
	ids := make([]int64, len(list))
	for i, o := range list {
		if _, err := fmt.Sscan(o.ID, &ids[i]); err != nil {
			return 0, fmt.Errorf("remove from %s: %w", table, err)
		}
	}
	return deleteIn(ctx, tx, table, "id", ids)
}

// OldRejects reads rows that did not fit.
func (tx Tx) OldRejects(ctx context.Context, source string, after Place, cut time.Time, limit int) ([]Old, error) {
	var c store.Where
	if source != "" {
		c.Add("source_name = ?", source)
	}
	c.Add("id > ? and id < ? and created_at < ?", after.At, store.IDAt(cut), store.Millis(cut))
	text := c.String()
	rows, err := tx.Query(ctx, `select cast(id as text), source_name, '', created_at, 150 + length(reason) + length(raw), 0, id from _rejects r where `+text+` order by r.id`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "read old rejects", scanOld)
}

// DeleteRejects removes rows that did not fit.
func (tx Tx) DeleteRejects(ctx context.Context, list []Old) (int64, error) {
	return tx.deleteNumbers(ctx, "_rejects", list)
}

// OldAudit reads entries of the audit log.
func (tx Tx) OldAudit(ctx context.Context, after Place, cut time.Time, limit int) ([]Old, error) {
	rows, err := tx.Query(ctx, `select cast(id as text), '', '', at, 150 + coalesce(length(detail), 0), 0, at from audit_log a
		where (at, id) > ($1, $2) and at < $3 order by a.at, a.id limit $4`, after.At, after.number(), store.Millis(cut), limit)
	return store.ScanAll(rows, err, "read old entries of the audit log", scanOld)
}

// DeleteAudit removes entries of the audit log.
func (tx Tx) DeleteAudit(ctx context.Context, list []Old) (int64, error) {
	return tx.deleteNumbers(ctx, "audit_log", list)
}

// OldJobs reads outcomes of jobs.
func (tx Tx) OldJobs(ctx context.Context, after Place, cut time.Time, limit int) ([]Old, error) {
	rows, err := tx.Query(ctx, `select cast(id as text), '', '', finished_at, 200 + coalesce(length(error), 0), 0, finished_at from job_history h
		where finished_at >= $1 and (finished_at, id) > ($1, $2) and finished_at < $3 order by h.finished_at, h.id limit $4`, after.At, after.number(), store.Millis(cut), limit)
	return store.ScanAll(rows, err, "read old outcomes", scanOld)
}

// DeleteJobs removes outcomes of jobs.
func (tx Tx) DeleteJobs(ctx context.Context, list []Old) (int64, error) {
	return tx.deleteNumbers(ctx, "job_history", list)
}

// DeleteReceipts removes receipts; the sums of their days stay.
func (tx Tx) DeleteReceipts(ctx context.Context, list []Old) (int64, error) {
	ids := make([]string, len(list))
	for i, o := range list {
		ids[i] = o.ID
	}
	return deleteIn(ctx, tx, "charge_receipts", "id", ids)
}

// Lane is how a lane is called: by its runs, by what belongs to it, and by people.
type Lane struct {
	Kind           pawl.Kind
	Lane, ID, Name string
	Keep           string // what its definition says of how long things are kept
	Expects        bool   // something is expected of it, which is judged by its runs
}

// Lanes reads all lanes that are there.
func (tx Tx) Lanes(ctx context.Context) ([]Lane, error) {
	rows, err := tx.Query(ctx, `select kind, lane, id, name, keep, case when expect = '' then 0 else 1 end from lanes`)
	return store.ScanAll(rows, err, "read lanes", func(row store.Scanner) (l Lane, err error) {
		var expects int
		err = row.Scan(&l.Kind, &l.Lane, &l.ID, &l.Name, &l.Keep, &expects)
		l.Expects = expects != 0
		return l, err
	})
}
