package queue

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

var errBoom = errors.New("boom")

// bubble runs a test on a SQLite file under simulated time.
func bubble(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		test(t, openDB(t, "sqlite:"+dir+"/pawl.db"))
	})
}

// A-94, C-40: a failed job is tried again after a stored backoff, until its
// attempts are used up; then it stays, for people to see.
func TestFailedJobIsTriedAgainThenKept(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		var starts []time.Time
		q, stop := startQueue(t, db, Config{Tasks: map[string]Task{"t": {
			Run: func(_ context.Context, j *Job) error {
				starts = append(starts, time.Now())
				return errBoom
			},
			Backoff:     func(_ int64, attempt int) time.Duration { return time.Duration(attempt) * time.Hour },
			MaxAttempts: 4,
		}}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(starts) != 4 {
			t.Fatalf("%d attempts, want 4", len(starts))
		}
		for i, want := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour} {
			if got := starts[i+1].Sub(starts[i]); got < want || got > want+10*time.Millisecond {
				t.Errorf("attempt %d came %v after the one before, want %v", i+2, got, want)
			}
		}
		stop()
		var state, attempt int
		var lastError string
		if err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `select state, attempt, last_error from jobs`).Scan(&state, &attempt, &lastError)
		}); err != nil || state != 1 || attempt != 4 || lastError != "boom" {
			t.Errorf("state %d, attempt %d, error %q, %v", state, attempt, lastError, err)
		}
	})
}

func TestTimersAreExact(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		start := time.Now().Truncate(time.Millisecond)
		waits := []time.Duration{time.Millisecond, 999 * time.Millisecond, time.Second, 1001 * time.Millisecond, time.Minute, time.Hour, 365 * 24 * time.Hour}
		for _, d := range waits {
			if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", RunAt: start.Add(d)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range waits {
			j := <-rec.ch
			if late := j.StartedAt.Sub(start.Add(d)); late < 0 || late > 2*time.Millisecond {
				t.Errorf("job due after %v started %v late", d, late)
			}
		}
	})
}

// A-03, C-08, C-76: with nothing due nothing happens, however long the process
// is up: nothing is polled.
func TestIdleQueueReadsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": newRecorder().task()}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", RunAt: time.Now().Add(1000 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		q.board.mu.Lock()
		before := q.board.fetches
		q.board.mu.Unlock()
		time.Sleep(900 * time.Hour)
		synctest.Wait()
		q.board.mu.Lock()
		defer q.board.mu.Unlock()
		if n := q.board.fetches - before; n != 0 {
			t.Errorf("%d fetches in 900 idle hours", n)
		}
	})
}

func TestSnoozeSpendsNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": {MaxAttempts: 1, Run: func(ctx context.Context, j *Job) error {
			if len(rec.runs) < 5 {
				_ = rec.task().Run(ctx, j)
				return Snooze(time.Now().Add(time.Hour))
			}
			return rec.task().Run(ctx, j)
		}}}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		if len(rec.runs) != 6 || rec.runs[5].Attempt != 0 {
			t.Errorf("%d runs, attempt %d", len(rec.runs), rec.runs[len(rec.runs)-1].Attempt)
		}
		if n := countJobs(t, db); n != 0 {
			t.Errorf("%d rows left", n)
		}
	})
}

