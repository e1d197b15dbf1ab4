package partitionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/internal/store"
)

// Sorting is how far the events of a consumer are sorted into partitions.
type Sorting struct {
	WorkflowID string
	Handler    string
	Expression string           // by which they were; empty: none was yet
	Cursors    map[string]int64 // by topic: the number of the last event that was
	News       int64
}

const sortColumns = `workflow_id, handler, expression, cursors, news`

func scanSorting(row store.Scanner) (s Sorting, err error) {
	var cursors string
	if err := row.Scan(&s.WorkflowID, &s.Handler, &s.Expression, &cursors, &s.News); err != nil {
		return s, err
	}
	s.Cursors = map[string]int64{}
	return s, json.Unmarshal([]byte(cursors), &s.Cursors)
}

// GetSorting reads how far the events of a consumer are sorted.
func (tx Tx) GetSorting(ctx context.Context, workflowID, handler string) (Sorting, error) {
	s, err := scanSorting(tx.QueryRow(ctx, `select `+sortColumns+` from partition_sorts where workflow_id = $1 and handler = $2`, workflowID, handler))
	if errors.Is(err, store.ErrNoRow) {
		return Sorting{WorkflowID: workflowID, Handler: handler, Cursors: map[string]int64{}}, nil
	}
	return s, err
}

// HoldSorting is GetSorting for who hands out places or sorts: it keeps others from
// doing so until the transaction ends. Whoever changes the place of a partition holds
// it first.
func (tx Tx) HoldSorting(ctx context.Context, workflowID, handler string) (Sorting, error) {
	s, err := scanSorting(tx.QueryRow(ctx, `insert into partition_sorts as s (`+sortColumns+`) values ($1, $2, '', '{}', 0)
		on conflict (workflow_id, handler) do update set news = s.news returning `+sortColumns, workflowID, handler))
	if err != nil {
		return s, fmt.Errorf("hold the sorting of %s: %w", handler, err)
	}
	return s, nil
}

// SetSorting notes how far the events are sorted.
func (tx Tx) SetSorting(ctx context.Context, s Sorting) error {
	_, err := tx.Exec(ctx, `update partition_sorts set expression = $3, cursors = $4, news = $5 where workflow_id = $1 and handler = $2`,
		s.WorkflowID, s.Handler, s.Expression, store.JSONText(s.Cursors), s.News)
	if err != nil {
		return fmt.Errorf("note how far events are sorted: %w", err)
	}
	return nil
}

// Tell makes partitions, or tells those that are there, that events were
// sorted into them; one that rests waits for a place from now on. Their news must
// be greater than all before.
func (tx Tx) Tell(ctx context.Context, list []Partition) error {
	for batch := range store.Batches(list) {
		v := store.Values{}
		now := store.Millis(tx.Now)
		for _, p := range batch {
			v.Row(p.WorkflowID, p.ID, p.Handler, p.Name, p.Fault, p.News, PlaceWaiting, now, 1, now, now)
		}
		_, err := tx.Exec(ctx, `insert into partitions as p (workflow_id, id, handler, name, fault, news, place, place_since, open, created_at, updated_at)
			values `+v.String()+` on conflict (workflow_id, id) do update set news = excluded.news, fault = excluded.fault, open = 1, updated_at = excluded.updated_at,
				next_at = null, place_since = case when p.place = 0 then excluded.place_since else p.place_since end,
				place = case when p.place = 0 then 1 else p.place end`, v.Args...)
		if err != nil {
			return fmt.Errorf("tell partitions: %w", err)
		}
	}
	return nil
}

// Queue lets a partition that rests wait for a place.
func (tx Tx) Queue(ctx context.Context, workflowID, id string) error {
	_, err := tx.Exec(ctx, `update partitions set place = 1, place_since = $3, open = 1, next_at = null, updated_at = $3 where workflow_id = $1 and id = $2 and place = 0`,
		workflowID, id, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("queue partition: %w", err)
	}
	return nil
}

// QueueOpen lets the partitions of a consumer that rest and may have
// something to do wait for a place.
func (tx Tx) QueueOpen(ctx context.Context, workflowID, handler string) error {
	_, err := tx.Exec(ctx, `update partitions set place = 1, place_since = $3, next_at = null, updated_at = $3 where workflow_id = $1 and handler = $2 and open = 1 and place = 0`,
		workflowID, handler, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("queue partitions: %w", err)
	}
	return nil
}

// HandOut gives free places to those that wait longest, and returns who got one.
func (tx Tx) HandOut(ctx context.Context, workflowID, handler string, limit int) ([]string, error) {
	var taken int
	if err := tx.QueryRow(ctx, `select count(*) from partitions where workflow_id = $1 and handler = $2 and place = 2`, workflowID, handler).Scan(&taken); err != nil {
		return nil, fmt.Errorf("count places: %w", err)
	}
	if taken >= limit {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `select id from partitions where workflow_id = $1 and handler = $2 and place = 1 order by place_since, id limit $3`, workflowID, handler, limit-taken)
	got, err := store.ScanAll(rows, err, "find who waits for a place", store.ScanText)
	if err != nil {
		return nil, err
	}
	for batch := range store.Batches(got) {
		list, args := store.In([]any{workflowID, store.Millis(tx.Now)}, batch)
		if _, err := tx.Exec(ctx, `update partitions set place = 2, place_since = $2, updated_at = $2 where workflow_id = $1 and id in `+list, args...); err != nil {
			return nil, fmt.Errorf("hand out places: %w", err)
		}
	}
	return got, nil
}

// LeavePlace ends the work of a partition for now: it rests, or waits for another
// place behind all others.
func (tx Tx) LeavePlace(ctx context.Context, p Partition) error {
	open := 0
	if p.Open {
		open = 1
	}
	_, err := tx.Exec(ctx, `update partitions set place = case when news > $4 then 1 else $3 end, place_since = $5, open = case when news > $4 then 1 else $6 end, next_at = case when news > $4 then null else cast($7 as bigint) end, updated_at = $5
		where workflow_id = $1 and id = $2`, p.WorkflowID, p.ID, p.Place, p.News, store.Millis(tx.Now), open, store.NullMillis(p.NextAt))
	if err != nil {
		return fmt.Errorf("leave a place: %w", err)
	}
	return nil
}

// Consumers reads which consumers of a workflow have, or had, partitions.
func (tx Tx) Consumers(ctx context.Context, workflowID string) ([]string, error) {
	rows, err := tx.Query(ctx, `select handler from partition_sorts where workflow_id = $1 order by handler`, workflowID)
	return store.ScanAll(rows, err, "read consumers of partitions", store.ScanText)
}

// Jobless is a partition that ought to have a job and has none.
type Jobless struct{ WorkflowID, Lane, ID string }

// Unarmed reads up to limit partitions that have a place, or go on by
// themselves, and have no job of the task.
func (tx Tx) Unarmed(ctx context.Context, task string, limit int) ([]Jobless, error) {
	rows, err := tx.Query(ctx, `select w.id, w.lane, p.id from workflows w join partitions p on p.workflow_id = w.id
		where w.deleted_at is null and w.partitioned = 1 and p.open = 1 and (p.place = 2 or p.next_at is not null and p.place = 0)
			and not exists (select 1 from jobs j where j.key = 'workflow:' || w.lane || '/' || p.id and j.owner = '' and j.task = $1 and j.state = 0)
		order by w.id, p.id limit $2`, task, limit)
	return store.ScanAll(rows, err, "find partitions without a job", func(row store.Scanner) (u Jobless, err error) {
		return u, row.Scan(&u.WorkflowID, &u.Lane, &u.ID)
	})
}
