package api

import (
	"context"
	"fmt"
	"strconv"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

const jobsResource = "jobs"

// jobsOf is the owner whose jobs a caller may see and change; nil is everybody.
// Keys and lanes are always the caller's own.
func jobsOf(caller *userstore.Token) *string {
	if owner := access.Reach(caller, jobsResource); owner != "" {
		return &owner
	}
	return nil
}

// jobOf tells a job as the API does.
func jobOf(r *store.JobRecord) client.Job {
	j := client.Job{
		ID: strconv.FormatInt(r.ID, 10), Task: r.Task, Payload: r.Payload, RunAt: client.At(r.RunAt), Key: client.NullString(r.Key), Lane: client.NullString(r.Lane),
		State: string(r.State), Attempt: r.Attempt, CreatedAt: client.At(r.CreatedAt), CreatedBy: client.NullString(r.CreatedBy), Internal: r.Owner == "",
		StartedAt: client.At(r.StartedAt), FinishedAt: client.At(r.FinishedAt), LastError: client.NullString(r.LastError), Node: client.NullString(r.Node), Result: r.Result,
	}
	if !r.Past {
		j.Priority, j.MaxAttempts = &r.Priority, &r.MaxAttempts
	}
	return j
}

// presentJob tells a job of the table of jobs; this process knows what runs in
// it sooner than the table does.
func (a *API) presentJob(r *store.JobRecord) client.Job {
	if r.State == store.JobPending && a.queue.IsRunning(r.ID) {
		r.State, r.Node = store.JobRunning, a.queue.Node().ID
	}
	return jobOf(r)
}

// JobPath is the input of requests about one job.
type JobPath struct {
	ID string `path:"id" example:"355813294120960001" doc:"The job's id: a number, or the UUID that pawl.add_job returned."`
}

// number reads the id. What is neither a number nor the UUID of one is no job.
func (p JobPath) number() (int64, error) {
	id, ok := store.ParseJobID(p.ID)
	if !ok {
		return 0, &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no job %q", p.ID), Hint: "The id of a job is a number, or the UUID that pawl.add_job returned."}
	}
	return id, nil
}

type listJobsInput struct {
	PageInput
	Task  string `query:"task" doc:"Only jobs of this task."`
	Lane  string `query:"lane" doc:"Only jobs of this lane."`
	Key   string `query:"key" doc:"Only the job with this key."`
	State string `query:"state" enum:"scheduled,pending,running,failed,succeeded,cancelled" doc:"Only jobs in this state."`
}

const jobCursor = "job"

func (a *API) listJobs(ctx context.Context, in *listJobsInput) (*pageOutput[client.Job], error) {
	filter, err := in.filter(callOf(ctx).token)
	if err != nil {
		return nil, err
	}
	before, err := in.placeInOrder(jobCursor)
	if err != nil {
		return nil, err
	}
	records, next, err := a.db.ListJobs(ctx, filter, before, in.Limit)
	if err != nil {
		return nil, err
	}
	var jobs []client.Job
	for i := range records {
		if filter.State == "" {
			jobs = append(jobs, a.presentJob(&records[i]))
		} else { // told as it was picked
			jobs = append(jobs, jobOf(&records[i]))
		}
	}
	cursor := ""
	if next != 0 {
		cursor = strconv.FormatInt(next, 10)
	}
	return &pageOutput[client.Job]{pageOf(jobs, jobCursor, cursor)}, nil
}

func (in *listJobsInput) filter(caller *userstore.Token) (store.JobFilter, error) {
	var faults []client.Fault
	for _, p := range []struct{ name, value string }{{"task", in.Task}, {"lane", in.Lane}, {"key", in.Key}} {
		if msg := textFault(p.value, maxName); p.value != "" && msg != "" {
			faults = append(faults, client.Fault{Pointer: "/" + p.name, Message: msg})
		}
	}
	if len(faults) > 0 {
		return store.JobFilter{}, invalid("", faults...)
	}
	return store.JobFilter{Owner: jobsOf(caller), Task: in.Task, Lane: in.Lane, Key: in.Key, State: store.JobState(in.State)}, nil
}