func TestRunsThatEndBadly(t *testing.T) {
	for name, c := range map[string]struct {
		task  Task
		state int // of the row; -1 is gone
		error string
	}{
		"panic":        {Task{MaxAttempts: 1, Run: func(context.Context, *Job) error { panic("ouch") }}, 1, "panic: ouch"},
		"permanent":    {Task{MaxAttempts: 9, Run: func(context.Context, *Job) error { return Permanent(errBoom) }}, 1, "boom"},
		"timeout":      {Task{MaxAttempts: 1, Timeout: time.Second, Run: waitForEnd}, 1, ErrTimeout.Error()},
		"retry at":     {Task{MaxAttempts: 9, Run: func(context.Context, *Job) error { return RetryAt(time.Now().Add(time.Hour), errBoom) }}, 0, "boom"},
		"unknown task": {Task{}, 0, `no task "t" here`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, db *store.DB) {
				tasks := map[string]Task{"t": c.task, "fine": newRecorder().task()}
				if c.task.Run == nil {
					delete(tasks, "t")
				}
				q, _ := startQueue(t, db, Config{Tasks: tasks})
				if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}, store.JobSpec{Task: "fine"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				var state int
				var msg string
				if err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					return tx.QueryRow(ctx, `select state, last_error from jobs`).Scan(&state, &msg)
				}); err != nil || state != c.state || msg != c.error {
					t.Errorf("state %d, error %q, %v", state, msg, err)
				}
			})
		})
	}
}

func waitForEnd(ctx context.Context, _ *Job) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// C-06: enqueuing one key several times leads to one execution.
func TestReplacedBeforeItIsDueRunsOnceAsReplaced(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		due := time.Now().Add(700 * time.Millisecond)
		for _, p := range []string{`1`, `2`, `3`} {
			if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", Key: "k", RunAt: due, Payload: json.RawMessage(p)}); err != nil {
				t.Fatal(err)
			}
		}
		if j := rec.wait(t); string(j.Payload) != "3" {
			t.Errorf("ran with payload %s", j.Payload)
		}
		eventually(t, "the row is gone", func() bool { return countJobs(t, db) == 0 })
		if len(rec.ch) != 0 {
			t.Error("it ran more than once")
		}
	})
}

// The change of a row by another process, of which no hint arrives, is found
// before the job starts.
func TestRowChangedElsewhereIsFoundBeforeTheStart(t *testing.T) {
	db := openDB(t, pgtest.URL(t))
	rec := newRecorder()
	q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "all buckets are owned", func() bool { return q.Health() == nil })
	due := time.Now().Add(800 * time.Millisecond)
	specs := []store.JobSpec{{Task: "t", Key: "a", RunAt: due, Payload: json.RawMessage(`1`)}, {Task: "t", Key: "b", RunAt: due, Payload: json.RawMessage(`1`)}}
	jobs, err := q.Enqueue(t.Context(), specs...)
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Payload = json.RawMessage(`2`)
	enqueueAll(t, db, specs[:1])
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `delete from jobs where id = $1`, jobs[1].ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if j := rec.wait(t); string(j.Payload) != "2" {
		t.Errorf("ran with payload %s", j.Payload)
	}
	eventually(t, "the row is gone", func() bool { return countJobs(t, db) == 0 })
	if len(rec.ch) != 0 {
		t.Error("the deleted job ran, or the replaced one twice")
	}
}

func TestArmedWhileRunningRunsOnceMore(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		rec := newRecorder()
		entered, leave := make(chan struct{}, 9), make(chan struct{})
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": {Run: func(ctx context.Context, j *Job) error {
			entered <- struct{}{}
			<-leave
			return rec.task().Run(ctx, j)
		}}}})
		arm := func() {
			if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", Key: "k", KeyMode: store.Earliest, Lane: "l"}); err != nil {
				t.Fatal(err)
			}
		}
		arm()
		<-entered
		for range 3 {
			arm()
		}
		close(leave)
		eventually(t, "it ran twice and is gone", func() bool { return len(rec.ch) == 2 && countJobs(t, db) == 0 })
	})
}

func TestRevokedJobStopsOrNeverStarts(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		rec := newRecorder()
		entered, ended := make(chan struct{}), make(chan error, 1)
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task(), "long": {Run: func(ctx context.Context, _ *Job) error {
			close(entered)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		}}}})
		jobs, err := q.Enqueue(t.Context(), store.JobSpec{Task: "long"}, store.JobSpec{Task: "t", RunAt: time.Now().Add(500 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		<-entered
		for _, j := range jobs {
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `delete from jobs where id = $1`, j.ID)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			q.Revoke(j.ID)
		}
		if err := <-ended; !errors.Is(err, ErrCancelled) {
			t.Errorf("the running job ended with cause %v", err)
		}
		eventually(t, "nothing is in hand", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return len(q.board.entries) == 0
		})
		if len(rec.ch) != 0 {
			t.Error("a deleted job ran")
		}
	})
}

