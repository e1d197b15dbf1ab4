package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// What a worker says of a job counts once, and saying it again is recognised; a result
// is kept for as long as the task says, and what happened is told.
func TestEndsCountOnce(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Keep, d.MaxAttempts = 2*time.Hour, 1 })
		jobs := r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"})
		has := r.claim("mail", 3)
		done, failed, foreign := ending(has[0], store.Done), ending(has[1], store.Retry), ending(has[2], store.Done)
		done.Result, failed.Error, foreign.Token = json.RawMessage(`{"n":1}`), "broken", has[0].Token
		out := r.end("mail", done, failed, foreign)
		if out[0].Code != "" || out[0].Finished == nil || out[0].Finished.Verdict != store.Done {
			r.t.Errorf("done: %+v", out[0])
		}
		if out[1].Code != "" || out[1].Finished == nil || out[1].Finished.Verdict != store.Fail {
			r.t.Errorf("its last attempt: %+v", out[1])
		}
		if out[2].Code != store.LeaseLost || out[2].Finished != nil {
			r.t.Errorf("with the token of another: %+v", out[2])
		}
		out = r.end("mail", done, failed)
		if out[0].Code != "" || out[0].Finished != nil || out[1].Code != store.LeaseLost {
			r.t.Errorf("again: %+v", out)
		}
		for i, want := range [][]string{{"enqueued", "started", "succeeded"}, {"enqueued", "started", "failed"}, {"enqueued", "started"}} {
			if what := r.happened(jobs[i].ID); !slices.Equal(what, want) {
				r.t.Errorf("job %d: told of %v, want %v", i, what, want)
			}
		}
		keep := r.count(`select keep_until from job_results where job_id = $1`, jobs[0].ID)
		if d := time.Until(store.FromMillis(int64(keep))); d < time.Hour || d > 2*time.Hour {
			r.t.Errorf("kept for %v", d)
		}
		if err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := r.End(ctx, tx, "none", nil, []store.Ending{done})
			return err
		}); !errors.Is(err, pawl.ErrNotFound) {
			r.t.Errorf("a task that is not there: %v", err)
		}
	})
}

// An end that is not written is not told: the transaction was given up.
func TestEndsThatAreNotWrittenAreNotTold(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		j := r.enqueue(store.JobSpec{Task: "mail"})[0]
		has := r.claim("mail", 1)[0]
		given := errors.New("given up")
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if _, err := r.End(ctx, tx, "mail", nil, []store.Ending{ending(has, store.Done)}); err != nil {
				return err
			}
			return given
		})
		if !errors.Is(err, given) {
			r.t.Fatal(err)
		}
		if what := r.happened(j.ID); slices.Contains(what, "succeeded") {
			r.t.Errorf("told of %v", what)
		}
		if out := r.end("mail", ending(has, store.Done)); out[0].Finished == nil {
			r.t.Errorf("then %+v", out)
		}
	})
}

// A worker may have more time, from now on, for what is in its hands and nothing else.
func TestExtendGivesTimeFromNow(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"})
		has := r.claim("mail", 3)
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.CancelJob(ctx, nil, has[2].ID)
			return err
		})
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update job_leases set lease_until = 1`) // they are over
			return err
		})
		extend := func(owner *string, list ...store.Signed) (out []store.Ended, until time.Time) {
			t.Helper()
			r.write(func(ctx context.Context, tx *store.Tx) (err error) {
				out, until, err = r.Extend(ctx, tx, "mail", owner, list)
				return err
			})
			return out, until
		}
		bob := "bob"
		if out, _ := extend(&bob, store.Signed{ID: has[0].ID, Token: has[0].Token}); out[0].Code != store.LeaseLost {
			r.t.Errorf("bob: %+v", out)
		}
		begin := time.Now()
		out, until := extend(nil, store.Signed{ID: has[0].ID, Token: has[0].Token}, store.Signed{ID: has[1].ID, Token: "x"}, store.Signed{ID: has[2].ID, Token: has[2].Token})
		if out[0].Code != "" || out[1].Code != store.LeaseLost || out[2].Code != store.LeaseCancelled {
			r.t.Errorf("%+v", out)
		}
		if d := until.Sub(begin); d < time.Hour-time.Second || d > time.Hour+time.Minute {
			r.t.Errorf("for %v", d)
		}
		// The one that asked keeps its job, and the one that did not loses it.
		again := r.claim("mail", 9)
		if len(again) != 1 || again[0].ID != has[1].ID || again[0].Attempt != 1 {
			r.t.Errorf("claimed %v", again)
		}
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, _, err := r.Extend(ctx, tx, "none", nil, []store.Signed{{ID: 1, Token: "x"}})
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) {
			r.t.Errorf("a task that is not there: %v", err)
		}
	})
}

// A job that was replaced while it was in hand is had when its earlier form has ended, by
// who waits for it; and meanwhile it takes nobody's place, in a lane or without one.
func TestReplacedJobsOfWorkersWaitForTheirEarlierForm(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease, d.PerLane = time.Hour, 2 })
		for _, lane := range []string{"", "l"} {
			for _, mode := range []store.KeyMode{store.Replace, store.Keep} {
				spec := store.JobSpec{Task: "mail", Lane: lane, Key: "digest", KeyMode: mode}
				r.enqueue(spec)
				first := r.claim("mail", 1)
				again := r.enqueue(spec)
				other := r.enqueue(store.JobSpec{Task: "mail", Lane: lane})
				got := r.claim("mail", 1)
				if len(first) != 1 || len(got) != 1 || got[0].ID != other[0].ID {
					r.t.Fatalf("%q %v: beside %v there is %v", lane, mode, first, got)
				}
				waits := r.waiting(Request{Task: "mail", Limit: 1, Wait: patience})
				r.end("mail", ending(first[0], store.Done))
				next := <-waits
				if len(next) != 1 || next[0].ID != again[0].ID {
					r.t.Fatalf("%q %v: then %v", lane, mode, next)
				}
				r.end("mail", ending(next[0], store.Done), ending(got[0], store.Done))
			}
		}
	})
}
