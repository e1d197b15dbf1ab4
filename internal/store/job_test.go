package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

func enqueue(t testing.TB, db *DB, specs ...JobSpec) []Job {
	t.Helper()
	var jobs []Job
	mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
		jobs, err = tx.Enqueue(ctx, specs)
		return err
	})
	return jobs
}

// own makes a node the owner of all buckets.
func own(t testing.TB, db *DB, node string) map[int]int64 {
	t.Helper()
	if err := db.Join(t.Context(), Node{ID: node, Share: true}); err != nil {
		t.Fatal(err)
	}
	v, err := db.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	epochs := map[int]int64{}
	got, err := db.Take(t.Context(), node, v.Buckets...)
	if err != nil || len(got) != len(v.Buckets) {
		t.Fatalf("took %d buckets, %v", len(got), err)
	}
	for _, b := range got {
		epochs[b.ID] = b.Epoch
	}
	return epochs
}

func reread(t testing.TB, db *DB, id int64) *Job {
	t.Helper()
	jobs, err := db.FetchJobs(t.Context(), []int64{id})
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) == 0 {
		return nil
	}
	return &jobs[0]
}

func at(s int) time.Time { return time.UnixMilli(int64(1_900_000_000+s) * 1000).UTC() }

// C-53, C-54, C-61: a key names one waiting job; the mode says what a second
// enqueue does to it.
func TestKeyModes(t *testing.T) {
	first := JobSpec{Task: "t", Key: "k", RunAt: at(100), Payload: json.RawMessage(`{"n":1}`)}
	for _, c := range []struct {
		mode        KeyMode
		runAt       time.Time
		wantRunAt   time.Time
		wantPayload string
	}{
		{Replace, at(50), at(50), `{"n":2}`},
		{"", at(150), at(150), `{"n":2}`},
		{PreserveRunAt, at(50), at(100), `{"n":2}`},
		{Keep, at(50), at(100), `{"n":1}`},
		{Earliest, at(50), at(50), `{"n":2}`},
		{Earliest, at(150), at(100), `{"n":2}`},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			both(t, func(t *testing.T, db *DB) {
				one := enqueue(t, db, first)[0]
				two := enqueue(t, db, JobSpec{Task: "t", Key: "k", KeyMode: c.mode, RunAt: c.runAt, Payload: json.RawMessage(`{"n":2}`)})[0]
				if one.ID != two.ID {
					t.Errorf("two jobs: %d and %d", one.ID, two.ID)
				}
				if !two.RunAt.Equal(c.wantRunAt) || string(two.Payload) != c.wantPayload {
					t.Errorf("got %v %s, want %v %s", two.RunAt, two.Payload, c.wantRunAt, c.wantPayload)
				}
				if n := count(t, db, `select count(*) from jobs`); n != 1 {
					t.Errorf("%d rows", n)
				}
			})
		})
	}
}

// a key is only about waiting jobs. A finished one is gone, one that
// failed for good counts as absent.
func TestKeyCanBeUsedAgain(t *testing.T) {
	for _, v := range []Verdict{Done, Fail, Cancel} {
		both(t, func(t *testing.T, db *DB) {
			epochs := own(t, db, "n1")
			one := enqueue(t, db, JobSpec{Task: "t", Key: "k", Payload: json.RawMessage(`1`)})[0]
			finish(t, db, epochs, Finished{Job: &one, Verdict: v, StartedAt: now(), EndedAt: now()})
			two := enqueue(t, db, JobSpec{Task: "t", Key: "k", KeyMode: Keep, Payload: json.RawMessage(`2`)})[0]
			if got := reread(t, db, two.ID); got == nil || string(got.Payload) != "2" || got.Attempt != 0 {
				t.Errorf("after verdict %d: %+v", v, got)
			}
		})
	}
}

