package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
	"github.com/pawlrun/pawl/internal/worker"
)

// TaskPath is the input of requests about one task that programs of users serve.
type TaskPath struct {
	Name string `path:"name" maxLength:"100" example:"send-email" doc:"The task's name."`
}

func taskOf(t worker.Task) client.Task {
	d := t.Definition
	out := client.Task{
		Name: t.Name, Lease: when.FormatInterval(d.Lease), MaxAttempts: d.MaxAttempts, ConcurrencyPerLane: d.PerLane, KeepResults: when.FormatInterval(d.Keep),
		OwnerUserID: t.Owner, UpdatedBy: userOf(t.UpdatedBy), CreatedAt: client.At(t.CreatedAt), UpdatedAt: client.At(t.UpdatedAt),
	}
	if r := d.Rate; r != nil {
		out.Rate = &client.TaskRate{Limit: r.Limit, Period: formatShort(r.Period), Per: perTask}
		if r.PerLane {
			out.Rate.Per = perLane
		}
	}
	if b := d.Batch; b != nil {
		out.Batch = &client.TaskBatch{Size: b.Size, Wait: formatShort(b.Wait)}
	}
	return out
}

// What a rate is for.
const (
	perTask = "task"
	perLane = "lane"
)

// formatShort writes a length of time that may be less than a second.
func formatShort(d time.Duration) string {
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return when.FormatInterval(d)
}

const taskCursor = "task"

func (a *API) listTasks(ctx context.Context, in *PageInput) (*pageOutput[client.Task], error) {
	after, err := in.place(taskCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	out := &pageOutput[client.Task]{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := a.workers.List(ctx, tx, after, in.Limit+1)
		out.Body = cutPage(list, in.Limit, taskCursor, func(t worker.Task) string { return t.Name }, taskOf)
		return err
	})
	return out, err
}

func (a *API) getTask(ctx context.Context, in *TaskPath) (*output[client.Task], error) {
	out := &output[client.Task]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		t, err := a.workers.Find(ctx, tx, in.Name)
		out.Body = taskOf(t)
		return err
	})
	return out, err
}

type putTaskInput struct {
	TaskPath
	Body client.TaskRequest
}

type putTaskOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     client.Task
}

// putTask declares a task. The same declaration again changes nothing.
func (a *API) putTask(ctx context.Context, in *putTaskInput) (*putTaskOutput, error) {
	d, err := definitionOfTask(in.Name, in.Body)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	out := &putTaskOutput{Status: http.StatusOK}
	err = a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		t, created, err := a.workers.Declare(ctx, tx, in.Name, d, caller.User.ID, jobsOf(caller), actor(caller))
		out.Body = taskOf(t)
		if created {
			out.Status, out.Location = http.StatusCreated, client.TaskPath(t.Name)
		}
		return err
	})
	return out, err
}

// definitionOfTask reads a declaration and finds every fault of it.
func definitionOfTask(name string, r client.TaskRequest) (worker.Definition, error) {
	var f faults
	f.add("/name", worker.NameFault(name), "Choose a name such as send-email.")
	d := worker.Usual()
	d.Lease = f.interval("/lease", r.Lease, d.Lease)
	d.Keep = f.interval("/keepResults", r.KeepResults, d.Keep)
	if r.MaxAttempts != 0 {
		d.MaxAttempts = r.MaxAttempts
	}
	if r.ConcurrencyPerLane != 0 {
		d.PerLane = r.ConcurrencyPerLane
	}
	if r := r.Rate; r != nil {
		d.Rate = &store.Rate{Limit: r.Limit, Period: f.interval("/rate/period", r.Period, 0), PerLane: r.Per == perLane}
	}
	if b := r.Batch; b != nil {
		d.Batch = &store.Batch{Size: b.Size, Wait: f.interval("/batch/wait", b.Wait, 0)}
	}
	if len(f.list) == 0 {
		for _, fault := range d.Check() {
			f.add(fault.Pointer, fault.Message, "")
		}
	}
	return d, f.problem()
}

// interval reads a length of time, or is the usual one if there is none.
func (f *faults) interval(pointer, text string, usual time.Duration) time.Duration {
	if text == "" {
		return usual
	}
	if strings.Trim(text, "0") == "s" { // no time at all is a length too
		return 0
	}
	if digits, short := strings.CutSuffix(text, "ms"); short {
		if n, err := strconv.ParseInt(digits, 10, 32); err == nil && n >= 0 {
			return time.Duration(n) * time.Millisecond
		}
	}
	d, err := when.ParseInterval(text)
	if err != nil {
		e, _ := err.(*pawl.Error) //nolint:errorlint // it gives nothing else
		f.add(pointer, e.Msg, e.Hint)
		return usual
	}
	return d
}

func (a *API) deleteTask(ctx context.Context, in *TaskPath) (*struct{}, error) {
	caller := callOf(ctx).token
	return nil, a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return a.workers.Delete(ctx, tx, in.Name, jobsOf(caller), actor(caller))
	})
}
