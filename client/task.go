package client

import (
	"context"
	"encoding/json"
	"time"
)

// TasksPath is where tasks are that programs of users serve.
const TasksPath = "/api/v1/tasks"

// TaskPath is where such a task is, or something below it.
func TaskPath(name string, below ...string) string { return join(TasksPath, name, below) }

// DeclareTask declares a task that programs of users serve, or changes one. What the
// request leaves out is as usual. It is safe to repeat.
func (c *Client) DeclareTask(ctx context.Context, name string, task TaskRequest) (Task, error) {
	return decode[Task](c, "a task")(c.Put(ctx, TaskPath(name), task))
}

// TaskRequest declares a task that programs of users serve.
type TaskRequest struct {
	Lease              string `json:"lease,omitempty" minLength:"1" maxLength:"64" example:"30s" doc:"How long a worker has a job before it must ask for more time: 1s to 24h. Absent is 30s."`
	MaxAttempts        int    `json:"maxAttempts,omitempty" minimum:"1" maximum:"1000" doc:"How often a job is tried that does not say. Absent is 10."`
	ConcurrencyPerLane int    `json:"concurrencyPerLane,omitempty" minimum:"1" maximum:"10000" doc:"How many jobs of a lane are in hand at once. Absent is 1: one after the other, in order."`
	KeepResults        string `json:"keepResults,omitempty" minLength:"1" maxLength:"64" example:"1d" doc:"For how long results are kept: 1s to 365d, and not longer than what became of jobs is. Absent is 1d."`

	Rate  *TaskRateRequest  `json:"rate,omitempty" doc:"How many jobs are handed out in any period. Absent is no bound."`
	Batch *TaskBatchRequest `json:"batch,omitempty" doc:"Jobs wait for each other, and one claim gets them together. Absent does not."`
}

// TaskRateRequest bounds how many jobs are handed out.
type TaskRateRequest struct {
	Limit  int    `json:"limit" minimum:"1" maximum:"1000000" doc:"At most so many in any period."`
	Period string `json:"period" minLength:"1" maxLength:"64" example:"1m" doc:"100ms to 24h."`
	Per    string `json:"per,omitempty" enum:"task,lane" doc:"For the task as a whole, or for each lane. Absent is task."`
}

// TaskBatchRequest makes jobs wait for each other.
type TaskBatchRequest struct {
	Size int    `json:"size" minimum:"1" maximum:"1000" doc:"A claim gets none until so many can be had, and no more than that."`
	Wait string `json:"wait" minLength:"1" maxLength:"64" example:"5s" doc:"Or until the first of them has waited for so long: 1ms to 1h."`
}

// TaskRate bounds how many jobs are handed out.
type TaskRate struct {
	Limit  int    `json:"limit"`
	Period string `json:"period" example:"1m"`
	Per    string `json:"per" enum:"task,lane"`
}

// TaskBatch makes jobs wait for each other.
type TaskBatch struct {
	Size int    `json:"size"`
	Wait string `json:"wait" example:"5s"`
}

// Task is a task that programs of users serve.
type Task struct {
	Name               string     `json:"name" example:"send-email"`
	Lease              string     `json:"lease" example:"30s" doc:"How long a worker has a job before it must ask for more time."`
	MaxAttempts        int        `json:"maxAttempts" doc:"How often a job is tried that does not say."`
	ConcurrencyPerLane int        `json:"concurrencyPerLane" doc:"How many jobs of a lane are in hand at once."`
	KeepResults        string     `json:"keepResults" example:"1d" doc:"For how long results are kept."`
	Rate               *TaskRate  `json:"rate" doc:"How many jobs are handed out in any period; null is no bound."`
	Batch              *TaskBatch `json:"batch" doc:"How jobs wait for each other; null if they do not."`
	OwnerUserID        string     `json:"ownerUserId" doc:"The user who declared it."`
	UpdatedBy          string     `json:"updatedBy"`
	CreatedAt          Instant    `json:"createdAt"`
	UpdatedAt          Instant    `json:"updatedAt"`
}

// ClaimRequest asks for jobs of a task.
type ClaimRequest struct {
	WorkerID string `json:"workerId,omitempty" minLength:"1" maxLength:"256" example:"mailer-1" doc:"Who is told to have the jobs. Absent is the name of the token."`
	Limit    int    `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"How many at most. Absent is a batch if the task has one, else 1."`
	Wait     string `json:"wait,omitempty" maxLength:"64" example:"20s" doc:"How long to wait for the first, up to 1m. Absent does not wait."`
}

// Claim is jobs in the hands of a worker.
type Claim struct {
	Items []ClaimedJob `json:"items" nullable:"false" doc:"Empty if there is nothing to do."`
}

