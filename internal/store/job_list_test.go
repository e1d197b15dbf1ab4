package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// listed gives the names of all jobs that a filter picks, page by page. The
// name of a job is its key.
func listed(t testing.TB, db *DB, f JobFilter, limit int) string {
	t.Helper()
	var out []string
	for before := int64(0); ; {
		page, next, err := db.ListJobs(t.Context(), f, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit || (next != 0 && len(page) != limit) {
			t.Fatalf("a page of %d, next %d", len(page), next)
		}
		for _, r := range page {
			out = append(out, r.Key+":"+string(r.State))
		}
		if next == 0 {
			return strings.Join(out, " ")
		}
		before = next
	}
}

// variety makes a job in every state and place.
func variety(t testing.TB, db *DB) {
	t.Helper()
	epochs := own(t, db, "n")
	later := time.Now().Add(time.Hour)
	jobs := enqueue(t, db,
		JobSpec{Owner: "u1", Task: "a", Key: "scheduled", Lane: "x", RunAt: later},
		JobSpec{Owner: "u1", Task: "a", Key: "pending", Lane: "x"},
		JobSpec{Owner: "u1", Task: "b", Key: "running", Lane: "y"},
		JobSpec{Owner: "u1", Task: "b", Key: "failed", Lane: "y"},
		JobSpec{Owner: "u1", Task: "a", Key: "succeeded", Lane: "x"},
		JobSpec{Owner: "u1", Task: "b", Key: "cancelled", RunAt: later},
		JobSpec{Owner: "u1", Task: "a", Key: "again"},
	)
	if n, err := db.MarkStarted(t.Context(), Marking{"n", epochs, []*Job{&jobs[2]}, time.Now()}); err != nil || n != 1 {
		t.Fatalf("marked %d, %v", n, err)
	}
	end := func(j *Job, v Verdict, msg string) Finished {
		return Finished{Job: j, Verdict: v, Error: msg, StartedAt: time.Now(), EndedAt: time.Now(), Record: true}
	}
	if _, _, err := db.Finish(t.Context(), Finishing{Node: "n", Epochs: epochs, Jobs: []Finished{
		end(&jobs[3], Fail, "broke"), end(&jobs[4], Done, ""),
	}}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.CancelJob(ctx, nil, jobs[5].ID); err != nil {
			return err
		}
		// An outcome of an earlier run of a job that waits again.
		return tx.recordJob(ctx, end(&jobs[6], Done, ""), "n")
	})
}

func TestJobListTellsPresentAndPastOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		variety(t, db)
		all := "again:pending cancelled:cancelled succeeded:succeeded failed:failed running:running pending:pending scheduled:scheduled"
		for _, c := range []struct {
			filter JobFilter
			want   string
		}{
			{JobFilter{}, all},
			{JobFilter{State: JobScheduled}, "scheduled:scheduled"},
			{JobFilter{State: JobPending}, "again:pending pending:pending"},
			{JobFilter{State: JobRunning}, "running:running"},
			{JobFilter{State: JobFailed}, "failed:failed"},
			{JobFilter{State: JobSucceeded}, "succeeded:succeeded"},
			{JobFilter{State: JobCancelled}, "cancelled:cancelled"},
			{JobFilter{Task: "a"}, "again:pending succeeded:succeeded pending:pending scheduled:scheduled"},
			{JobFilter{Lane: "x"}, "succeeded:succeeded pending:pending scheduled:scheduled"},
			{JobFilter{Lane: "y"}, "failed:failed running:running"},
			{JobFilter{Lane: "x", State: JobPending}, "pending:pending"},
			{JobFilter{Task: "a", State: JobPending}, "again:pending pending:pending"},
			{JobFilter{Key: "cancelled"}, "cancelled:cancelled"},
			{JobFilter{Key: "pending", State: JobPending}, "pending:pending"},
			{JobFilter{Key: "pending", Lane: "y"}, ""},
		} {
			for _, limit := range []int{1, 2, 100} {
				if got := listed(t, db, c.filter, limit); got != c.want {
					t.Errorf("%+v by %d:\n%s, want\n%s", c.filter, limit, got, c.want)
				}
			}
		}
	})
}

