package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/telemetry"
	"github.com/pawlrun/pawl/internal/when"
)

const (
	maxName = 256 // characters of a key, a lane and a task

	// maxAhead is how far ahead a job can be: ten years, leap days included.
	maxAhead = (365*10 + 3) * 24 * time.Hour
)

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
	spec, err := a.checkJob(&in.Body, time.Now())
	if err != nil {
		return nil, err
	}
	c := callOf(ctx)
	spec.Trace = telemetry.Clean(in.Traceparent)
	spec.Owner, spec.CreatedBy, spec.Actor = c.token.User.ID, c.token.User.Name, actor(c.token)
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

// remind tells the owner of a job that was enqueued by an earlier request: whoever
// answered that may have died before it could.
func (a *API) remind(ctx context.Context, id string) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		err = a.queue.Remind(ctx, n)
	}
	if err != nil {
		a.log.Warn("remind the owner of a job", "job", id, "err", err)
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
func (a *API) checkJob(r *client.JobRequest, now time.Time) (store.JobSpec, error) {
	if int64(len(r.Payload)) > a.cfg.MaxPayload {
		return store.JobSpec{}, newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the payload has %d bytes, more than the %d that are allowed", len(r.Payload), a.cfg.MaxPayload),
			"Keep the data elsewhere and send where it is.", client.Fault{Pointer: "/payload", Message: "is too large"})
	}
	var f faults
	spec := store.JobSpec{
		Task: r.Task, Payload: r.Payload, Key: r.Key, KeyMode: store.KeyMode(r.KeyMode), Lane: r.Lane, Priority: r.Priority, MaxAttempts: r.MaxAttempts,
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
	a.checkTask(&f, r)
	return spec, f.problem()
}

// faults gathers what is wrong with a request.
type faults struct {
	list []client.Fault
	hint string // of the first that has one
}

// add notes a fault; an empty message is none.
func (f *faults) add(pointer, msg, hint string) {
	if msg == "" {
		return
	}
	f.list = append(f.list, client.Fault{Pointer: pointer, Message: msg})
	if f.hint == "" {
		f.hint = hint
	}
}

func (f *faults) problem() error {
	if len(f.list) == 0 {
		return nil
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
	if d > maxAhead {
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
	case t.After(now.Add(maxAhead)):
		f.add(pointer, "is more than ten years ahead", "Check the year.")
	}
}

// checkTask looks whether the task is there for users and takes the payload.
func (a *API) checkTask(f *faults, r *client.JobRequest) {
	tasks := a.queue.Tasks()
	task, known := tasks[r.Task]
	if !known || task.Internal {
		var names []string
		for _, name := range sortedKeys(tasks) {
			if !tasks[name].Internal {
				names = append(names, name)
			}
		}
		f.add("/task", "is not a task of this server", choicesHint(r.Task, "tasks", names))
		return
	}
	if task.Check == nil {
		return
	}
	payload := r.Payload
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
