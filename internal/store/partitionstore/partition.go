package partitionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Place is whether a partition has one of those that its consumer's limit allows.
type Place int

// The places.
const (
	PlaceNone    Place = 0 // it rests
	PlaceWaiting Place = 1 // it waits for one
	PlaceTaken   Place = 2 // it has one, and a job
)

// Partition is one of the partitions of a consumer.
type Partition struct {
	WorkflowID string
	ID         string
	Handler    string
	Name       string // empty: of events that have none
	Fault      string // why they have none
	News       int64
	Place      Place
	PlaceSince time.Time
	Open       bool
	NextAt     time.Time
	WakeAt     time.Time
	State      json.RawMessage // nil: its handler never returned one
	ClearedRun string
	// RejectedRun is the run that a person rejected: nothing begins until
	// somebody resumes the workflow.
	RejectedRun string
	Issue       string
	Attention   bool
	IssueSince  time.Time
	UpdatedAt   time.Time
}

const partitionColumns = `workflow_id, id, handler, name, fault, news, place, place_since, open, next_at, wake_at, state, cleared_run, rejected_run, issue, attention, issue_since, updated_at`

func scanPartition(row store.Scanner) (Partition, error) {
	var p Partition
	var state, cleared, rejected *string
	var next, wake, issueSince *int64
	var since, open, attention, updated int64
	err := row.Scan(&p.WorkflowID, &p.ID, &p.Handler, &p.Name, &p.Fault, &p.News, &p.Place, &since, &open, &next, &wake, &state, &cleared, &rejected, &p.Issue, &attention, &issueSince, &updated)
	if err != nil {
		return Partition{}, err
	}
	p.PlaceSince, p.Open, p.NextAt, p.WakeAt = store.FromMillis(since), open == 1, store.FromNullMillis(next), store.FromNullMillis(wake)
	p.State, p.ClearedRun, p.RejectedRun = store.FromNullJSON(state), store.FromNullText(cleared), store.FromNullText(rejected)
	p.Attention, p.IssueSince, p.UpdatedAt = attention == 1, store.FromNullMillis(issueSince), store.FromMillis(updated)
	return p, nil
}

// Get reads a partition, or fails with pawl.ErrNotFound.
func (tx Tx) Get(ctx context.Context, workflowID, id string) (Partition, error) {
	p, err := scanPartition(tx.QueryRow(ctx, `select `+partitionColumns+` from partitions where workflow_id = $1 and id = $2`, workflowID, id))
	if errors.Is(err, store.ErrNoRow) {
		return p, &pawl.Error{Code: pawl.CodeNotFound, Op: "read partition", Msg: "there is no such partition"}
	}
	if err != nil {
		return p, fmt.Errorf("read partition: %w", err)
	}
	return p, nil
}

// AskNews asks what a partition was told last.
func (tx Tx) AskNews(ctx context.Context, workflowID, id string, news func(int64)) error {
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		found, err := store.ScanAll(rows, err, "read news of partition", store.ScanID)
		for _, n := range found {
			news(n)
		}
		return err
	}, `select news from partitions where workflow_id = $1 and id = $2`, workflowID, id)
}

// Open reads up to limit partitions of a workflow that may have something
// left to do, by id, those after the given one.
func (tx Tx) Open(ctx context.Context, workflowID, after string, limit int) ([]Partition, error) {
	rows, err := tx.Query(ctx, `select `+partitionColumns+` from partitions where workflow_id = $1 and open = 1 and id > $2 order by id limit $3`, workflowID, after, limit)
	return store.ScanAll(rows, err, "read open partitions", scanPartition)
}

// SetState keeps what the handler of a partition returned; nothing leaves
// the state as it is.
func (tx Tx) SetState(ctx context.Context, workflowID, id string, state json.RawMessage) error {
	if len(state) == 0 {
		return nil
	}
	return tx.Post(ctx, `update partitions set state = $3 where workflow_id = $1 and id = $2`, workflowID, id, string(state))
}

// SetWake keeps when a partition wants to be woken, zero for not at all.
func (tx Tx) SetWake(ctx context.Context, workflowID, id string, at time.Time) error {
	return tx.Post(ctx, `update partitions set wake_at = $3 where workflow_id = $1 and id = $2`, workflowID, id, store.NullMillis(at))
}

// SetCleared notes that what stopped a run of a partition is mended; empty
// forgets it.
func (tx Tx) SetCleared(ctx context.Context, workflowID, id, runID string) error {
	return tx.setPartition(ctx, workflowID, id, `cleared_run = $4`, store.NullText(runID))
}

// SetRejected notes that a person rejected a run of a partition; empty lets
// it go on.
func (tx Tx) SetRejected(ctx context.Context, workflowID, id, runID string) error {
	return tx.setPartition(ctx, workflowID, id, `rejected_run = $4, open = 1`, store.NullText(runID))
}