func finish(t testing.TB, db *DB, epochs map[int]int64, jobs ...Finished) []Job {
	t.Helper()
	again, lost, err := db.Finish(t.Context(), Finishing{Node: "n1", Epochs: epochs, Jobs: jobs})
	if err != nil || len(lost) > 0 {
		t.Fatalf("finish: %v, lost %v", err, lost)
	}
	return again
}

func TestVerdicts(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n1")
		jobs := enqueue(t, db, JobSpec{Task: "t"}, JobSpec{Task: "t"}, JobSpec{Task: "t"}, JobSpec{Task: "t"}, JobSpec{Task: "t"})
		var fs []Finished
		for i, v := range []Verdict{Done, Retry, Snooze, Fail, Cancel} {
			fs = append(fs, Finished{Job: &jobs[i], Verdict: v, RunAt: at(10), Error: "why", StartedAt: now(), EndedAt: now(), Record: true})
		}
		again := finish(t, db, epochs, fs...)
		if len(again) != 2 {
			t.Errorf("%d jobs run again, want the retried and the snoozed one", len(again))
		}
		if reread(t, db, jobs[0].ID) != nil || reread(t, db, jobs[3].ID) != nil || reread(t, db, jobs[4].ID) != nil {
			t.Error("done, failed and cancelled jobs still wait")
		}
		if j := reread(t, db, jobs[1].ID); j == nil || j.Attempt != 1 || !j.RunAt.Equal(at(10)) {
			t.Errorf("retried: %+v", j)
		}
		if j := reread(t, db, jobs[2].ID); j == nil || j.Attempt != 0 || !j.RunAt.Equal(at(10)) {
			t.Errorf("snoozed: %+v", j)
		}
		for state, want := range map[string]int{"succeeded": 1, "failed": 1, "cancelled": 1} {
			if n := count(t, db, `select count(*) from job_history where state = $1`, state); n != want {
				t.Errorf("%d recorded as %s, want %d", n, state, want)
			}
		}
		if n := count(t, db, `select count(*) from jobs where state = 1 and last_error = 'why'`); n != 1 {
			t.Error("the failed job is not kept for people to see")
		}
	})
}

// Finishing deletes only the revision that ran: whatever changed the row
// meanwhile makes it run again.
func TestChangedWhileRunningRunsAgain(t *testing.T) {
	for _, mode := range []KeyMode{Replace, PreserveRunAt, Earliest, Keep} {
		t.Run(string(mode), func(t *testing.T) {
			both(t, func(t *testing.T, db *DB) {
				epochs := own(t, db, "n1")
				other := enqueue(t, db, JobSpec{Task: "t"})[0]
				one := enqueue(t, db, JobSpec{Task: "t", Key: "k", Payload: json.RawMessage(`1`)})[0]
				started := now()
				enqueue(t, db, JobSpec{Task: "t", Key: "k", KeyMode: mode, Payload: json.RawMessage(`2`)})
				again := finish(t, db, epochs,
					Finished{Job: &one, Verdict: Done, StartedAt: started, EndedAt: now()},
					Finished{Job: &other, Verdict: Done, StartedAt: started, EndedAt: now()})
				if len(again) != 1 || again[0].ID != one.ID || string(again[0].Payload) != "2" {
					t.Errorf("runs again: %+v", again)
				}
			})
		})
	}
}

// Keep that met the job before it started changed nothing, so the job ends.
func TestKeepBeforeTheStartIsForgotten(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n1")
		one := enqueue(t, db, JobSpec{Task: "t", Key: "k"})[0]
		enqueue(t, db, JobSpec{Task: "t", Key: "k", KeyMode: Keep})
		if again := finish(t, db, epochs, Finished{Job: &one, Verdict: Done, StartedAt: now().Add(time.Second), EndedAt: now()}); len(again) != 0 {
			t.Errorf("runs again: %+v", again)
		}
		if n := count(t, db, `select count(*) from jobs`); n != 0 {
			t.Errorf("%d rows left", n)
		}
	})
}

