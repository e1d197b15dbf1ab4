package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// The bounds of a definition hold from both sides, each by the name of its field.
func TestDefinitionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		pointer string
		good    []func(*Definition)
		bad     []func(*Definition)
	}{
		{"/lease", []func(*Definition){func(d *Definition) { d.Lease = time.Second }, func(d *Definition) { d.Lease = 24 * time.Hour }},
			[]func(*Definition){func(d *Definition) { d.Lease = time.Second - 1 }, func(d *Definition) { d.Lease = 24*time.Hour + 1 }}},
		{"/maxAttempts", []func(*Definition){func(d *Definition) { d.MaxAttempts = 1 }, func(d *Definition) { d.MaxAttempts = 1000 }},
			[]func(*Definition){func(d *Definition) { d.MaxAttempts = 0 }, func(d *Definition) { d.MaxAttempts = 1001 }}},
		{"/concurrencyPerLane", []func(*Definition){func(d *Definition) { d.PerLane = 1 }, func(d *Definition) { d.PerLane = 10_000 }},
			[]func(*Definition){func(d *Definition) { d.PerLane = 0 }, func(d *Definition) { d.PerLane = 10_001 }}},
		{"/keepResults", []func(*Definition){func(d *Definition) { d.Keep = time.Second }, func(d *Definition) { d.Keep = 365 * 24 * time.Hour }},
			[]func(*Definition){func(d *Definition) { d.Keep = time.Second - 1 }, func(d *Definition) { d.Keep = 365*24*time.Hour + 1 }}},
		{"/rate/limit", []func(*Definition){func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: time.Second} }, func(d *Definition) { d.Rate = &store.Rate{Limit: 1_000_000, Period: time.Second} }},
			[]func(*Definition){func(d *Definition) { d.Rate = &store.Rate{Limit: 0, Period: time.Second} }, func(d *Definition) { d.Rate = &store.Rate{Limit: 1_000_001, Period: time.Second} }}},
		{"/rate/period", []func(*Definition){func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: 100 * time.Millisecond} }, func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: 24 * time.Hour} }},
			[]func(*Definition){func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: 99 * time.Millisecond} }, func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: 24*time.Hour + 1} }}},
		{"/batch/size", []func(*Definition){func(d *Definition) { d.Batch = &store.Batch{Size: 1, Wait: time.Second} }, func(d *Definition) { d.Batch = &store.Batch{Size: 1000, Wait: time.Second} }},
			[]func(*Definition){func(d *Definition) { d.Batch = &store.Batch{Size: 0, Wait: time.Second} }, func(d *Definition) { d.Batch = &store.Batch{Size: 1001, Wait: time.Second} }}},
		{"/batch/wait", []func(*Definition){func(d *Definition) { d.Batch = &store.Batch{Size: 1, Wait: time.Millisecond} }, func(d *Definition) { d.Batch = &store.Batch{Size: 1, Wait: time.Hour} }},
			[]func(*Definition){func(d *Definition) { d.Batch = &store.Batch{Size: 1, Wait: time.Millisecond - 1} }, func(d *Definition) { d.Batch = &store.Batch{Size: 1, Wait: time.Hour + 1} }}},
	} {
		for i, change := range c.good {
			d := Usual()
			if change(&d); len(d.Check()) != 0 {
				t.Errorf("%s: good one %d: %v", c.pointer, i, d.Check())
			}
		}
		for i, change := range c.bad {
			d := Usual()
			change(&d)
			if faults := d.Check(); len(faults) != 1 || faults[0].Pointer != c.pointer || !strings.HasPrefix(faults[0].Message, "must be ") {
				t.Errorf("%s: bad one %d: %v", c.pointer, i, faults)
			}
		}
	}
}

func TestNamesOfTasks(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "Mail.send_now-2": true, strings.Repeat("x", 100): true, "pawl": true, "pawlx.y": true, "x.pawl.y": true,
		"": false, "-a": false, ".a": false, "a b": false, "a\n": false, "ä": false, strings.Repeat("x", 101): false,
		"pawl.x": false, "PAWL.x": false, "pawl.": false,
	} {
		if fault := NameFault(name); (fault == "") != good {
			t.Errorf("%q: %q", name, fault)
		}
	}
	if a, b := NameFault("pawl.x"), NameFault("-"); a == b {
		t.Errorf("both are told as %q", a)
	}
}

