package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// a key names one job of its owner, and says nothing about those of
// others; Pawl is an owner like any other.
func TestKeysAreOfTheirOwners(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		owners := []string{"", "u1", "u2"}
		for _, mode := range []KeyMode{Replace, PreserveRunAt, Keep, Earliest} {
			key := "workflow:" + string(mode)
			first := map[string]Job{}
			for _, o := range owners {
				first[o] = enqueue(t, db, JobSpec{Owner: o, Task: "t" + o, Key: key, KeyMode: mode, RunAt: at(100), Payload: json.RawMessage(`1`)})[0]
			}
			for _, o := range owners {
				again := enqueue(t, db, JobSpec{Owner: o, Task: "t" + o, Key: key, KeyMode: mode, RunAt: at(200), Payload: json.RawMessage(`2`)})[0]
				if again.ID != first[o].ID || again.Owner != o || again.Task != "t"+o {
					t.Errorf("%s of %q: %+v took the place of %+v", mode, o, again, first[o])
				}
			}
			if n := count(t, db, `select count(*) from jobs where key = $1`, key); n != len(owners) {
				t.Errorf("%s: %d jobs of %d owners", mode, n, len(owners))
			}
		}
	})
}

// repairs look for a job of the task and of Pawl.
func TestKnownKeysAreThoseOfTheTask(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		enqueue(t, db, JobSpec{Owner: "u1", Task: "slot", Key: "theirs"}, JobSpec{Task: "other", Key: "another task"}, JobSpec{Task: "slot", Key: "ours"})
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			known, err := tx.KnownJobKeys(ctx, "slot", []string{"theirs", "another task", "ours"})
			if fmt.Sprint(known) != "map[ours:true]" {
				t.Errorf("known are %v", known)
			}
			return err
		})
	})
}

// lanes of different owners are different lanes, also when many jobs are
// added at once.
func TestLanesAreOfTheirOwners(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var specs []JobSpec
		for i := range 12 {
			specs = append(specs, JobSpec{Owner: []string{"", "u1", "u2"}[i%3], Task: "t", Lane: "x", RunAt: at(i)})
		}
		jobs := enqueue(t, db, specs...)
		for _, o := range []string{"", "u1", "u2"} {
			got, err := db.FetchLanes(t.Context(), []Lane{{o, "x"}}, 100, at(100))
			if err != nil || len(got) != 4 || slices.ContainsFunc(got, func(j Job) bool { return j.Owner != o }) {
				t.Errorf("lane of %q has %+v, %v", o, got, err)
			}
		}
		for i, j := range jobs {
			if got := reread(t, db, j.ID); got.Owner != specs[i].Owner || j.Owner != specs[i].Owner || got.Bucket != db.BucketOf("x", "") {
				t.Errorf("job %d is %+v", i, got)
			}
		}
	})
}

// lists, searches and changes reach the jobs of an owner, or everybody's;
// Pawl's own are seen by whoever sees everybody's and changed by nobody.
func TestJobsAreReachedByTheirOwners(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n")
		all := map[string][]Job{}
		for _, o := range []string{"", "u1", "u2"} {
			all[o] = enqueue(t, db, JobSpec{Owner: o, Task: "t", Key: "waits" + o, Lane: "x", RunAt: time.Now().Add(time.Hour)},
				JobSpec{Owner: o, Task: "t", Key: "failed" + o, Lane: "x"}, JobSpec{Owner: o, Task: "t", Key: "done" + o, Lane: "x"})
			end := func(i int, v Verdict) Finished {
				return Finished{Job: &all[o][i], Verdict: v, StartedAt: time.Now(), EndedAt: time.Now(), Record: true}
			}
			if _, _, err := db.Finish(t.Context(), Finishing{Node: "n", Epochs: epochs, Jobs: []Finished{end(1, Fail), end(2, Done)}}); err != nil {
				t.Fatal(err)
			}
		}
		u1, pawls := "u1", ""
		for _, f := range []JobFilter{{Owner: &u1}, {Owner: &u1, Lane: "x"}, {Owner: &u1, Task: "t"}} {
			if got := listed(t, db, f, 2); got != "doneu1:succeeded failedu1:failed waitsu1:scheduled" {
				t.Errorf("%+v lists %s", f, got)
			}
		}
		if got := listed(t, db, JobFilter{Owner: &pawls, Lane: "x"}, 100); got != "done:succeeded failed:failed waits:scheduled" {
			t.Errorf("of Pawl there are %s", got)
		}
		if got := listed(t, db, JobFilter{Lane: "x"}, 100); strings.Count(got, ":") != 9 {
			t.Errorf("of everybody there are %s", got)
		}
		change := func(owner *string, id int64) (cancel, retry error) {
			cancel = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { _, err := tx.CancelJob(ctx, owner, id); return err })
			retry = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error { _, _, err := tx.RetryJob(ctx, owner, id); return err })
			return cancel, retry
		}
		for i := range 3 {
			for _, o := range []string{"", "u2"} {
				cancel, retry := change(&u1, all[o][i].ID)
				if _, err := db.FindJob(t.Context(), &u1, all[o][i].ID); !errors.Is(err, pawl.ErrNotFound) || !errors.Is(cancel, pawl.ErrNotFound) || !errors.Is(retry, pawl.ErrNotFound) {
					t.Errorf("job %d of %q: found %v, cancelled %v, retried %v", i, o, err, cancel, retry)
				}
			}
			cancel, retry := change(nil, all[""][i].ID)
			for _, err := range []error{cancel, retry} {
				if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeForbidden || e.Reason != "internal_job" || e.Hint == "" {
					t.Errorf("job %d of Pawl: %v", i, err)
				}
			}
			if r, err := db.FindJob(t.Context(), nil, all[""][i].ID); err != nil || r.State == JobCancelled {
				t.Errorf("an admin sees %+v, %v", r, err)
			}
		}
		if cancel, _ := change(nil, all["u2"][0].ID); cancel != nil {
			t.Errorf("an admin cancels: %v", cancel)
		}
		if _, retry := change(&u1, all["u1"][2].ID); !errors.Is(retry, pawl.ErrConflict) {
			t.Errorf("a job of one's own that succeeded: %v", retry)
		}
		if cancel, _ := change(&u1, all["u1"][1].ID); cancel != nil {
			t.Errorf("a job of one's own: %v", cancel)
		}
	})
}