func TestLostBucketWritesNothing(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n1")
		jobs := enqueue(t, db, JobSpec{Task: "t"}, JobSpec{Task: "t"})
		own(t, db, "n2") // takes every bucket
		for _, v := range []Verdict{Done, Retry} {
			_, lost, err := db.Finish(t.Context(), Finishing{Node: "n1", Epochs: epochs, Jobs: []Finished{
				{Job: &jobs[0], Verdict: v, RunAt: at(9), StartedAt: now(), EndedAt: now(), Record: true},
			}})
			if err != nil || len(lost) != 1 {
				t.Errorf("verdict %d: lost %v, %v", v, lost, err)
			}
		}
		if n := count(t, db, `select count(*) from jobs where rev = 0`); n != 2 {
			t.Errorf("%d untouched rows, want 2", n)
		}
		if n := count(t, db, `select count(*) from job_history`); n != 0 {
			t.Error("a holder that lost its lease wrote history")
		}
		err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			return tx.Fence(ctx, Fence{jobs[0].Bucket, "n1", epochs[jobs[0].Bucket]})
		})
		if !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("fence gave %v", err)
		}
	})
}

func TestMarkCountsCutOffRuns(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n1")
		j := enqueue(t, db, JobSpec{Task: "t"})[0]
		for want := range 3 {
			for range 2 { // one whose answer was lost is written again, and counts once
				if n, err := db.MarkStarted(t.Context(), Marking{"n1", epochs, []*Job{&j}, at(want)}); err != nil || n != 1 {
					t.Fatalf("marked %d, %v", n, err)
				}
			}
			if got := reread(t, db, j.ID); got.Attempt != want || !got.StartedAt.Equal(at(want)) {
				t.Errorf("after %d marks: attempt %d, started %v", want+1, got.Attempt, got.StartedAt)
			}
		}
	})
}

// A node that lost a bucket does not spend attempts of its jobs.
func TestMarkIsFenced(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		old := own(t, db, "n1")
		j := enqueue(t, db, JobSpec{Task: "t"})[0]
		epochs := own(t, db, "n2")
		if n, err := db.MarkStarted(t.Context(), Marking{"n2", epochs, []*Job{&j}, at(1)}); err != nil || n != 1 {
			t.Fatalf("the owner marked %d, %v", n, err)
		}
		for name, m := range map[string]Marking{
			"an old epoch": {"n2", old, []*Job{&j}, at(2)}, "another node": {"n1", epochs, []*Job{&j}, at(2)},
		} {
			if n, err := db.MarkStarted(t.Context(), m); err != nil || n != 0 {
				t.Errorf("%s marked %d, %v", name, n, err)
			}
		}
		if got := reread(t, db, j.ID); got.Attempt != 0 || !got.StartedAt.Equal(at(1)) {
			t.Errorf("attempt %d, started %v", got.Attempt, got.StartedAt)
		}
	})
}

func TestFetchReadsOnInOrder(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var specs []JobSpec
		for i := range 50 {
			specs = append(specs, JobSpec{Task: "t", Key: "", Lane: "", RunAt: at(i % 7)})
		}
		enqueue(t, db, specs...)
		enqueue(t, db, JobSpec{Task: "t", RunAt: at(1000)}, JobSpec{Task: "t", Priority: 1, RunAt: at(0)})
		var cursors []Cursor
		for b := range db.Buckets() {
			cursors = append(cursors, Cursor{Bucket: b, RunAt: time.UnixMilli(0)})
		}
		seen := map[int64]bool{}
		for range 60 {
			jobs, err := db.FetchDue(t.Context(), cursors, 3, at(10))
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobs {
				if seen[j.ID] || j.Priority != 0 {
					t.Errorf("job %d read twice, or of another priority", j.ID)
				}
				seen[j.ID] = true
				for i := range cursors {
					if cursors[i].Bucket == j.Bucket {
						cursors[i].RunAt, cursors[i].ID = j.RunAt, j.ID
					}
				}
			}
		}
		if len(seen) != 50 {
			t.Errorf("read %d jobs, want 50", len(seen))
		}
		next, err := db.NextDue(t.Context(), cursors, at(10))
		if err != nil || !next.Equal(at(1000)) {
			t.Errorf("next due %v, %v", next, err)
		}
	})
}

