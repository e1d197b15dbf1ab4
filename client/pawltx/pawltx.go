// Package pawltx adds jobs and publishes events inside a transaction of the
// application: they are committed together with what the application writes there,
// or not at all.
//
// It calls the functions that Pawl puts into its PostgreSQL database, as a role that
// is a member of pawl_app, with the driver that the application has already:
//
//	id, err := pawltx.Pgx(tx).AddJob(ctx, pawltx.Job{Task: "send-email", Payload: mail}) // pgx.Tx
//	id, err := pawltx.SQL(tx).AddJob(ctx, pawltx.Job{Task: "send-email", Payload: mail}) // *sql.Tx
//
// An error of the database ends the transaction, as any other does. It is wrapped:
// with pgx, a *pgconn.PgError tells its code and a hint.
//
// The package imports the standard library and the client only.
package pawltx

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Row is what a driver gives for a query of one row.
type Row interface{ Scan(dest ...any) error }

// Tx is a transaction of the application, whatever its driver is.
type Tx struct {
	row func(ctx context.Context, sql string, args ...any) Row
}

// Pgx is for a pgx.Tx, and for whatever else of pgx has its QueryRow.
func Pgx[R Row](tx interface {
	QueryRow(ctx context.Context, sql string, args ...any) R
},
) Tx {
	return Tx{func(ctx context.Context, sql string, args ...any) Row { return tx.QueryRow(ctx, sql, args...) }}
}

// SQL is for a *sql.Tx of package database/sql, and for whatever else there has its
// QueryRowContext.
func SQL(tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) Tx {
	return Tx{func(ctx context.Context, query string, args ...any) Row {
		return tx.QueryRowContext(ctx, query, args...)
	}}
}

// Job is a job to be added. All but the task may be left out.
type Job struct {
	Task        string
	Payload     any       // whatever becomes JSON; nil is {}
	RunAt       time.Time // zero is now
	Lane        string    // jobs of a lane run one at a time, in order
	Key         string    // at most one job with this key waits
	KeyMode     string    // replace (or empty), preserve_run_at or keep
	Priority    int       // 1 runs before 0, 0 before -1
	MaxAttempts int       // 0 is 10
}

// AddJob adds a job and returns its id, a UUID. It runs when the transaction is
// committed, or later if it says so.
func (t Tx) AddJob(ctx context.Context, job Job) (id string, err error) {
	payload, err := marshal(job.Payload, "{}")
	if err != nil {
		return "", fmt.Errorf("add job: %w", err)
	}
	texts, args := []string{"task => $1::text", "payload => $2::text::jsonb"}, []any{job.Task, payload}
	add := func(given bool, name, kind string, value any) {
		if given {
			args = append(args, value)
			texts = append(texts, name+" => $"+strconv.Itoa(len(args))+"::"+kind)
		}
	}
	add(!job.RunAt.IsZero(), "run_at", "timestamptz", job.RunAt)
	add(job.Lane != "", "lane", "text", job.Lane)
	add(job.Key != "", "key", "text", job.Key)
	add(job.KeyMode != "", "key_mode", "text", job.KeyMode)
	add(job.Priority != 0, "priority", "int", job.Priority)
	add(job.MaxAttempts != 0, "max_attempts", "int", job.MaxAttempts)
	if err := t.row(ctx, `select pawl.add_job(`+strings.Join(texts, ", ")+`)::text`, args...).Scan(&id); err != nil {
		return "", fmt.Errorf("add job: %w", err)
	}
	return id, nil
}

// AddJobs adds up to 10,000 jobs with one statement, and returns their ids in the
// same order.
func (t Tx) AddJobs(ctx context.Context, jobs ...Job) (ids []string, err error) {
	list := make([]newJob, len(jobs))
	for i, j := range jobs {
		list[i] = j.fields()
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("add jobs: %w", err)
	}
	var text string
	err = t.row(ctx, `select coalesce(string_agg(t.id::text, ' ' order by t.place), '') from pawl.add_jobs($1::text::jsonb) with ordinality as t (id, place)`, string(raw)).Scan(&text)
	if err != nil {
		return nil, fmt.Errorf("add jobs: %w", err)
	}
	return strings.Fields(text), nil
}

// newJob is a job as pawl.add_jobs reads it.
type newJob struct {
	Task        string     `json:"task"`
	Payload     any        `json:"payload,omitempty"`
	RunAt       *time.Time `json:"run_at,omitempty"`
	Lane        string     `json:"lane,omitempty"`
	Key         string     `json:"key,omitempty"`
	KeyMode     string     `json:"key_mode,omitempty"`
	Priority    int        `json:"priority,omitempty"`
	MaxAttempts int        `json:"max_attempts,omitempty"`
}

func (j Job) fields() newJob {
	out := newJob{Task: j.Task, Payload: j.Payload, Lane: j.Lane, Key: j.Key, KeyMode: j.KeyMode, Priority: j.Priority, MaxAttempts: j.MaxAttempts}
	if !j.RunAt.IsZero() {
		out.RunAt = &j.RunAt
	}
	return out
}

// CancelJob cancels a job that has not ended, and reports whether it did: not if it
// has ended, or is not the application's.
func (t Tx) CancelJob(ctx context.Context, id string) (cancelled bool, err error) {
	if err := t.row(ctx, `select pawl.cancel_job($1::text::uuid)`, id).Scan(&cancelled); err != nil {
		return false, fmt.Errorf("cancel job: %w", err)
	}
	return cancelled, nil
}

// marshal is a value as JSON; nil is what is said instead.
func marshal(v any, none string) (string, error) {
	if v == nil {
		return none, nil
	}
	raw, err := json.Marshal(v)
	return string(raw), err
}