// A declaration is made, changed and left as it is, and the audit log has each change
// once. Its definition counts at once, at the node that made it.
func TestDeclareMakesChangesAndKeeps(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		declare := func(attempts int, user string, reach *string) (Task, bool, error) {
			var task Task
			var created bool
			d := Usual()
			d.MaxAttempts = attempts
			err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				task, created, err = r.Declare(ctx, tx, "mail", d, user, reach, user+"/1")
				return err
			})
			return task, created, err
		}
		attempts := func() int {
			t.Helper()
			spec := store.JobSpec{Task: "mail"}
			if served, err := r.Fill(t.Context(), &spec); err != nil || !served || !spec.Served {
				r.t.Fatal(served, err)
			}
			return spec.MaxAttempts
		}
		alice, bob := alice, "bob"
		task, created, err := declare(3, alice, &alice)
		if err != nil || !created || task.Name != "mail" || task.Owner != alice || task.UpdatedBy != "alice/1" || task.Definition.MaxAttempts != 3 {
			r.t.Fatalf("%+v %v %v", task, created, err)
		}
		if n := attempts(); n != 3 {
			r.t.Errorf("jobs have %d attempts", n)
		}
		spec := store.JobSpec{Task: "mail", MaxAttempts: 9}
		if _, err := r.Fill(t.Context(), &spec); err != nil || spec.MaxAttempts != 9 {
			r.t.Errorf("one that says so has %d: %v", spec.MaxAttempts, err)
		}
		task, created, err = declare(3, alice, &alice) // the same once more
		if err != nil || created || task.Definition.MaxAttempts != 3 || task.Name != "mail" {
			r.t.Errorf("%+v %v %v", task, created, err)
		}
		_, _, err = declare(4, bob, &bob)
		if e := (*pawl.Error)(nil); !errors.As(err, &e) || e.Code != pawl.CodeForbidden || e.Reason != "foreign_task" {
			r.t.Errorf("bob: %v", err)
		}
		if n := attempts(); n != 3 {
			r.t.Errorf("then jobs have %d attempts", n)
		}
		task, created, err = declare(5, bob, nil) // as an administrator
		if err != nil || created || task.Owner != alice || task.UpdatedBy != "bob/1" || task.Definition.MaxAttempts != 5 {
			r.t.Errorf("%+v %v %v", task, created, err)
		}
		if n := attempts(); n != 5 {
			r.t.Errorf("at last jobs have %d attempts", n)
		}
		if n := r.count(`select count(*) from audit_log where subject = 'task:mail'`); n != 2 {
			r.t.Errorf("%d lines in the audit log", n)
		}
		if n := r.count(`select count(*) from audit_log where (action = 'task.create' and actor = 'alice/1') or (action = 'task.change' and actor = 'bob/1')`); n != 2 {
			r.t.Errorf("%d lines say what was done", n)
		}
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := r.Declare(ctx, tx, "own", Usual(), alice, nil, alice)
			if e := (*pawl.Error)(nil); !errors.As(err, &e) || e.Code != pawl.CodeConflict || e.Reason != "own_task" {
				r.t.Errorf("Pawl's own: %v", err)
			}
			return nil
		})
	})
}

// Who waits hears of another definition: what was too many for a lane may not be now.
func TestDeclareWakesWhoWaits(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		r.enqueue(store.JobSpec{Task: "mail", Lane: "l"}, store.JobSpec{Task: "mail", Lane: "l"})
		r.claim("mail", 5)
		waits := r.waiting(Request{Task: "mail", Wait: patience})
		r.declare("mail", func(d *Definition) { d.Lease, d.PerLane = time.Hour, 2 })
		if got := <-waits; len(got) != 1 {
			r.t.Errorf("%v", got)
		}
	})
}