// SetIssue notes what is the matter with a partition; an empty issue is
// nothing.
func (tx Tx) SetIssue(ctx context.Context, p Partition) error {
	attention := 0
	if p.Attention {
		attention = 1
	}
	return tx.setPartition(ctx, p.WorkflowID, p.ID, `issue = $4, attention = $5, issue_since = $6`, p.Issue, attention, store.NullMillis(p.IssueSince))
}

func (tx Tx) setPartition(ctx context.Context, workflowID, id, assignments string, values ...any) error {
	args := append([]any{workflowID, id, store.Millis(tx.Now)}, values...)
	if _, err := tx.Exec(ctx, `update partitions set updated_at = $3, `+assignments+` where workflow_id = $1 and id = $2`, args...); err != nil {
		return fmt.Errorf("change partition: %w", err)
	}
	return nil
}

// Troubles are what is the matter with the partitions of a workflow.
type Troubles struct {
	Attention int    // how many need a person, up to MostTold
	First     string // the id of the one to tell of: the first that needs a person, else the first with an issue
	Active    bool   // a run of one is
}

// MostTold is where counting those that need a person ends.
const MostTold = 10

// Issues reads what is the matter with the partitions of a workflow.
func (tx Tx) Issues(ctx context.Context, workflowID, lane string) (i Troubles, err error) {
	var active int
	var first *string
	err = tx.QueryRow(ctx, `select
		(select count(*) from (select 1 from partitions where workflow_id = $1 and issue <> '' and attention = 1 order by attention, issue_since, id limit $2) as a),
		(select count(*) from (select 1 from partitions p join runs r on r.kind = 'workflow' and r.status = 'active' and r.lane = cast($3 as text) || '/' || p.id
			where p.workflow_id = $1 and p.place = 2 limit 1) as b),
		coalesce((select id from partitions where workflow_id = $1 and issue <> '' and attention = 1 order by attention, issue_since, id limit 1),
			(select id from partitions where workflow_id = $1 and issue <> '' and attention = 0 order by attention, issue_since, id limit 1))`,
		workflowID, MostTold, lane).Scan(&i.Attention, &active, &first)
	if err != nil {
		return i, fmt.Errorf("read issues of partitions: %w", err)
	}
	i.Active, i.First = active > 0, store.FromNullText(first)
	return i, nil
}

// Counts sums up the partitions of a workflow, for people.
type Counts struct {
	Working   int
	Waiting   int // for a place
	Attention int // that need a person
	HeldUp    int // with an issue that needs nobody
	NextAt    time.Time
}

// MostCounted is where counting partitions for people ends.
const MostCounted = 1000

// Count counts the partitions of a workflow, each sort up to MostCounted.
func (tx Tx) Count(ctx context.Context, workflowID string) (c Counts, err error) {
	var next *int64
	err = tx.QueryRow(ctx, `select
		(select count(*) from (select 1 from partitions where workflow_id = $1 and place = 2 order by handler, id limit $2) as a),
		(select count(*) from (select 1 from partitions where workflow_id = $1 and place = 1 order by handler, place_since, id limit $2) as b),
		(select count(*) from (select 1 from partitions where workflow_id = $1 and issue <> '' and attention = 1 order by attention, issue_since, id limit $2) as c),
		(select count(*) from (select 1 from partitions where workflow_id = $1 and issue <> '' and attention = 0 order by attention, issue_since, id limit $2) as d),
		(select min(next_at) from partitions where workflow_id = $1 and next_at is not null)`,
		workflowID, MostCounted).Scan(&c.Working, &c.Waiting, &c.Attention, &c.HeldUp, &next)
	if err != nil {
		return c, fmt.Errorf("count partitions: %w", err)
	}
	c.NextAt = store.FromNullMillis(next)
	return c, nil
}

// Close ends the partitions of a workflow that is deleted. They are forgotten later.
func (tx Tx) Close(ctx context.Context, workflowID string) error {
	_, err := tx.Exec(ctx, `update partitions set open = 0, place = 0, next_at = null, wake_at = null, state = null, cleared_run = null, rejected_run = null,
		issue = '', attention = 0, issue_since = null, updated_at = $2 where workflow_id = $1`, workflowID, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("close partitions: %w", err)
	}
	return nil
}

// Forget removes up to limit partitions that were done before an instant and
// keep nothing.
func (tx Tx) Forget(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.Exec(ctx, `delete from partitions where open = 0 and place = 0 and (workflow_id, id) in (
		select workflow_id, id from partitions where open = 0 and updated_at < $1 and place = 0 and state is null and wake_at is null
			and cleared_run is null and rejected_run is null and issue = '' order by updated_at limit $2)`, store.Millis(before), limit)
}
