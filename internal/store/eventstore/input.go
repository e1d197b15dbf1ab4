package eventstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// InputStatus says how far an input has come. It follows from its events.
type InputStatus string

// The closed set of input statuses.
const (
	InputPending  InputStatus = "pending"  // an event of it waits or is held
	InputDone     InputStatus = "done"     // all its events have ended, and may be removed since
	InputSkipped  InputStatus = "skipped"  // a person said so
	InputOrphaned InputStatus = "orphaned" // there never was an event of it
)

// Input is a thing of the outside that events come from.
type Input struct {
	ID         string
	WorkflowID string
	Source     string
	Type       string
	ExternalID string
	Title      string
	CreatedBy  string
	CreatedAt  time.Time
	SkippedAt  time.Time // zero unless it was skipped
	SkippedBy  string
	Status     InputStatus // computed; not stored
}

// inputStatus computes the status of i. It has scalar subqueries, because
// PostgreSQL would answer EXISTS by reading all events there are.
const inputStatus = `case when i.skipped_at is not null then 'skipped'
	when ` + noCause + ` then case when i.ended_at is null then 'orphaned' else 'done' end
	when (select 1 from event_causes c join events e on e.id = c.event_id
		join topics t on t.workflow_id = e.workflow_id and t.name = e.topic and t.subscribed = 1
		where c.input_id = i.id and e.status in ('pending', 'reserved') limit 1) = 1 then 'pending'
	else 'done' end`

// noCause: no event comes from i.
const noCause = `(select 1 from event_causes c where c.input_id = i.id limit 1) is null`

const inputColumns = `i.id, i.workflow_id, i.source, i.type, i.external_id, i.title, i.created_by, i.created_at, i.skipped_at, i.skipped_by, ` + inputStatus

func scanInput(row store.Scanner) (Input, error) {
	var i Input
	var created int64
	var skipped *int64
	var by *string
	if err := row.Scan(&i.ID, &i.WorkflowID, &i.Source, &i.Type, &i.ExternalID, &i.Title, &i.CreatedBy, &created, &skipped, &by, &i.Status); err != nil {
		return Input{}, err
	}
	i.CreatedAt, i.SkippedAt, i.SkippedBy = store.FromMillis(created), store.FromNullMillis(skipped), store.FromNullText(by)
	return i, nil
}

// AddInputs registers inputs; those that are known stay as they are.
func (tx Tx) AddInputs(ctx context.Context, list []Input) error {
	for batch := range store.Batches(list) {
		v := store.Values{}
		for _, i := range batch {
			if err := store.CheckText("register inputs", "external id", i.ExternalID); err != nil {
				return err
			}
			v.Row(i.ID, i.WorkflowID, i.Source, i.Type, i.ExternalID, i.Title, i.CreatedBy, store.Millis(tx.Now))
		}
		if err := tx.Post(ctx, `insert into inputs (id, workflow_id, source, type, external_id, title, created_by, created_at)
			values `+v.String()+` on conflict do nothing`, v.Args...); err != nil {
			return fmt.Errorf("register inputs: %w", err)
		}
	}
	return nil
}

// KnownInputs reads which of the ids are inputs of the workflow.
func (tx Tx) KnownInputs(ctx context.Context, workflowID string, ids []string) (map[string]bool, error) {
	out := map[string]bool{}
	for batch := range store.Batches(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !store.Storable(id) })) {
		names, args := store.In([]any{workflowID}, batch)
		rows, err := tx.Query(ctx, `select id from inputs where workflow_id = $1 and id in `+names, args...)
		found, err := store.ScanAll(rows, err, "read inputs", store.ScanText)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			out[id] = true
		}
	}
	return out, nil
}

// GetInput reads an input, or fails with pawl.ErrNotFound.
func (tx Tx) GetInput(ctx context.Context, id string) (Input, error) {
	i, err := scanInput(tx.QueryRow(ctx, `select `+inputColumns+` from inputs i where i.id = $1`, id))
	if errors.Is(err, store.ErrNoRow) {
		return i, &pawl.Error{Code: pawl.CodeNotFound, Op: "read input", Msg: fmt.Sprintf("there is no input %q", id)}
	}
	return i, err
}

// InputCursor is how far a list of inputs was read: the last one of a page.
type InputCursor struct {
	CreatedAt time.Time
	ID        string
}

// ListInputs reads up to limit inputs of a workflow, the newest first.
func (tx Tx) ListInputs(ctx context.Context, workflowID string, status InputStatus, before InputCursor, limit int) ([]Input, error) {
	page, _, err := tx.InputPage(ctx, workflowID, status, before, limit)
	return page, err
}

// InputPage is ListInputs with the cursor with which to go on, zero at the end.
// A page may end early; see PageThrough.
func (tx Tx) InputPage(ctx context.Context, workflowID string, status InputStatus, before InputCursor, limit int) (page []Input, next InputCursor, err error) {
	place := func(i Input) InputCursor { return InputCursor{i.CreatedAt, i.ID} }
	page, next, more, err := store.PageThrough(before, limit, place, func(before InputCursor, want int) (store.Window[Input, InputCursor], error) {
		return tx.scanInputs(ctx, workflowID, status, before, want)
	})
	if !more {
		next = InputCursor{}
	}
	return page, next, err
}

// NewestInput reads the newest input of a workflow; none if there is none. It names the
// workflow in its order, which only the index of the list has, so that it can be read for
// many in one statement; see runstore's newestRun.
func NewestInput(ctx context.Context, tx *store.Tx, workflowID string) ([]Input, error) {
	rows, err := tx.Query(ctx, `select `+inputColumns+` from inputs i where i.workflow_id between $1 and $1 order by i.workflow_id desc, i.created_at desc, i.id desc limit 1`, workflowID)
	return store.ScanAll(rows, err, "read newest input", scanInput)
}

