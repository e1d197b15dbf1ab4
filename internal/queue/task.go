package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/visible"
)

// Task is the code behind a task name.
type Task struct {
	// Run does the work. Its context ends, with a cause, when the job is
	// cancelled, its time is up, the lease is lost, or the process stops.
	Run func(ctx context.Context, j *Job) error

	// Check looks at a payload before it is accepted; nil accepts everything.
	Check func(payload json.RawMessage) error

	// Timeout bounds one run; zero does not.
	Timeout time.Duration

	// MaxAttempts is for jobs that do not say; zero is unlimited.
	MaxAttempts int

	// Backoff says how long to wait after an attempt (1, 2, ...); nil doubles
	// from a second to ten minutes.
	Backoff func(id int64, attempt int) time.Duration

	// Order is read from a payload: of jobs of the task that came due at the same
	// instant, the one with the smaller order runs first. Nil goes by age.
	Order func(payload json.RawMessage) string

	// Pool names the workers that run it; empty are those of all others.
	Pool string

	// Internal tasks are not for users. Jobs of others wait while everything is
	// halted; internal ones see to it themselves, see ErrHalted.
	Internal bool

	// Record keeps the outcome in the history of jobs. Kinds keep their own.
	Record bool
}

// Job is a job that runs.
type Job struct {
	store.Job

	// Recovered: an earlier run of this job was cut off by the end of its
	// process.
	Recovered bool
	StartedAt time.Time

	queue *Queue
	fence store.Fence
	ended *bool // guarded by the one goroutine that runs the job
}

// Write runs a transaction on behalf of the job's lane. It fails with
// pawl.ErrLeaseLost, and writes nothing, once another node owns the lane.
func (j *Job) Write(ctx context.Context, fn store.Func, opts ...store.Option) error {
	return j.queue.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, j.fence); err != nil {
			return err
		}
		return fn(ctx, tx)
	}, opts...)
}

// Fence is the right with which the job's lane is written.
func (j *Job) Fence() store.Fence { return j.fence }

// Stopping reports whether the process wants to end: a task that works in
// steps begins no other.
func (j *Job) Stopping() bool {
	j.queue.board.mu.Lock()
	defer j.queue.board.mu.Unlock()
	return j.queue.board.stopping
}

// Complete ends the job inside a transaction of Write, so that its effects and
// its end are one.
func (j *Job) Complete(ctx context.Context, tx *store.Tx) error {
	gone, err := tx.CompleteJob(ctx, &j.Job, j.StartedAt)
	if err != nil {
		return err
	}
	tx.AfterCommit(func() { *j.ended = gone })
	return nil
}

// Causes with which a job's context ends.
var (
	ErrShutdown  = errors.New("the process stops")
	ErrLeaseLost = errors.New("the lease is lost")
	ErrCancelled = errors.New("the job was cancelled")
	ErrTimeout   = errors.New("the job's time is up")
)

// ErrHalted is returned by an internal task that would start something while
// everything is halted: the job stays as it is, and runs again when that is over.
var ErrHalted = errors.New("everything is halted")

type snooze struct {
	at  time.Time
	why string // for people; may be empty
}

func (s snooze) Error() string { return s.why }

// Snooze is returned by a task to run again at the given time without
// spending an attempt.
func Snooze(at time.Time) error { return snooze{at, ""} }

// IsSnooze reports whether an error of a task only says that it runs again, which is
// no failure.
func IsSnooze(err error) bool {
	_, ok := errors.AsType[snooze](err)
	return ok || errors.Is(err, ErrHalted)
}

type retryAt struct {
	at  time.Time
	err error
}

func (r retryAt) Error() string { return r.err.Error() }
func (r retryAt) Unwrap() error { return r.err }

// RetryAt is returned by a task to spend an attempt and run again at a time of
// its own choosing.
func RetryAt(at time.Time, err error) error { return retryAt{at, err} }

type permanent struct{ err error }

func (p permanent) Error() string { return p.err.Error() }
func (p permanent) Unwrap() error { return p.err }

// Permanent is returned by a task to fail for good.
func Permanent(err error) error { return permanent{err} }

// panicked is the error of a handler that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// maxError bounds what is stored of an error, in bytes.
const maxError = 4096

// verdict turns how a run ended into what is written. cause is the cause of
// the job's context, if it ended.
func verdict(j *Job, t Task, err, cause error, now time.Time) store.Finished {
	f := store.Finished{Job: &j.Job, StartedAt: j.StartedAt, EndedAt: now, Record: t.Record}
	if err == nil {
		f.Verdict = store.Done
		return f
	}
	f.Error = visible.Truncate(err.Error(), maxError)
	if s, ok := errors.AsType[snooze](err); ok {
		f.Verdict, f.RunAt = store.Snooze, s.at
		return f
	}
	switch {
	case errors.Is(cause, ErrCancelled):
		f.Verdict = store.Cancel
		return f
	case errors.Is(cause, ErrShutdown), errors.Is(cause, ErrLeaseLost), errors.Is(err, ErrLeaseLost), errors.Is(err, ErrHalted):
		f.Verdict, f.RunAt = store.Snooze, j.RunAt // not its fault: no attempt is spent
		return f
	}
	limit := j.MaxAttempts
	if _, ok := errors.AsType[permanent](err); ok || (limit > 0 && j.Attempt+1 >= limit) {
		f.Verdict = store.Fail
		return f
	}
	f.Verdict = store.Retry
	if r, ok := errors.AsType[retryAt](err); ok {
		f.RunAt = r.at
		return f
	}
	f.RunAt = now.Add(t.backoff(j.ID, j.Attempt+1))
	return f
}

func (t Task) backoff(id int64, attempt int) time.Duration {
	if t.Backoff != nil {
		return t.Backoff(id, attempt)
	}
	return DefaultBackoff(id, attempt)
}

// DefaultBackoff doubles from one second to ten minutes, less up to a quarter
// that depends on the job, so that jobs which failed together part ways.
func DefaultBackoff(id int64, attempt int) time.Duration {
	d := 10 * time.Minute
	if attempt < 11 {
		d = min(d, time.Second<<(attempt-1))
	}
	spread := uint64(id) * 0x9E3779B97F4A7C15 >> 54 // 0..1023
	return d - d/4*time.Duration(spread)/1024
}