// There are only so many tasks; those that are there can be changed all the same.
func TestTooManyTasks(t *testing.T) {
	both(t, func(r *rig) {
		r.write(func(ctx context.Context, tx *store.Tx) error {
			var rows [][]any
			for i := range maxTasks - 1 {
				rows = append(rows, []any{fmt.Sprint("t", i)})
			}
			table, args := tx.Rowset(nil, "name text", rows)
			_, err := tx.Exec(ctx, `insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) select v.name, '{}', 'alice', 0, 0, 'alice' from `+table+` where true`, args...)
			return err
		})
		r.declare("last", nil)
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := r.Declare(ctx, tx, "more", Usual(), alice, nil, alice)
			if e := (*pawl.Error)(nil); !errors.As(err, &e) || e.Code != pawl.CodeConflict || e.Reason != "too_many_tasks" {
				r.t.Errorf("one more: %v", err)
			}
			return nil
		})
		r.declare("last", func(d *Definition) { d.PerLane = 2 })
	})
}

// A task goes when no job of it waits or is in hand; its leases of jobs that were
// cancelled go with it, and so do the jobs that it handed out by its rate. Another of its
// name begins anew.
func TestDeleteTask(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		del := func(reach *string) error {
			return r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return r.Delete(ctx, tx, "mail", reach, "ann/1") })
		}
		if err := del(nil); !errors.Is(err, pawl.ErrNotFound) {
			r.t.Errorf("one that is not there: %v", err)
		}
		rate := func(d *Definition) { d.Lease, d.Rate = time.Hour, &store.Rate{Limit: 2, Period: time.Hour} }
		r.declare("mail", rate)
		r.declare("other", func(d *Definition) { d.Lease, d.Rate = time.Hour, &store.Rate{Limit: 2, Period: time.Hour} })
		r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "other"})
		busy := func(when string) {
			t.Helper()
			if e := (*pawl.Error)(nil); !errors.As(del(nil), &e) || e.Code != pawl.CodeConflict || e.Reason != "jobs_wait" {
				r.t.Errorf("%s: %v", when, e)
			}
		}
		busy("while jobs wait")
		r.claim("other", 1)
		has := r.claim("mail", 2)
		busy("while jobs are in hand")
		r.end("mail", ending(has[0], store.Done))
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.CancelJob(ctx, nil, has[1].ID)
			return err
		})
		bob := "bob"
		if e := (*pawl.Error)(nil); !errors.As(del(&bob), &e) || e.Code != pawl.CodeForbidden {
			r.t.Errorf("bob: %v", e)
		}
		if err := del(nil); err != nil {
			r.t.Fatal(err)
		}
		spec := store.JobSpec{Task: "mail"}
		if served, err := r.Fill(t.Context(), &spec); err != nil || served || spec.Served {
			r.t.Errorf("jobs of it are taken yet: %v %v", served, err)
		}
		if n := r.count(`select count(*) from job_leases`); n != 1 {
			r.t.Errorf("%d leases", n)
		}
		if n := r.count(`select count(*) from audit_log where action = 'task.delete' and subject = 'task:mail' and actor = 'ann/1'`); n != 1 {
			r.t.Errorf("%d lines in the audit log", n)
		}
		if _, err := r.Claim(t.Context(), Request{Task: "mail"}); !errors.Is(err, pawl.ErrNotFound) {
			r.t.Errorf("claim: %v", err)
		}
		r.declare("mail", rate)
		r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"})
		if got := r.claim("mail", 2); len(got) != 2 {
			r.t.Errorf("the new one hands out %d", len(got))
		}
	})
}