// What was there before jobs had owners goes to whoever made it, also a key of
// Pawl's own that somebody took: it is free again, and a repair finds that.
func TestJobsGetTheirOwnersLater(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if db.Shared() {
				if _, err := tx.Exec(ctx, `drop schema pawl cascade`); err != nil {
					return err
				}
			}
			for _, s := range []string{
				`drop index jobs_key`, `drop index jobs_lane`, `drop index jobs_owner`, `drop index job_history_owner`, `drop index jobs_served_due`, `drop index jobs_served_lane`,
				`alter table jobs drop column owner`, `alter table job_history drop column owner`,
				`create unique index jobs_key on jobs (key) where key is not null`,
				`create index jobs_lane on jobs (lane, priority desc, run_at, id) where lane is not null and state = 0`,
				`insert into users (id, name, role, created_at) values ('u1', 'ada', 'operator', 1)`,
				`insert into jobs (id, bucket, run_at, max_attempts, task, key, payload, created_at, created_by, kept_at, kept) values
					(1, 0, 1, 0, 'pawl.workflow', 'workflow:a', '{}', 1, null, 5, '{"task":"log"}'),
					(2, 0, 1, 0, 'log', 'workflow:b', '{}', 1, 'ada', null, null),
					(3, 0, 1, 0, 'log', null, '{}', 1, 'gone', null, null)`,
				`insert into job_history (id, task, state, run_at, finished_at, attempt) values (4, 'http', 'succeeded', 1, 1, 1), (5, 'pawl.notify', 'failed', 1, 1, 1)`,
				`delete from schema_migrations where name = 'job_owner'`,
			} {
				if _, err := tx.Exec(ctx, s); err != nil {
					return fmt.Errorf("%s: %w", s, err)
				}
			}
			all, err := migrations()
			if err != nil {
				return err
			}
			return tx.apply(ctx, all[slices.IndexFunc(all, func(m migration) bool { return m.name == "job_owner" })])
		})
		got := fmt.Sprint(query(t, db, `select owner, coalesce(kept, '-'), '' from jobs order by id`), query(t, db, `select owner, '', '' from job_history order by id`))
		if want := "[[ - ] [u1 - ] [unknown - ]] [[unknown  ] [  ]]"; got != want {
			t.Errorf("owners are %s, want %s", got, want)
		}
	})
}

// A line of the audit log is written with the job, one for each (P1 15).
func TestEnqueueTellsTheAuditLog(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		spec := func(key string, mode KeyMode) JobSpec {
			return JobSpec{Owner: "u1", Actor: "ada", Task: "t", Key: key, KeyMode: mode, Lane: "x", RunAt: at(1)}
		}
		jobs, err := db.EnqueueOwnTx(t.Context(), []JobSpec{spec("", ""), spec("", ""), {Task: "ours"}})
		if err != nil {
			t.Fatal(err)
		}
		keyed := enqueue(t, db, spec("k", ""), spec("k", Replace), spec("k", Keep), spec("k2", Keep))
		if err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if _, err := tx.Enqueue(ctx, []JobSpec{spec("", "")}); err != nil {
				t.Error(err)
			}
			return errors.New("not committed")
		}); err == nil {
			t.Fatal("committed")
		}
		lines, err := db.AuditLog(t.Context(), 0, 300)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, l := range slices.Backward(lines) {
			told = append(told, l.Actor+" "+l.Action+" "+l.Subject)
		}
		want := []string{
			fmt.Sprint("ada job.create job:", jobs[0].ID), fmt.Sprint("ada job.create job:", jobs[1].ID),
			fmt.Sprint("ada job.create job:", keyed[0].ID), fmt.Sprint("ada job.replace job:", keyed[0].ID), fmt.Sprint("ada job.keep job:", keyed[0].ID),
			fmt.Sprint("ada job.create job:", keyed[3].ID),
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q\nwant %q", told, want)
		}
	})
}
