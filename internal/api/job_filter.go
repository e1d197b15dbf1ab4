package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// maxChange is how many jobs one request changes. It is one transaction, and so short
// that nobody waits long for what it locks.
const maxChange = 1000

type changeJobsInput struct {
	OnceHeader
	Body client.JobsChangeRequest
}

type changeJobsOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.ChangedJobs
}

// retryJobs makes failed jobs due now, as if they were new.
func (a *API) retryJobs(ctx context.Context, in *changeJobsInput) (*changeJobsOutput, error) {
	var f faults
	if state := in.Body.Filter.State; state != "" && state != client.JobFailed {
		f.add("/filter/state", "must be failed", "Only failed jobs can be retried; leave the state out.")
	}
	caller := callOf(ctx).token
	return a.changeJobs(ctx, in, &f, store.JobFailed, func(ctx context.Context, tx *store.Tx, picked []store.JobRecord) (int, error) {
		again, err := tx.RetryJobs(ctx, picked)
		if err != nil {
			return 0, err
		}
		was := map[int64]*store.JobRecord{}
		for i := range picked {
			was[picked[i].ID] = &picked[i]
		}
		lines := make([]store.AuditEntry, len(again))
		for i, j := range again {
			r := was[j.ID]
			lines[i] = jobLine(actor(caller), "job.retry", j.ID, map[string]any{"task": r.Task, "attempts": r.Attempt, "lastError": r.LastError})
		}
		a.queue.Announce(tx, again...)
		return len(again), tx.AuditAll(ctx, lines)
	})
}

// cancelJobs removes jobs that have not ended, and stops those that run.
func (a *API) cancelJobs(ctx context.Context, in *changeJobsInput) (*changeJobsOutput, error) {
	caller := callOf(ctx).token
	return a.changeJobs(ctx, in, &faults{}, store.JobState(in.Body.Filter.State), func(ctx context.Context, tx *store.Tx, picked []store.JobRecord) (int, error) {
		gone, err := tx.CancelJobs(ctx, picked)
		if err != nil {
			return 0, err
		}
		lines := make([]store.AuditEntry, len(gone))
		for i, r := range gone {
			lines[i] = jobLine(actor(caller), "job.cancel", r.ID, map[string]any{"task": r.Task, "key": r.Key, "lane": r.Lane})
		}
		tx.AfterCommit(func() {
			for i := range gone {
				a.cancelled(&gone[i])
			}
		})
		return len(gone), tx.AuditAll(ctx, lines)
	})
}

func jobLine(who, action string, id int64, detail map[string]any) store.AuditEntry {
	detail["by"] = "filter"
	return store.AuditEntry{Actor: who, Action: action, Subject: "job:" + strconv.FormatInt(id, 10), Detail: []byte(store.JSONText(detail))}
}

// changeJobs picks jobs and changes them in one transaction. Only what the caller
// could change one by one is picked.
func (a *API) changeJobs(ctx context.Context, in *changeJobsInput, f *faults, state store.JobState, change func(context.Context, *store.Tx, []store.JobRecord) (int, error)) (*changeJobsOutput, error) {
	pick := f.pick(&in.Body.Filter, time.Now())
	if err := f.problem(); err != nil {
		return nil, err
	}
	pick.Owner, pick.State = jobsOf(callOf(ctx).token), state
	after, err := PageInput{Cursor: in.Body.Cursor}.placeInOrder(jobCursor)
	if err != nil {
		return nil, err
	}
	picked, next, more, err := a.db.PickJobs(ctx, pick, after, cmp.Or(in.Body.Limit, maxChange))
	if err != nil {
		return nil, err
	}
	answer := client.ChangedJobs{Matched: len(picked), DryRun: in.Body.DryRun, More: more}
	if more {
		answer.NextCursor = pageOf[int](nil, jobCursor, orderCursor(next)).NextCursor
	}
	told, was, err := once(ctx, a, http.StatusOK, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.ChangedJobs, error) {
		answer.Changed = 0
		if in.Body.DryRun || len(picked) == 0 {
			return answer, nil
		}
		answer.Changed, err = change(ctx, tx, picked)
		return answer, err
	})
	if err != nil {
		return nil, err
	}
	return &changeJobsOutput{was, told}, nil
}

// pick reads a filter, which must name something: what was left out by mistake must
// not mean everything.
func (f *faults) pick(r *client.JobFilterRequest, now time.Time) store.JobPick {
	if *r == (client.JobFilterRequest{}) {
		f.add("/filter", "must name at least one thing to pick jobs by", "Name a task, lane, key, state, error or olderThan.")
	}
	for _, t := range []struct{ name, value string }{{"task", r.Task}, {"lane", r.Lane}, {"key", r.Key}, {"error", r.Error}} {
		if t.value != "" {
			f.add("/filter/"+t.name, textFault(t.value, maxName), "")
		}
	}
	p := store.JobPick{JobFilter: store.JobFilter{Task: r.Task, Lane: r.Lane, Key: r.Key}, Error: r.Error}
	if r.OlderThan != "" {
		age := f.interval("/filter/olderThan", r.OlderThan, 0)
		if age > store.MaxAhead {
			f.add("/filter/olderThan", "is more than ten years", "Use a shorter one.")
		}
		p.Until = now.Add(-age)
	}
	return p
}