func TestFetchLanesGivesEachLaneItsShareInOrder(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for _, lane := range []string{"a", "b"} {
			for i := range 5 {
				enqueue(t, db, JobSpec{Task: "t", Lane: lane, RunAt: at(10 - i)})
			}
			enqueue(t, db, JobSpec{Task: "t", Lane: lane, RunAt: at(9), Priority: 1})
		}
		jobs, err := db.FetchLanes(t.Context(), []Lane{{Name: "a"}, {Name: "b"}}, 3, at(20))
		if err != nil || len(jobs) != 6 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		for i, want := range []time.Time{at(9), at(6), at(7)} {
			if !jobs[i].RunAt.Equal(want) || jobs[i].Lane != "a" {
				t.Errorf("job %d: lane %s at %v, want a at %v", i, jobs[i].Lane, jobs[i].RunAt, want)
			}
		}
	})
}

func TestManyJobsAtOnceKeepTheirColumns(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var specs []JobSpec
		for i := range 20 {
			specs = append(specs, JobSpec{Task: "t", Lane: map[bool]string{true: "lane"}[i%2 == 0], RunAt: at(i), Priority: i%3 - 1, MaxAttempts: i, Payload: json.RawMessage(`{"q":"a'b\"\u0000"}`), CreatedBy: fmt.Sprint("user-", i%2)})
		}
		for i, j := range enqueue(t, db, specs...) {
			got := reread(t, db, j.ID)
			if got == nil || got.Lane != specs[i].Lane || !got.RunAt.Equal(at(i)) || got.Priority != i%3-1 || got.MaxAttempts != i || string(got.Payload) != string(specs[i].Payload) {
				t.Errorf("job %d: %+v", i, got)
			}
		}
		if n := count(t, db, `select count(*) from jobs where created_by = 'user-1'`); n != 10 {
			t.Errorf("%d rows know that user-1 made them, want 10", n)
		}
	})
}

func TestIdsGrowEvenWhenTheClockGoesBack(t *testing.T) {
	var s idSource
	s.init()
	last := int64(0)
	for i := range 20_000 {
		tm := at(0)
		if i > 10_000 {
			tm = tm.Add(-time.Hour)
		}
		id := s.next(tm)
		if id <= last {
			t.Fatalf("id %d after %d", id, last)
		}
		last = id
	}
}

// Two processes may draw the same number and so make the same ids. The one
// that comes second draws again.
func TestCollidingIdsAreMadeAnew(t *testing.T) {
	url := pgtest.URL(t)
	one, two := open(t, url), open(t, url)
	freeze := func(db *DB) { // as if they had made the same ids up to now
		db.ids.mu.Lock()
		db.ids.node, db.ids.lastMS, db.ids.seq = 7, time.Now().Add(time.Hour).UnixMilli()-idEpoch, 0
		db.ids.mu.Unlock()
	}
	freeze(one)
	freeze(two)
	enqueue(t, one, JobSpec{Task: "t"}, JobSpec{Task: "t"})
	enqueue(t, two, JobSpec{Task: "t"}, JobSpec{Task: "t", Key: "k"})
	freeze(two)
	if _, err := two.EnqueueOwnTx(t.Context(), []JobSpec{{Task: "t"}}); err != nil {
		t.Error(err)
	}
	if n := count(t, one, `select count(*) from jobs`); n != 5 {
		t.Errorf("%d jobs, want 5", n)
	}
}