// C-07, X-53: a handler can end its job together with what it writes, the next
// job of its chain among it.
func TestJobEndsInItsHandlersTransaction(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		ran := make(chan error, 10)
		var told atomic.Int32
		observe := func(e Event) {
			if e.Job.Task == "chain" && e.What == "succeeded" {
				told.Add(1)
			}
		}
		q, _ := startQueue(t, db, Config{Observe: observe, Tasks: map[string]Task{"chain": {Run: func(ctx context.Context, j *Job) error {
			err := j.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				if string(j.Payload) != "3" {
					next := json.RawMessage(string(rune(j.Payload[0] + 1)))
					if _, err := j.queue.EnqueueTx(ctx, tx, store.JobSpec{Task: "chain", Lane: "l", Payload: next}); err != nil {
						return err
					}
				}
				return j.Complete(ctx, tx)
			})
			ran <- err
			return err
		}}}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "chain", Lane: "l", Payload: json.RawMessage("1")}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-ran; err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "all rows are gone, and each end was told", func() bool { return countJobs(t, db) == 0 && told.Load() == 3 })
	})
}

// A job that fails waits for longer each time, from about a second to about ten
// minutes, and two that failed together part ways.
func TestBackoffGrowsAndSpreads(t *testing.T) {
	for attempt, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute, 1000: 10 * time.Minute} {
		waits := map[time.Duration]bool{}
		for id := range int64(100) {
			d := DefaultBackoff(id, attempt)
			if d > most || d < most*3/4 {
				t.Errorf("job %d waits for %v after failure %d, of %v", id, d, attempt, most)
			}
			waits[d] = true
		}
		if len(waits) < 90 {
			t.Errorf("after failure %d, 100 jobs wait for %d different times", attempt, len(waits))
		}
	}
}

// A job that does not end in time when the process stops is told to, spends no
// attempt and runs again later.
func TestDrainDeadlineInterrupts(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		q, stop := startQueue(t, db, Config{Drain: time.Second, Tasks: map[string]Task{"t": {Run: waitForEnd, MaxAttempts: 1}}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		stop()
		rec := newRecorder()
		startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		if j := <-rec.ch; j.Attempt != 0 || j.Recovered {
			t.Errorf("attempt %d, recovered %v", j.Attempt, j.Recovered)
		}
	})
}

// An end that the database refused in every form is written when it does not
// any more, and the job does not run again.
func TestAnEndThatWasPutAsideIsWrittenLater(t *testing.T) {
	bubble(t, func(t *testing.T, db *store.DB) {
		refuse(t, db, "jobs", "update", "task", "bad")
		ran := 0
		bad := Task{Run: func(context.Context, *Job) error { ran++; return Permanent(errors.New("no")) }}
		q, stop := startQueue(t, db, Config{Tasks: map[string]Task{"bad": bad}})
		defer stop()
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "bad"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(stuckFor / 2)
		if failed, _, err := db.ListJobs(t.Context(), store.JobFilter{State: store.JobFailed}, 0, 10); err != nil || len(failed) != 0 {
			t.Fatalf("%d ends were written, %v", len(failed), err)
		}
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `drop trigger refuse_jobsupdatetask`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(stuckFor)
		failed, _, err := db.ListJobs(t.Context(), store.JobFilter{State: store.JobFailed}, 0, 10)
		if err != nil || len(failed) != 1 || failed[0].Attempt != 1 || ran != 1 {
			t.Errorf("%+v, %v; it ran %d times", failed, err, ran)
		}
	})
}
