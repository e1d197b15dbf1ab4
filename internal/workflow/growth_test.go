package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// newHeardKit is newKit with somebody who hears what the database is asked.
func newHeardKit(t *testing.T, url string) (*kit, *bulk.Heard) {
	t.Helper()
	h := &bulk.Heard{}
	db, err := store.Open(t.Context(), url, store.Options{Trace: h.Note})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, url: url, db: db, desk: newDesk()}
	k.scripts.defs = map[string]definition{}
	k.start("n1")
	return k, h
}

// past is how much a lane has behind it: enough for a planner to see that it is
// much, and for a step that reads it to be seen. A million would take minutes to
// make and change no plan.
const past = 40_000

// No statement of a publish, of a run with its call, or of a look that finds
// nothing reads more rows because a lane has done much, or because much waits.
func TestNoStepOfARunReadsItsPast(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k, h := newHeardKit(t, url)
		w := k.deploy("old", "1", orderDefinition())
		k.settle(w)
		k.publish(w, "in", "first")
		k.settle(w)
		k.age(w)
		k.start("n2") // one that has to load all that it knows
		h.During(func() {
			k.publish(w, "in", "a", "b")
			k.rest(w)
		})
		if !slices.Equal(k.desk.things(), []string{"a", "b", "first"}) {
			t.Fatalf("orders: %v", k.desk.things())
		}
		k.checkCosts(h)
		k.pile(w)
		k.start("n3")
		h.During(func() {
			if until, err := k.s.work(t.Context(), k, w.ID); err != nil || until.IsZero() {
				t.Errorf("a session beside many events rests: %v, %v", until, err)
			}
		})
		k.checkCosts(h)
	})
}

// The inputs that wait are found by the events that wait, not among all that came in.
func TestPendingInputsAreFoundByWhatWaits(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k, h := newHeardKit(t, url)
		w := k.deploy("old", "1", orderDefinition())
		k.settle(w)
		k.publish(w, "in", "first")
		k.settle(w)
		k.age(w)
		k.publish(w, "in", "a", "b")
		h.During(func() {
			k.read(func(ctx context.Context, tx *store.Tx) error {
				list, err := eventstore.In(tx).ListInputs(ctx, w.ID, eventstore.InputPending, eventstore.InputCursor{}, 51)
				if len(list) != 2 {
					t.Errorf("%+v", list)
				}
				return err
			})
		})
		faults, measured, err := h.Dear(t.Context(), url, bulk.MostOfAStep(k.db.Name()))
		if err != nil || measured != 3 {
			t.Fatalf("%d statements were measured: %v", measured, err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}

// A plan that PostgreSQL makes while the tables are empty is kept while they grow,
// so the newest run of a lane has to be found by the index of lanes from the first
// on.
func TestTheNewestRunIsFoundByItsLaneOnANewDatabase(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		var asked string
		db, err := store.Open(t.Context(), url, store.Options{Trace: func(sql string, _ []any) { asked = sql }})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // only read from
		if _, err := runstore.On(db).NewestRun(t.Context(), pawl.KindWorkflow, "none"); !errors.Is(err, pawl.ErrNotFound) {
			t.Fatal(err)
		}
		explain, plan := "explain ", ""
		if db.Name() == "sqlite" {
			explain = "explain query plan "
		}
		err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.Query(ctx, explain+asked, pawl.KindWorkflow, "none")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var line string
				into := []any{&line}
				if db.Name() == "sqlite" {
					into = []any{new(int), new(int), new(int), &line}
				}
				if err := rows.Scan(into...); err != nil {
					return err
				}
				plan += line + "\n"
			}
			return rows.Err()
		})
		if err != nil || !strings.Contains(plan, "runs_lane ") {
			t.Errorf("%v\n%s\n%s", err, asked, plan)
		}
	})
}

// checkCosts holds that no statement reads what grows.
func (k *kit) checkCosts(h *bulk.Heard) {
	k.t.Helper()
	faults, measured, err := h.Dear(k.t.Context(), k.url, bulk.MostOfAStep(k.db.Name()))
	if err != nil || measured < 15 {
		k.t.Fatalf("%d statements were measured: %v", measured, err)
	}
	for _, fault := range faults {
		k.t.Error(fault)
	}
}

