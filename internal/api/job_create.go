package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/telemetry"
	"github.com/pawlrun/pawl/internal/when"
)

const maxName = 256 // characters of a key, a lane and a task

// earliestRunAt is before anything that somebody means.
func earliestRunAt() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

type createJobInput struct {
	OnceHeader
	TraceHeader
	Body client.JobRequest
}

// TraceHeader is the header of requests that are a part of a trace.
type TraceHeader struct {
	Traceparent string `header:"Traceparent" doc:"The trace that this is a part of (W3C Trace Context). It is passed on to what is called later. One that cannot be read is ignored." example:"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`
}

type createJobOutput struct {
	Location string   `header:"Location"`
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Job
}

func (a *API) createJob(ctx context.Context, in *createJobInput) (*createJobOutput, error) {
	var f faults
	spec, err := a.checkJob(ctx, &f, &in.Body, in.Traceparent, time.Now())
	if err == nil {
		err = f.problem()
	}
	if err != nil {
		return nil, err
	}
	c := callOf(ctx)
	var job client.Job
	was := isNew
	if c.idempotencyKey == "" { // callers at the same time share a transaction
		jobs, err := a.queue.Enqueue(ctx, spec)
		if err != nil {
			return nil, err
		}
		job = newJob(jobs[0], spec.CreatedBy)
	} else {
		job, was, err = once(ctx, a, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.Job, error) {
			jobs, err := a.queue.EnqueueTx(ctx, tx, spec)
			if err != nil {
				return client.Job{}, err
			}
			return newJob(jobs[0], spec.CreatedBy), nil
		})
		if err != nil {
			return nil, err
		}
		if was == isReplayed {
			a.remind(ctx, job.ID)
		}
	}
	return &createJobOutput{Location: "/api/v1/jobs/" + job.ID, Replayed: was, Body: job}, nil
}

// remind tells the owners of jobs that were enqueued by an earlier request: whoever
// answered that may have died before it could.
func (a *API) remind(ctx context.Context, ids ...string) {
	numbers := make([]int64, len(ids))
	var err error
	for i, id := range ids {
		numbers[i], err = strconv.ParseInt(id, 10, 64)
	}
	if err == nil {
		err = a.queue.Remind(ctx, numbers...)
	}
	if err != nil {
		a.log.Warn("remind the owners of jobs", "jobs", len(ids), "first", ids[0], "err", err)
	}
}

// newJob tells a job that was just enqueued.
func newJob(j store.Job, createdBy string) client.Job {
	state := store.JobPending
	if j.RunAt.After(time.Now()) {
		state = store.JobScheduled
	}
	return jobOf(&store.JobRecord{Job: j, State: state, CreatedBy: createdBy})
}

// checkJob finds every fault of a request that the schema cannot, and turns it
// into what the queue takes.
func (a *API) checkJob(ctx context.Context, f *faults, r *client.JobRequest, traceparent string, now time.Time) (store.JobSpec, error) {
	caller := callOf(ctx).token
	spec := store.JobSpec{
		Task: r.Task, Payload: r.Payload, Key: r.Key, KeyMode: store.KeyMode(r.KeyMode), Lane: r.Lane, Priority: r.Priority, MaxAttempts: r.MaxAttempts,
		Trace: telemetry.Clean(traceparent), Owner: caller.User.ID, CreatedBy: caller.User.Name, Actor: actor(caller),
	}
	if n := int64(len(r.Payload)); n > a.cfg.MaxPayload {
		f.tooLarge("/payload", n, a.cfg.MaxPayload)
		return spec, nil
	}
	spec.RunAt = f.runAt(r, now)
	for _, field := range []struct{ pointer, value string }{{"/key", r.Key}, {"/lane", r.Lane}} {
		if field.value != "" {
			f.add(field.pointer, textFault(field.value, maxName), "")
		}
	}
	if r.KeyMode != "" && r.Key == "" {
		f.add("/keyMode", "needs a key", "Send a key, or leave keyMode out.")
	}
	return spec, a.checkTask(ctx, f, r, &spec)
}