// Tasks are found and listed as they were declared.
func TestFindAndListTasks(t *testing.T) {
	both(t, func(r *rig) {
		for i, name := range []string{"c", "a", "b"} {
			r.declare(name, func(d *Definition) { d.PerLane = i + 1 })
		}
		r.write(func(ctx context.Context, tx *store.Tx) error {
			task, err := r.Find(ctx, tx, "b")
			if err != nil || task.Name != "b" || task.Definition.PerLane != 3 || task.Definition.Lease != Usual().Lease {
				r.t.Errorf("%+v %v", task, err)
			}
			if _, err := r.Find(ctx, tx, "none"); !errors.Is(err, pawl.ErrNotFound) {
				r.t.Errorf("%v", err)
			}
			var names []string
			list, err := r.List(ctx, tx, "", 2)
			for _, task := range list {
				names = append(names, fmt.Sprint(task.Name, task.Definition.PerLane))
			}
			more, bad := r.List(ctx, tx, "b", 2)
			for _, task := range more {
				names = append(names, fmt.Sprint(task.Name, task.Definition.PerLane))
			}
			if want := []string{"a2", "b3", "c1"}; err != nil || bad != nil || !slices.Equal(names, want) {
				r.t.Errorf("%v, want %v: %v %v", names, want, err, bad)
			}
			return nil
		})
		// One that cannot be read is told, by its name, and claimed from by nobody.
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update worker_tasks set definition = 'x' where name = 'b'`)
			return err
		})
		r.write(func(ctx context.Context, tx *store.Tx) error {
			if _, err := r.Find(ctx, tx, "b"); err == nil || !strings.Contains(err.Error(), "read task b") {
				r.t.Errorf("find: %v", err)
			}
			if _, err := r.List(ctx, tx, "", 9); err == nil || !strings.Contains(err.Error(), "read task b") {
				r.t.Errorf("list: %v", err)
			}
			return nil
		})
		if _, err := r.Claim(t.Context(), Request{Task: "b"}); err == nil {
			r.t.Error("jobs are handed out by a definition that cannot be read")
		}
		if served, err := r.Fill(t.Context(), &store.JobSpec{Task: "b"}); err == nil {
			r.t.Errorf("a job is taken for it: %v", served)
		}
	})
}

// What a task says is believed for a moment, and what is not a task is asked for each
// time.
func TestFillKnowsTasks(t *testing.T) {
	l := deaf()
	bothWith(t, l, func(r *rig) {
		for _, name := range []string{"none", "pawl.x", "a b", ""} {
			spec := store.JobSpec{Task: name}
			if served, err := r.Fill(t.Context(), &spec); served || err != nil || spec.Served {
				r.t.Errorf("%q: %v %v", name, served, err)
			}
		}
		if names := r.Names(); len(names) != 0 {
			r.t.Errorf("knows %v", names)
		}
		r.declare("none", nil)
		r.declare("b", func(d *Definition) { d.MaxAttempts = 3 })
		r.declare("unused", nil)
		fill := func(at *rig, name string) int {
			t.Helper()
			spec := store.JobSpec{Task: name}
			r.write(func(ctx context.Context, tx *store.Tx) error {
				if served, err := at.FillTx(ctx, tx, &spec); !served || err != nil || !spec.Served {
					r.t.Errorf("%q: %v %v", name, served, err)
				}
				return nil
			})
			return spec.MaxAttempts
		}
		fill(r, "none")
		fill(r, "b")
		if names := r.Names(); !slices.Equal(names, []string{"b", "none"}) {
			r.t.Errorf("knows %v", names)
		}
		// Somebody else changes it behind the back of this process.
		change := func(attempts int) {
			r.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `update worker_tasks set definition = $1 where name = 'b'`, fmt.Sprintf(`{"maxAttempts":%d}`, attempts))
				return err
			})
		}
		change(4)
		if n := fill(r, "b"); n != 3 {
			r.t.Errorf("it was asked for again: %d attempts", n)
		}
		soon := New(Config{DB: r.db, limits: limits{known: time.Nanosecond}})
		change(5)
		spec := store.JobSpec{Task: "b"}
		if _, err := soon.Fill(t.Context(), &spec); err != nil || spec.MaxAttempts != 5 {
			r.t.Errorf("%d attempts: %v", spec.MaxAttempts, err)
		}
		change(6)
		spec = store.JobSpec{Task: "b"}
		if _, err := soon.Fill(t.Context(), &spec); err != nil || spec.MaxAttempts != 6 {
			r.t.Errorf("%d attempts: %v", spec.MaxAttempts, err)
		}
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `delete from worker_tasks where name = 'b'`)
			return err
		})
		if served, err := soon.Fill(t.Context(), &store.JobSpec{Task: "b"}); served || err != nil || len(soon.Names()) != 0 {
			r.t.Errorf("%v %v, knows %v", served, err, soon.Names())
		}
	})
}
