package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// kit is a ledger on a database, whose consumers hold events and calls in two
// tables of the test.
type kit struct {
	t     testing.TB
	db    *store.DB
	l     *Ledger
	owner store.Fence

	mu     sync.Mutex
	events []Event // guarded by mu
}

// both runs a test on each database. On PostgreSQL lanes of the tests hash to
// several buckets; the kit owns bucket 0 and uses it for all, as the bucket of
// a run is that of the fence it is given.
func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url)) })
}

func newKit(t testing.TB, url string) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, db: db}
	k.l = New(Config{
		Holdings: map[pawl.Kind]Holdings{pawl.KindWorkflow: heldRows{}},
		Observe: func(e Event) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.events = append(k.events, e)
		},
	})
	k.write(func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `create table held_events (id text primary key, run text, status text not null)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `create table held_calls (run text not null, n bigint not null, state text not null, askable bigint not null)`)
		return err
	})
	k.takeOver("n1")
	return k
}

// takeOver gives the bucket to a node, as after the death of its owner.
func (k *kit) takeOver(node string) {
	k.t.Helper()
	taken, err := k.db.Take(k.t.Context(), node, store.Bucket{ID: k.owner.Bucket, Epoch: k.owner.Epoch})
	if err != nil || len(taken) != 1 {
		k.t.Fatalf("take bucket: %v, %v", taken, err)
	}
	k.owner = store.Fence{Bucket: taken[0].ID, Node: node, Epoch: taken[0].Epoch}
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn, store.Lazy); err != nil {
		k.t.Fatal(err)
	}
}

// errUndo makes a transaction fail after all of its steps: the crash before
// the commit.
var errUndo = errors.New("crash before the commit")

// step makes a transition in a transaction of its own.
func step[T any](k *kit, fn func(ctx context.Context, tx *store.Tx) (T, error)) (out T, err error) {
	k.t.Helper()
	err = k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		out, err = fn(ctx, tx)
		return err
	}, store.Lazy)
	return out, err
}

func must[T any](k *kit, fn func(ctx context.Context, tx *store.Tx) (T, error)) T {
	k.t.Helper()
	out, err := step(k, fn)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

func consumer(lane string) Spec {
	return Spec{Kind: pawl.KindWorkflow, Lane: lane, Handler: "mail", HandlerType: pawl.HandlerConsumer, Trigger: "event", ScriptVersion: "v1"}
}

func specOf(t pawl.HandlerType, lane string) Spec {
	kinds := map[pawl.HandlerType]pawl.Kind{
		pawl.HandlerProducer: pawl.KindWorkflow, pawl.HandlerConsumer: pawl.KindWorkflow,
		pawl.HandlerSource: pawl.KindSource, pawl.HandlerSchedule: pawl.KindSchedule,
	}
	return Spec{Kind: kinds[t], Lane: lane, Handler: "h", HandlerType: t, Trigger: "schedule", ScriptVersion: "v1"}
}

func handlerTypes() []pawl.HandlerType {
	return []pawl.HandlerType{pawl.HandlerProducer, pawl.HandlerConsumer, pawl.HandlerSource, pawl.HandlerSchedule}
}

func (k *kit) begin(s Spec) runstore.Run {
	k.t.Helper()
	return must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Begin(ctx, tx, k.owner, s) })
}

var (
	prepareResult  = json.RawMessage(`{"reservations":["e"]}`)
	mutationResult = json.RawMessage(`{"sent":true}`)
)

// checkpoint is what a phase must be reached with.
func checkpoint(to pawl.Phase) Checkpoint {
	switch to {
	case pawl.PhasePrepared:
		return Checkpoint{PrepareResult: prepareResult}
	case pawl.PhaseMutated:
		return Checkpoint{MutationResult: mutationResult}
	default:
		return Checkpoint{}
	}
}

func (k *kit) advance(r runstore.Run, to pawl.Phase) runstore.Run {
	k.t.Helper()
	return must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
		if to == pawl.PhasePrepared && r.Kind == pawl.KindWorkflow {
			if err := reserve(ctx, tx, r.ID); err != nil {
				return runstore.Run{}, err
			}
		}
		return k.l.Advance(ctx, tx, r, checkpoint(to), to)
	})
}

// reach begins a run and brings it to a phase before committed.
func (k *kit) reach(s Spec, phase pawl.Phase) runstore.Run {
	k.t.Helper()
	r := k.begin(s)
	for _, to := range pawl.Phases(s.HandlerType)[1:] {
		if r.Phase == phase {
			return r
		}
		r = k.advance(r, to)
	}
	k.t.Fatalf("a %s has no phase %s", s.HandlerType, phase)
	return r
}

func (k *kit) stop(r runstore.Run, class pawl.Class) Outcome {
	k.t.Helper()
	return must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) {
		return k.l.Stop(ctx, tx, r, Failure{Class: class, Code: "code", Message: "message"})
	})
}

func (k *kit) get(id string) runstore.Run {
	k.t.Helper()
	r, err := runstore.On(k.db).GetRun(k.t.Context(), id)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

// dump is everything that transitions write, as text.
func (k *kit) dump() string {
	k.t.Helper()
	var out strings.Builder
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		out.Reset()
		runs, _, err := runstore.In(tx).ListRuns(ctx, runstore.RunFilter{}, store.Place{}, 10_000)
		for _, r := range runs {
			fmt.Fprintf(&out, "%+v\n", r)
		}
		if err != nil {
			return err
		}
		for _, sql := range []string{
			`select id || ' ' || coalesce(run, '') || ' ' || status from held_events order by id`,
			`select run || ' ' || n || ' ' || state from held_calls order by run, n`,
			`select lane || ' ' || retry_count || ' ' || crash_count || ' ' || coalesce(next_retry_at, 0) from retries order by kind, lane`,
		} {
			if err := lines(ctx, tx, &out, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return out.String()
}

func lines(ctx context.Context, tx *store.Tx, out *strings.Builder, sql string) error {
	rows, err := tx.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		out.WriteString(line + "\n")
	}
	return rows.Err()
}

// heldRows keeps what consumers hold. Every run that prepares reserves one
// event.
type heldRows struct{}

func reserve(ctx context.Context, tx *store.Tx, runID string) error {
	_, err := tx.Exec(ctx, `insert into held_events (id, run, status) values ($1, $2, 'reserved')`, "event of "+runID, runID)
	return err
}

// call opens a call of a run, or moves its newest one on.
func (k *kit) call(runID string, states ...pawl.MutationState) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error { return putCall(ctx, tx, runID, true, states...) })
}

func putCall(ctx context.Context, tx *store.Tx, runID string, askable bool, states ...pawl.MutationState) error {
	for _, s := range states {
		sql := `update held_calls set state = $2 where run = $1 and state <> 'failed'`
		args := []any{runID, s}
		if s == pawl.MutationInFlight {
			ask := 0
			if askable {
				ask = 1
			}
			sql = `insert into held_calls (run, n, state, askable) values ($1, (select count(*) from held_calls), $2, $3)`
			args = append(args, ask)
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
	}
	return nil
}

func (heldRows) Mutation(ctx context.Context, tx *store.Tx, runID string) (Mutation, error) {
	rows, err := tx.Query(ctx, `select state, askable from held_calls where run = $1 order by n`, runID)
	if err != nil {
		return Mutation{}, err
	}
	defer rows.Close()
	var states []pawl.MutationState
	var m Mutation
	for rows.Next() {
		var state pawl.MutationState
		var askable int
		if err := rows.Scan(&state, &askable); err != nil {
			return Mutation{}, err
		}
		states = append(states, state)
		m.CanReconcile = askable == 1
	}
	m.State, _ = run.LedgerOf(states)
	return m, rows.Err()
}

const unresolved = ` and state in ('in_flight', 'needs_reconcile', 'indeterminate')`

func (heldRows) Settle(ctx context.Context, tx *store.Tx, s Settlement) error {
	if s.Mutation != pawl.MutationNone {
		if _, err := tx.Exec(ctx, `update held_calls set state = $2 where run = $1`+unresolved, s.RunID, s.Mutation); err != nil {
			return err
		}
	}
	var err error
	switch s.Reservations {
	case run.ReservationsRelease:
		_, err = tx.Exec(ctx, `update held_events set run = null, status = 'pending' where run = $1 and status = 'reserved'`, s.RunID)
	case run.ReservationsConsumed:
		_, err = tx.Exec(ctx, `update held_events set status = 'consumed' where run = $1 and status = 'reserved'`, s.RunID)
	case run.ReservationsTransfer:
		if _, err = tx.Exec(ctx, `update held_events set run = $2 where run = $1 and status = 'reserved'`, s.RunID, s.Successor); err == nil {
			_, err = tx.Exec(ctx, `update held_calls set run = $2 where run = $1`+unresolved, s.RunID, s.Successor)
		}
	case run.ReservationsNone, run.ReservationsKeep:
	}
	return err
}

// held tells who has the event that the run reserved, and in what state.
func (k *kit) held(runID string) (owner, status string) {
	k.t.Helper()
	var by *string
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select run, status from held_events where id = $1`, "event of "+runID).Scan(&by, &status)
	})
	if err != nil {
		k.t.Fatal(err)
	}
	if by != nil {
		owner = *by
	}
	return owner, status
}

func (k *kit) mutation(runID string) pawl.MutationState {
	k.t.Helper()
	var m Mutation
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		m, err = heldRows{}.Mutation(ctx, tx, runID)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return m.State
}

func (k *kit) retry(s Spec) run.Retry {
	k.t.Helper()
	row := must(k, func(ctx context.Context, tx *store.Tx) (runstore.LaneRetry, error) {
		return runstore.In(tx).GetRetry(ctx, s.Kind, s.Lane)
	})
	return RetryOf(row)
}