// ClaimedJob is a job in the hands of a worker.
type ClaimedJob struct {
	ID          string          `json:"id" example:"355813294120960001" doc:"A number, as text."`
	Task        string          `json:"task" example:"send-email"`
	Payload     json.RawMessage `json:"payload"`
	Lane        NullString      `json:"lane"`
	Key         NullString      `json:"key"`
	Priority    int             `json:"priority"`
	RunAt       Instant         `json:"runAt" doc:"When it was due."`
	Attempt     int             `json:"attempt" doc:"1 is the first."`
	MaxAttempts int             `json:"maxAttempts"`
	Traceparent NullString      `json:"traceparent" doc:"The trace that it is a part of (W3C Trace Context)."`
	LeaseToken  string          `json:"leaseToken" doc:"Says that this worker has it; sent with whatever is said about it."`
	LeaseUntil  Instant         `json:"leaseUntil" doc:"When another one may have it, unless more time is asked for."`
}

// CompleteRequest says that jobs were done.
type CompleteRequest struct {
	Items []CompletedRequest `json:"items" minItems:"1" maxItems:"1000" nullable:"false"`
}

// CompletedRequest says that a job was done.
type CompletedRequest struct {
	ID         string          `json:"id" minLength:"1" maxLength:"20" example:"355813294120960001"`
	LeaseToken string          `json:"leaseToken" minLength:"1" maxLength:"128"`
	Result     json.RawMessage `json:"result,omitempty" doc:"What came of it: any JSON value."`
}

// FailRequest says that jobs were not done.
type FailRequest struct {
	Items []FailedRequest `json:"items" minItems:"1" maxItems:"1000" nullable:"false"`
}

// FailedRequest says that a job was not done.
type FailedRequest struct {
	ID         string             `json:"id" minLength:"1" maxLength:"20" example:"355813294120960001"`
	LeaseToken string             `json:"leaseToken" minLength:"1" maxLength:"128"`
	Error      WorkerErrorRequest `json:"error,omitzero"`
	RetryAfter string             `json:"retryAfter,omitempty" maxLength:"64" example:"5m" doc:"When to try again, from now; 0s is at once, and with the class snooze where it was in its lane. Absent is by the usual backoff."`
}

// WorkerErrorRequest is why a job was not done.
type WorkerErrorRequest struct {
	Message string `json:"message,omitempty" maxLength:"65536" doc:"For people."`
	Class   string `json:"class,omitempty" maxLength:"128" example:"permanent" doc:"permanent: it is not tried again. snooze: it is no failure, and no attempt is counted. Any other word is for people, such as transient or TimeoutError, and the job is tried again while it has attempts."`
}

// Classes of errors that say what becomes of a job.
const (
	ErrorPermanent = "permanent"
	ErrorSnooze    = "snooze"
)

// ExtendRequest asks for more time.
type ExtendRequest struct {
	Items []LeaseRequest `json:"items" minItems:"1" maxItems:"1000" nullable:"false"`
}

// LeaseRequest names a job in the hands of a worker.
type LeaseRequest struct {
	ID         string `json:"id" minLength:"1" maxLength:"20" example:"355813294120960001"`
	LeaseToken string `json:"leaseToken" minLength:"1" maxLength:"128"`
}

// Leases tells what became of what a worker said.
type Leases struct {
	Items []Lease `json:"items" nullable:"false" doc:"In the order of the request."`
}

// Lease tells what became of what a worker said about a job.
type Lease struct {
	ID         string     `json:"id" example:"355813294120960001"`
	OK         bool       `json:"ok"`
	Code       NullString `json:"code" doc:"Null if it is ok. lease_lost: the job is not in the hands of this worker any more, and nothing was written. cancelled: the job was cancelled meanwhile. too_large: the result is too large; the job is still in hand."`
	Message    NullString `json:"message" doc:"For people; null if it is ok."`
	LeaseUntil Instant    `json:"leaseUntil" nullable:"true" doc:"Of a lease that was extended."`
}

// Codes of what became of what a worker said.
const (
	LeaseLost      = "lease_lost"
	LeaseCancelled = "cancelled"
	LeaseTooLarge  = "too_large"
)

// LeaseTime is the lease of a task as a length of time; zero if it cannot be read.
func (t Task) LeaseTime() time.Duration {
	var total, n time.Duration
	for _, c := range t.Lease {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + time.Duration(c-'0')
		case c == 'd':
			total, n = total+24*n*time.Hour, 0
		case c == 'h':
			total, n = total+n*time.Hour, 0
		case c == 'm':
			total, n = total+n*time.Minute, 0
		case c == 's':
			total, n = total+n*time.Second, 0
		default:
			return 0
		}
	}
	return total
}