// pile makes many events wait.
func (k *kit) pile(w workflowstore.Workflow) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
			with recursive n(i) as (select 1 union all select i + 1 from n where i < $1)
			select $1 + i, workflow_id, topic, seq + 10 + i, seq + 10 + i, 'p-' || i, payload, 'pending', created_by, caused_by, created_at + i, updated_at + i
			from n cross join (select * from events where workflow_id = $2 and topic = 'in' and message_id = 'first') t`, past, w.ID)
		if err == nil {
			_, err = tx.Exec(ctx, `update topics set seq = seq + 10 + $1 where workflow_id = $2 and name = 'in'`, past, w.ID)
		}
		return err
	})
	k.analyze()
}

// analyze lets PostgreSQL count its rows, as it does by itself some time after they
// came.
func (k *kit) analyze() {
	if k.db.Name() == "postgres" {
		k.write(func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, `analyze`); return err })
	}
}

// rest works on a lane until there is nothing to do, and asks for nothing besides.
func (k *kit) rest(w workflowstore.Workflow) {
	k.t.Helper()
	for range 100 {
		until, err := k.s.work(k.t.Context(), k, w.ID)
		if err != nil {
			k.t.Fatal(err)
		}
		if until.IsZero() {
			return
		}
	}
	k.t.Fatal("the lane does not come to rest")
}

// age gives a lane a past: runs with their calls and logs, events that were
// consumed, inputs and causes. Every second run is of another lane, and newer.
func (k *kit) age(w workflowstore.Workflow) {
	k.t.Helper()
	const count = `with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) `
	const runID, callID = `'00000000-0000-7000-8000-' || (100000000000 + i)`, `'00000001-0000-7000-8000-' || (100000000000 + i)`
	for _, sql := range []string{
		`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, started_at, ended_at) ` + count + `
			select ` + runID + `, kind, case when i % 2 = 0 then lane else 'other' end, handler, handler_type, trigger, phase, status, 1, created_at - 1000 * i * (1 - i % 2 * 2), updated_at - 1000 * i * (1 - i % 2 * 2), created_at - 1000 * i * (1 - i % 2 * 2), updated_at - 1000 * i * (1 - i % 2 * 2)
			from n cross join (select * from runs where lane = {lane} and handler = 'order' order by created_at desc limit 1) t`,
		`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, resolved_at, created_at, updated_at) ` + count + `
			select ` + callID + `, workflow_id, ` + runID + `, 1, tool, method, arguments, 'k-' || i, title, state, can_reconcile, result, resolved_at - 1000 * i, created_at - 1000 * i, updated_at - 1000 * i
			from n cross join (select * from mutations where workflow_id = {id}) t`,
		`insert into run_logs (run_id, n, phase, at, level, text) ` + count + `select ` + runID + `, 1, 'prepare', 1, 'info', 'looked' from n`,
		`insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, created_at, updated_at) ` + count + `
			select i, workflow_id, topic, -i, -i, 'm-' || i, payload, status, ` + runID + `, created_by, caused_by, created_at - i, updated_at - i
			from n cross join (select * from events where workflow_id = {id} and topic = 'in') t where i > 100`,
		`insert into inputs (id, workflow_id, source, type, external_id, title, created_by, created_at) ` + count + `
			select 'i-' || i, workflow_id, source, type, 'o-' || i, title, created_by, created_at - i from n cross join (select * from inputs where workflow_id = {id}) t`,
		`insert into event_causes (input_id, event_id) ` + count + `select 'i-' || i, i from n`,
		`insert into mutation_inputs (input_id, mutation_id) ` + count + `select 'i-' || i, ` + callID + ` from n`,
	} {
		sql = strings.NewReplacer("{lane}", "'"+w.Lane+"'", "{id}", "'"+w.ID+"'").Replace(sql)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Exec(ctx, sql, past)
			if err == nil && n < past-100 {
				err = fmt.Errorf("%d rows: %s", n, sql)
			}
			return err
		})
	}
	k.analyze()
}

// One statement chooses among consumers, however many there are, and so do the
// ones that begin a run.
func TestManyConsumersAreChosenFromByOneStatement(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		const most = 100 // that a workflow may have
		k, h := newHeardKit(t, url)
		k.writeThrough() // else it depends on the clock what is written together
		asked := map[int]int{}
		for _, n := range []int{2, most} {
			d := definition{handlers: map[string]goHandler{}}
			for i := range n {
				topic, name := fmt.Sprint("t", i), fmt.Sprint("c", i)
				d.config.Topics = append(d.config.Topics, topic)
				d.config.Consumers = append(d.config.Consumers, Consumer{Name: name, Subscribe: []string{topic}})
				d.handlers["consumers."+name+".prepare"] = takeOne(topic)
			}
			slices.Sort(d.config.Topics)
			w := k.deploy(fmt.Sprint("many-", n), "1", d)
			k.settle(w)
			for i := range n {
				k.publish(w, fmt.Sprint("t", i), "a")
			}
			k.settle(w)
			k.start("n2")
			asked[n] = h.During(func() { // it has to load, to choose among two that have news, and to rest
				k.publish(w, "t1", "b")
				k.publish(w, "t0", "b")
				k.rest(w)
			})
		}
		t.Logf("%d statements with two consumers, %d with %d", asked[2], asked[most], most)
		if asked[most] > asked[2] {
			t.Errorf("%d statements with two consumers, %d with %d", asked[2], asked[most], most)
		}
	})
}