// faults gathers what is wrong with a request.
type faults struct {
	at    string // where in the request the part is that is looked at
	list  []client.Fault
	hint  string // of the first that has one
	large string // about the first part that is too large
}

// add notes a fault; an empty message is none.
func (f *faults) add(pointer, msg, hint string) {
	if msg == "" {
		return
	}
	f.list = append(f.list, client.Fault{Pointer: f.at + pointer, Message: msg})
	if f.hint == "" {
		f.hint = hint
	}
}

// tooLarge notes a part that is larger than it may be.
func (f *faults) tooLarge(pointer string, bytes, most int64) {
	f.add(pointer, "is too large", "Keep the data elsewhere and send where it is.")
	if f.large == "" {
		f.large = fmt.Sprintf("the payload has %d bytes, more than the %d that are allowed", bytes, most)
	}
}

func (f *faults) problem() error {
	switch {
	case len(f.list) == 0:
		return nil
	case f.large != "":
		return newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge), f.large, f.hint, f.list...)
	}
	return invalid(f.hint, f.list...)
}

// runAt is when the job is due; zero is now.
func (f *faults) runAt(r *client.JobRequest, now time.Time) time.Time {
	var t time.Time
	switch {
	case r.RunAt != "" && r.Delay != "":
		f.add("/delay", "excludes runAt", "Send either runAt or delay.")
		return t
	case r.Delay != "":
		t = f.after(r.Delay, "/delay", now)
	case r.RunAt != "":
		var err error
		if t, err = time.Parse(time.RFC3339, r.RunAt); err != nil {
			f.add("/runAt", "must be an RFC 3339 date-time", "Use RFC 3339 with an offset, such as 2030-01-31T09:00:00Z.")
			return t
		}
		f.inReason("/runAt", t, now)
	}
	return t
}

// after adds an interval to now.
func (f *faults) after(interval, pointer string, now time.Time) time.Time {
	d, err := when.ParseInterval(interval)
	if err != nil {
		e, _ := errors.AsType[*pawl.Error](err)
		f.add(pointer, e.Msg, e.Hint)
		return now
	}
	if d > store.MaxAhead {
		f.add(pointer, "is more than ten years", "Use a shorter one.")
		return now
	}
	return now.Add(d)
}

// inReason refuses instants that nobody means.
func (f *faults) inReason(pointer string, t, now time.Time) {
	switch {
	case t.Before(earliestRunAt()):
		f.add(pointer, "is before the year 2000", "Send the year in four digits; leave it out to mean now.")
	case t.After(now.Add(store.MaxAhead)):
		f.add(pointer, "is more than ten years ahead", "Check the year.")
	}
}

// checkTask looks whether the task is there for users and takes the payload. A task
// that programs of users serve takes any.
func (a *API) checkTask(ctx context.Context, f *faults, r *client.JobRequest, spec *store.JobSpec) error {
	tasks := a.queue.Tasks()
	task, known := tasks[r.Task]
	if !known && a.workers != nil {
		if served, err := a.workers.Fill(ctx, spec); err != nil || served {
			return err
		}
	}
	if !known || task.Internal {
		f.add("/task", "is not a task of this server", choicesHint(r.Task, "tasks", a.taskNames()))
		return nil
	}
	f.payload(task, r.Payload)
	return nil
}

// taskNames are the tasks that users can enqueue jobs of, as far as this process
// knows.
func (a *API) taskNames() (names []string) {
	for name, t := range a.queue.Tasks() {
		if !t.Internal {
			names = append(names, name)
		}
	}
	if a.workers != nil {
		names = append(names, a.workers.Names()...)
	}
	slices.Sort(names)
	return names
}

// payload asks the task whether it takes a payload.
func (f *faults) payload(task queue.Task, payload json.RawMessage) {
	if task.Check == nil {
		return
	}
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	err := task.Check(payload)
	if err == nil {
		return
	}
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || len(e.Fields) == 0 {
		f.add("/payload", err.Error(), "")
		return
	}
	for _, field := range e.Fields {
		f.add("/payload"+field.Pointer, field.Message, e.Hint)
	}
}
