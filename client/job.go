package client

import "encoding/json"

// Job is a job in an answer.
type Job struct {
	ID          string          `json:"id" example:"355813294120960001" doc:"A number, as text."`
	Task        string          `json:"task" example:"http"`
	Payload     json.RawMessage `json:"payload" doc:"Null once the job has ended."`
	RunAt       Instant         `json:"runAt" doc:"When it is due."`
	Key         NullString      `json:"key" doc:"Names at most one waiting job."`
	Lane        NullString      `json:"lane" doc:"Jobs of a lane run one at a time."`
	Priority    *int            `json:"priority" doc:"1 before 0 before -1. Null once the job has ended."`
	State       string          `json:"state" enum:"scheduled,pending,running,failed,succeeded,cancelled"`
	Attempt     int             `json:"attempt" doc:"Attempts that have ended."`
	MaxAttempts *int            `json:"maxAttempts" doc:"0 is unlimited. Null once the job has ended."`
	CreatedAt   Instant         `json:"createdAt"`
	CreatedBy   NullString      `json:"createdBy" doc:"The user who enqueued it."`
	Internal    bool            `json:"internal" doc:"Internal to Pawl: it cannot be replaced, cancelled or retried."`
	StartedAt   Instant         `json:"startedAt" nullable:"true"`
	FinishedAt  Instant         `json:"finishedAt" nullable:"true"`
	LastError   NullString      `json:"lastError"`
	Node        NullString      `json:"node" doc:"Where it runs or ran: a node, or the worker that has it."`
	Result      json.RawMessage `json:"result,omitempty" doc:"What its worker said when it was done, while that is kept. In lists it is absent."`
}

// Ended reports whether the job does not run any more, unless somebody wants it to.
func (j Job) Ended() bool {
	return j.State == JobSucceeded || j.State == JobFailed || j.State == JobCancelled
}

// JobRequest asks for a job.
type JobRequest struct {
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

// The states of a job.
const (
	JobScheduled = "scheduled" // its time has not come
	JobPending   = "pending"   // due, and waiting for its lane or a worker
	JobRunning   = "running"
	JobFailed    = "failed" // for good
	JobSucceeded = "succeeded"
	JobCancelled = "cancelled"
)

// MaxBulkJobs is how many jobs one request can enqueue.
const MaxBulkJobs = 10_000

// JobsRequest asks for many jobs: all of them, or none.
type JobsRequest struct {
	Jobs []JobRequest `json:"jobs" minItems:"1" maxItems:"10000" nullable:"false" doc:"In the order in which they are enqueued."`
}

// EnqueuedJobs are jobs that were enqueued together.
type EnqueuedJobs struct {
	Items []Job `json:"items" nullable:"false" doc:"In the order of the request. Their payloads are left out."`
}