// Where many are due, pending jobs are found another way; the answer is the
// same.
func TestJobListOfManyPending(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		specs := make([]JobSpec, manyDue+5)
		for i := range specs {
			specs[i] = JobSpec{Task: "t", Priority: i%3 - 1, Lane: fmt.Sprint(i)}
			if i == 0 {
				specs[i].RunAt = time.Now().Add(time.Hour)
			}
		}
		enqueue(t, db, specs...)
		seen := map[int64]bool{}
		for before := int64(0); ; {
			page, next, err := db.ListJobs(t.Context(), JobFilter{State: JobPending}, before, 500)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				if r.State != JobPending || seen[r.ID] {
					t.Fatalf("%+v", r)
				}
				seen[r.ID] = true
			}
			if before = next; next == 0 {
				break
			}
		}
		if len(seen) != len(specs)-1 {
			t.Errorf("%d jobs, want %d", len(seen), len(specs)-1)
		}
	})
}

func TestFindJobTellsAllThatIsKnown(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		variety(t, db)
		page, _, err := db.ListJobs(t.Context(), JobFilter{}, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			found, err := db.FindJob(t.Context(), nil, r.ID)
			if err != nil || found.State != r.State || found.Key != r.Key || found.Task != r.Task || found.Past != (r.State == JobSucceeded || r.State == JobCancelled) {
				t.Errorf("%s: %+v %v", r.Key, found, err)
			}
			if d := time.Since(found.CreatedAt); d < 0 || d > time.Minute {
				t.Errorf("%s was created %v ago", r.Key, d)
			}
			if r.State == JobFailed && (found.LastError != "broke" || found.Attempt != 1) {
				t.Errorf("%+v", found)
			}
		}
		if _, err := db.FindJob(t.Context(), nil, 7); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	})
}

func TestCancelJobRefusesWhatEnded(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		variety(t, db)
		page, _, err := db.ListJobs(t.Context(), JobFilter{}, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
				_, err := tx.CancelJob(ctx, nil, r.ID)
				return err
			})
			if refused := errors.Is(err, pawl.ErrConflict); refused != r.Past || (err != nil && !refused) {
				t.Errorf("%s: %v", r.Key, err)
			}
		}
		if n := count(t, db, `select count(*) from jobs`); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		if got := listed(t, db, JobFilter{State: JobCancelled}, 100); strings.Count(got, ":cancelled") != 6 {
			t.Errorf("cancelled are %s", got)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if _, err := tx.CancelJob(ctx, nil, 7); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("unknown: %v", err)
			}
			return nil
		})
	})
}

func TestRetryJob(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n")
		jobs := enqueue(t, db, JobSpec{Owner: "u1", Task: "t", Key: "k"}, JobSpec{Owner: "u2", Task: "t"})
		for i := range jobs {
			f := Finished{Job: &jobs[i], Verdict: Fail, Error: "broke", StartedAt: time.Now(), EndedAt: time.Now()}
			if _, _, err := db.Finish(t.Context(), Finishing{Node: "n", Epochs: epochs, Jobs: []Finished{f}}); err != nil {
				t.Fatal(err)
			}
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				was, again, err := tx.RetryJob(ctx, nil, jobs[i].ID)
				if err != nil || was.LastError != "broke" || again.ID != jobs[i].ID || again.Rev <= was.Rev || again.Attempt != 0 {
					t.Errorf("was %+v, is %+v, %v", was, again, err)
				}
				return nil
			})
			r, err := db.FindJob(t.Context(), nil, jobs[i].ID)
			if err != nil || r.State != JobPending || r.Key != jobs[i].Key || r.Attempt != 0 || r.LastError != "" {
				t.Errorf("left as %+v %v", r, err)
			}
			err = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
				_, _, err := tx.RetryJob(ctx, nil, jobs[i].ID)
				return err
			})
			if !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("a waiting job: %v", err)
			}
		}
	})
}

func TestDueJobsCountsWhatWaits(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		if due, oldest, err := db.DueJobs(t.Context(), 10); err != nil || len(due) != 0 || !oldest.IsZero() {
			t.Errorf("nothing: %v %v %v", due, oldest, err)
		}
		variety(t, db)
		first := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		enqueue(t, db, JobSpec{Task: "c", RunAt: first, Priority: -1}, JobSpec{Task: "c", RunAt: first.Add(time.Second), Priority: 1})
		due, oldest, err := db.DueJobs(t.Context(), 10)
		if err != nil || fmt.Sprint(due) != "[{a 2} {c 2}]" || !oldest.Equal(first) {
			t.Errorf("%v %v %v", due, oldest, err)
		}
		if due, _, err = db.DueJobs(t.Context(), 3); err != nil || due[0].Count+due[len(due)-1].Count != 3 {
			t.Errorf("bounded: %v %v", due, err)
		}
	})
}
