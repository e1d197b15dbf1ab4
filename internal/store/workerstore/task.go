package workerstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Task is a task that programs of users serve.
type Task struct {
	Name       string
	Definition json.RawMessage
	Owner      string     // the id of the user who declared it
	Turn       store.Lane // that was served last
	CreatedAt  time.Time
	UpdatedAt  time.Time
	UpdatedBy  string
}

const taskColumns = `name, definition, owner, turn_owner, turn_lane, created_at, updated_at, updated_by`

func scanTask(row store.Scanner) (Task, error) {
	var t Task
	var definition string
	var created, updated int64
	if err := row.Scan(&t.Name, &definition, &t.Owner, &t.Turn.Owner, &t.Turn.Name, &created, &updated, &t.UpdatedBy); err != nil {
		return Task{}, err
	}
	t.Definition, t.CreatedAt, t.UpdatedAt = json.RawMessage(definition), store.FromMillis(created), store.FromMillis(updated)
	return t, nil
}

func noTask(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read task", Msg: fmt.Sprintf("there is no task %q that workers serve", name), Hint: "Declare it with PUT /api/v1/tasks/" + name + "."}
	}
	return fmt.Errorf("read task: %w", err)
}

// FindTask reads a task, or fails with pawl.ErrNotFound.
func (tx Tx) FindTask(ctx context.Context, name string) (Task, error) {
	t, err := scanTask(tx.QueryRow(ctx, `select `+taskColumns+` from worker_tasks where name = $1`, name))
	return t, noTask(err, name)
}

// HoldTask reads a task and keeps others from changing it, and from claiming its
// jobs, until the transaction ends.
func (tx Tx) HoldTask(ctx context.Context, name string) (Task, error) {
	t, err := scanTask(tx.QueryRow(ctx, holdTask+tx.ForUpdate(), name))
	return t, noTask(err, name)
}

const holdTask = `select ` + taskColumns + ` from worker_tasks where name = $1`

// AskTask is HoldTask for who wants the task with the answer to the next statement.
// missing is why there is none.
func (tx Tx) AskTask(ctx context.Context, name string, t *Task, missing *error) error {
	return tx.Ask(ctx, func(rows store.Rows, err error) error {
		list, err := store.ScanAll(rows, err, "read task", scanTask)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			*missing = noTask(store.ErrNoRow, name)
		default:
			*t = list[0]
		}
		return nil
	}, holdTask+tx.ForUpdate(), name)
}

// PutTask makes a task, or gives the one of that name another definition. Its owner
// stays.
func (tx Tx) PutTask(ctx context.Context, t Task) (Task, error) {
	t, err := scanTask(tx.QueryRow(ctx, `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ($1, $2, $3, $4, $4, $5)
		on conflict (name) do update set definition = excluded.definition, updated_at = excluded.updated_at, updated_by = excluded.updated_by returning `+taskColumns,
		t.Name, string(t.Definition), t.Owner, store.Millis(tx.Now), t.UpdatedBy))
	if err != nil {
		return Task{}, fmt.Errorf("put task: %w", err)
	}
	return t, nil
}

// DeleteTask removes a task.
func (tx Tx) DeleteTask(ctx context.Context, name string) error {
	n, err := tx.Exec(ctx, `delete from worker_tasks where name = $1`, name)
	if err == nil && n == 0 {
		err = store.ErrNoRow
	}
	return noTask(err, name)
}

// SetTurn notes the lane that was served last.
func (tx Tx) SetTurn(ctx context.Context, name string, turn store.Lane) error {
	return tx.Post(ctx, `update worker_tasks set turn_owner = $2, turn_lane = $3 where name = $1`, name, turn.Owner, turn.Name)
}

// CountTasks counts tasks.
func (tx Tx) CountTasks(ctx context.Context) (n int, err error) {
	err = tx.QueryRow(ctx, `select count(*) from worker_tasks`).Scan(&n)
	return n, err
}

// ListTasks reads up to limit tasks by name, those after the given one.
func (tx Tx) ListTasks(ctx context.Context, after string, limit int) ([]Task, error) {
	rows, err := tx.Query(ctx, `select `+taskColumns+` from worker_tasks where name > $1 order by name limit $2`, after, limit)
	return store.ScanAll(rows, err, "list tasks", scanTask)
}

// Expired lists up to limit tasks of which a lease is over.
func (tx Tx) Expired(ctx context.Context, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `select t.name from worker_tasks t where (select min(l.lease_until) from job_leases l where l.task = t.name) <= $1 order by t.name limit $2`, store.Millis(tx.Now), limit)
	return store.ScanAll(rows, err, "find leases that are over", store.ScanText)
}
