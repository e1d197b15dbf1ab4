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
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

const (
	maxName = 256 // characters of a key, a lane and a task

	// maxAhead is how far ahead a job can be: ten years, leap days included.
	maxAhead = (365*10 + 3) * 24 * time.Hour
)

// earliestRunAt is before anything that somebody means.
func earliestRunAt() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// jobRequest asks for a job.
type jobRequest struct {
	Task        string          `json:"task" minLength:"1" maxLength:"256" example:"http" doc:"What to do."`
	Payload     json.RawMessage `json:"payload,omitempty" example:"{\"url\":\"https://example.com/hook\"}" doc:"What the task needs to know: any JSON value. Absent is {}."`
	RunAt       string          `json:"runAt,omitempty" format:"date-time" example:"2030-01-31T09:00:00+01:00" doc:"When, with any offset. Absent is now."`
	Delay       string          `json:"delay,omitempty" maxLength:"64" doc:"How long from now instead, such as 90s, 5m, 1h30m or 7d."`
	Key         string          `json:"key,omitempty" minLength:"1" maxLength:"256" example:"invoice-4711" doc:"At most one job with this key waits; keyMode says what a second one does to it."`
	KeyMode     string          `json:"keyMode,omitempty" enum:"replace,preserve_run_at,keep" doc:"replace (default): the new job takes the place of the waiting one. preserve_run_at: so, but at the time of the waiting one. keep: the waiting one stays as it is."`
	Lane        string          `json:"lane,omitempty" minLength:"1" maxLength:"256" example:"customer-17" doc:"Jobs of a lane run one at a time, in order."`
	Priority    int             `json:"priority,omitempty" minimum:"-1" maximum:"1" doc:"1 runs before 0, 0 before -1."`
	MaxAttempts int             `json:"maxAttempts,omitempty" minimum:"1" maximum:"1000" doc:"How often it is tried. Absent is what the task says."`
}

type createJobInput struct {
	OnceHeader
	Body jobRequest
}

type createJobOutput struct {
	Location string   `header:"Location"`
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     Job
}

func (a *API) createJob(ctx context.Context, in *createJobInput) (*createJobOutput, error) {
	spec, err := a.checkJob(&in.Body, time.Now())
	if err != nil {
		return nil, err
	}
	c := callOf(ctx)
	spec.Owner, spec.CreatedBy, spec.Actor = c.token.User.ID, c.token.User.Name, actor(c.token)
	var job Job
	was := isNew
	if c.idempotencyKey == "" { // callers at the same time share a transaction
		jobs, err := a.queue.Enqueue(ctx, spec)
		if err != nil {
			return nil, err
		}
		job = newJob(jobs[0], spec.CreatedBy)
	} else {
		job, was, err = once(ctx, a, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (Job, error) {
			jobs, err := a.queue.EnqueueTx(ctx, tx, spec)
			if err != nil {
				return Job{}, err
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
func newJob(j store.Job, createdBy string) Job {
	state := store.JobPending
	if j.RunAt.After(time.Now()) {
		state = store.JobScheduled
	}
	return jobOf(&store.JobRecord{Job: j, State: state, CreatedBy: createdBy})
}

// checkJob finds every fault of a request that the schema cannot, and turns it
// into what the queue takes.
func (a *API) checkJob(r *jobRequest, now time.Time) (store.JobSpec, error) {
	if int64(len(r.Payload)) > a.cfg.MaxPayload {
		return store.JobSpec{}, newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the payload has %d bytes, more than the %d that are allowed", len(r.Payload), a.cfg.MaxPayload),
			"Keep the data elsewhere and send where it is.", Fault{Pointer: "/payload", Message: "is too large"})
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
	list []Fault
	hint string // of the first that has one
}

// add notes a fault; an empty message is none.
func (f *faults) add(pointer, msg, hint string) {
	if msg == "" {
		return
	}
	f.list = append(f.list, Fault{Pointer: pointer, Message: msg})
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
func (f *faults) runAt(r *jobRequest, now time.Time) time.Time {
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
func (a *API) checkTask(f *faults, r *jobRequest) {
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