func (tx Tx) scanInputs(ctx context.Context, workflowID string, status InputStatus, before InputCursor, want int) (l store.Window[Input, InputCursor], err error) {
	var c store.Where
	c.Add("i.workflow_id = ?", workflowID)
	if before.ID != "" {
		c.Add("(i.created_at, i.id) < (?, ?)", store.Millis(before.CreatedAt), before.ID)
	}
	switch status {
	case "":
	case InputSkipped: // has an index
		c.Add("i.skipped_at is not null")
	default:
		if err := tx.narrowInputs(ctx, &c, &l, workflowID, status); err != nil {
			return l, err
		}
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+inputColumns+` from inputs i where `+text+` order by i.created_at desc, i.id desc`+c.Limit(want), c.Args...)
	l.Rows, err = store.ScanAll(rows, err, "list inputs", scanInput)
	return l, err
}

// narrowInputs adds the conditions of a status that is computed: it is looked
// for in a window, or, where few events are left to be worked on, among what
// they come from.
func (tx Tx) narrowInputs(ctx context.Context, c *store.Where, l *store.Window[Input, InputCursor], workflowID string, status InputStatus) (err error) {
	if status == InputPending {
		few, err := tx.fewEventsOpen(ctx, workflowID)
		if err != nil {
			return err
		}
		if few {
			// Not by the index of the workflow, which has all of them in their order.
			c.Texts[0] = "i.workflow_id || '' = ?"
			c.Add(`i.id in (select c.input_id from event_causes c where c.event_id in (`+openEvents+`))`, workflowID, workflowID)
			c.Add(inputStatus+" = ?", string(status))
			return nil
		}
	}
	if l.Floor, l.Cut, err = store.WindowEnd(ctx, tx.Tx, "i.created_at, i.id", "inputs i", "i.created_at desc, i.id desc", c, scanInputPlace); err != nil {
		return err
	}
	if status == InputOrphaned { // most are told apart by one look, and not by the three of the status
		c.Add(noCause)
	}
	c.Add(inputStatus+" = ?", string(status))
	if l.Cut {
		c.Add("(i.created_at, i.id) >= (?, ?)", store.Millis(l.Floor.CreatedAt), l.Floor.ID)
	}
	return nil
}

// openEvents are the ids of the events of a workflow, which is named twice,
// that wait or are held; events_pending and events_held have them.
const openEvents = `select e.id from events e where e.workflow_id = ? and e.status = 'pending'
	union all select e.id from events e where e.workflow_id = ? and e.status = 'reserved'`

// fewEventsOpen reports whether less than a window of events is open.
func (tx Tx) fewEventsOpen(ctx context.Context, workflowID string) (bool, error) {
	var n int
	err := tx.QueryRow(ctx, `select count(*) from (select e.id from events e where e.workflow_id = $1 and e.status = 'pending' order by e.topic, e.seq limit $2) p`, workflowID, store.WindowRows).Scan(&n)
	if err != nil || n >= store.WindowRows {
		return false, err
	}
	err = tx.QueryRow(ctx, `select count(*) from (select e.id from events e where e.workflow_id = $1 and e.status = 'reserved' limit $2) p`, workflowID, store.WindowRows).Scan(&n)
	return n < store.WindowRows, err
}

func scanInputPlace(row store.Scanner) (c InputCursor, err error) {
	var at int64
	err = row.Scan(&at, &c.ID)
	c.CreatedAt = store.FromMillis(at)
	return c, err
}

// SkipInput marks an input as skipped and skips its pending events. It reports
// whether it was not skipped before. What runs hold is for the caller; see
// RunsHolding.
func (tx Tx) SkipInput(ctx context.Context, id, by string) (bool, error) {
	n, err := tx.Exec(ctx, `update inputs set skipped_at = $2, skipped_by = $3 where id = $1 and skipped_at is null`, id, store.Millis(tx.Now), by)
	if err != nil {
		return false, fmt.Errorf("skip input: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	if err := tx.holdEventsOf(ctx, id); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `update events set status = 'skipped', updated_at = $2
		where status = 'pending' and id in (select event_id from event_causes where input_id = $1)`, id, store.Millis(tx.Now)); err != nil {
		return false, fmt.Errorf("skip events: %w", err)
	}
	return true, nil
}

// holdEventsOf waits for whoever publishes or releases events of an input at
// this moment and has not seen that it is skipped, and makes others wait until
// they can see it.
func (tx Tx) holdEventsOf(ctx context.Context, inputID string) error {
	rows, err := tx.Query(ctx, `select name from topics where workflow_id = (select workflow_id from inputs where id = $1) order by name`+tx.ForShare(), inputID)
	if _, err := store.ScanAll(rows, err, "hold topics", store.ScanText); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update events set updated_at = updated_at
		where status = 'reserved' and id in (select event_id from event_causes where input_id = $1)`, inputID); err != nil {
		return fmt.Errorf("hold events: %w", err)
	}
	return nil
}

// RunsHolding reads which runs hold events of an input.
func (tx Tx) RunsHolding(ctx context.Context, inputID string) ([]string, error) {
	rows, err := tx.Query(ctx, `select distinct e.reserved_by from events e join event_causes c on c.event_id = e.id
		where c.input_id = $1 and e.status = 'reserved' and e.reserved_by is not null order by e.reserved_by`, inputID)
	return store.ScanAll(rows, err, "find runs that hold an input", store.ScanText)
}
