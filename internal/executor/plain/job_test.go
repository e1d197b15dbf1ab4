package plain

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
)

// queued is a queue that outlives the processes that use it: it takes the job of an
// attempt once, and runs it when the test says so.
type queued struct {
	ids      map[JobOf]int64
	outcomes map[int64]JobOutcome // of the jobs that ended
	looked   func()               // called when somebody asks for an outcome; may be nil
	down     error                // of the database, before anything happens
}

func (q *queued) Enqueue(_ context.Context, of JobOf, _ client.PlainJob) (int64, error) {
	if q.down != nil {
		return 0, q.down
	}
	if q.ids[of] == 0 {
		q.ids[of] = int64(len(q.ids) + 1)
	}
	return q.ids[of], nil
}

func (q *queued) Outcome(_ context.Context, id int64) (JobOutcome, bool, error) {
	if q.looked != nil {
		q.looked()
	}
	o, done := q.outcomes[id]
	return o, done, nil
}

func (q *queued) Cancel(context.Context, int64) error { return nil }

// Wherever the server dies in a slot that is a job, the next one finds the job that
// was enqueued, or enqueues it: it runs once.
func TestACrashAroundAJobRunsItOnce(t *testing.T) {
	died := errors.New("the process died")
	for place, crash := range map[string]func(q *queued, die func(error)) (emit error){
		"before it is enqueued":     func(q *queued, _ func(error)) error { q.down = died; return nil },
		"before that is remembered": func(*queued, func(error)) error { return died },
		"while it runs":             func(q *queued, die func(error)) error { q.looked = func() { die(died) }; return nil },
		"between its end and the slot's": func(q *queued, die func(error)) error {
			q.looked = func() { q.outcomes[1] = JobOutcome{OK: true}; die(died) }
			return nil
		},
	} {
		t.Run(place, func(t *testing.T) {
			q := &queued{ids: map[JobOf]int64{}, outcomes: map[int64]JobOutcome{}}
			what := client.PlainRun{Job: &client.PlainJob{Task: "log"}}
			graph, input := work.Graph(what)
			r := runner.Run{RunID: "r", Attempt: 1, ScheduleID: "s", GraphID: graph, Input: input, Key: "s:at"}
			ctx, die := context.WithCancelCause(t.Context())
			defer die(nil)
			lost := crash(q, die)
			_, err := New(Env{Jobs: q}).Run(ctx, r, func(e runner.Event) error {
				if lost == nil {
					r.Remote = e.Remote
				}
				return lost
			})
			if place != "between its end and the slot's" && !errors.Is(err, died) {
				t.Fatalf("it did not die: %v", err)
			}
			q.down, q.looked, q.outcomes[1] = nil, nil, JobOutcome{OK: true, Result: json.RawMessage(`1`)}
			result, err := New(Env{Jobs: q}).Run(t.Context(), r, func(runner.Event) error { return nil })
			if err != nil || !result.OK || len(q.ids) != 1 {
				t.Errorf("%+v, %v; %d jobs", result, err, len(q.ids))
			}
		})
	}
}

// Of a job that left no record nobody knows whether it ran: it is neither failed nor
// tried again.
func TestAJobWithoutARecordIsUnknown(t *testing.T) {
	q := &queued{ids: map[JobOf]int64{}, outcomes: map[int64]JobOutcome{1: {Lost: true}}}
	graph, input := work.Graph(client.PlainRun{Job: &client.PlainJob{Task: "log"}})
	result, err := New(Env{Jobs: q}).Run(t.Context(), runner.Run{RunID: "r", Attempt: 1, ScheduleID: "s", GraphID: graph, Input: input, Retries: true}, func(runner.Event) error { return nil })
	if err != nil || !result.Unknown || result.OK || result.Retry || result.Message != "the job 1 left no record" {
		t.Errorf("%+v, %v", result, err)
	}
}
