package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Worker serves a task: it claims jobs, does them, and says how they ended.
type Worker struct {
	Client *Client
	Task   string

	// Do does a job. What it returns is the result, as JSON. Its context ends, with
	// a cause, when the job is cancelled, when another worker has it, and when this
	// one stops. See Permanent, RetryAfter and Snooze for errors that say more.
	Do func(ctx context.Context, job ClaimedJob) (result any, err error)

	// DoBatch does the jobs of a claim together, instead of Do. It returns as many
	// results, in order, and a result that is an error fails its job. Its context ends
	// when none of the jobs must go on.
	DoBatch func(ctx context.Context, jobs []ClaimedJob) (results []any, err error)

	ID          string        // who is told to have the jobs; empty is the name of the machine and the number of the process
	Concurrency int           // how many calls of Do or DoBatch there are at once; 0 is 1
	BatchSize   int           // how many jobs DoBatch gets at most; 0 is what the task says, or 1
	Drain       time.Duration // how long jobs may go on when Run is to end; 0 is 30 s
	Log         *slog.Logger  // nil says nothing
}

// Causes with which the context of a job ends.
var (
	ErrCancelled = errors.New("the job was cancelled")
	ErrLeaseLost = errors.New("another worker may have the job")
	ErrStopping  = errors.New("the worker stops")
)

// failure is an error that says what becomes of the job.
type failure struct {
	class string
	after *time.Duration
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Permanent is returned by Worker.Do for a job that need not be tried again.
func Permanent(err error) error { return &failure{class: ErrorPermanent, err: err} }

// RetryAfter is returned by Worker.Do to say when the job is tried again.
func RetryAfter(after time.Duration, err error) error { return &failure{after: &after, err: err} }

// Snooze is returned by Worker.Do to give the job back for a while, without counting
// an attempt.
func Snooze(after time.Duration, why string) error {
	return &failure{class: ErrorSnooze, after: &after, err: errors.New(why)}
}

const (
	claimWait = 20 * time.Second
	// claimTimeout leaves time for the answer.
	claimTimeout = claimWait + answerTimeout
	// endsAtOnce is how many ends go in one request.
	endsAtOnce = 500
	// extendsAtOnce is how many leases are extended by one: as many as the server takes.
	extendsAtOnce = 1000
	// endsSize is how many bytes of results do, unless one has more.
	endsSize = 2 << 20
	// endsFor is how long an end is sent again that was not answered, if the lease
	// lasts that long.
	endsFor = 2 * time.Minute
)

// shift is a worker at work.
type shift struct {
	Worker

	mu    sync.Mutex
	hand  map[string]*inHand // guarded by mu: by the id of the job
	lease time.Duration      // guarded by mu
	free  chan struct{}      // has something for each unit that can be done
	ends  chan end           // has room for as many as are done at once: others are claimed while these are told
}

// unit is jobs that are done by one call.
type unit struct {
	jobs   []ClaimedJob
	cancel context.CancelCauseFunc
	left   int // guarded by shift.mu: how many must go on
}

// inHand is a job that is being done, or was and is not told yet.
type inHand struct {
	job   ClaimedJob
	unit  *unit
	until time.Time // guarded by shift.mu: when the lease ends, by our own clock
	cause error     // guarded by shift.mu: why it must not go on
}

// stopLocked tells a job that it must not go on.
func (h *inHand) stopLocked(cause error) {
	if h.cause != nil {
		return
	}
	h.cause = cause
	if h.unit.left--; h.unit.left == 0 {
		h.unit.cancel(cause)
	}
}

// end is how a job ended.
type end struct {
	*inHand
	result json.RawMessage
	err    error // nil: it is done
}

// Run works until the context ends. Then it claims nothing more, lets jobs end for a
// while, gives back the others, and returns nil. It fails at once if the task is not
// declared or the token is refused; a server that is away is waited for.
func (w Worker) Run(ctx context.Context) error {
	if w.Client == nil || (w.Do == nil) == (w.DoBatch == nil) || w.Task == "" {
		return errors.New("client: a worker needs a client, a task and one of Do and DoBatch")
	}
	if w.ID == "" {
		host, _ := os.Hostname()
		w.ID = fmt.Sprintf("%s (process %d)", host, os.Getpid())
	}
	w.Concurrency = min(max(w.Concurrency, 1), 1000)
	if w.Drain == 0 {
		w.Drain = 30 * time.Second
	}
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	s := &shift{Worker: w, hand: map[string]*inHand{}, free: make(chan struct{}, w.Concurrency), ends: make(chan end, w.Concurrency)}
	if err := s.meet(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	for range w.Concurrency {
		s.free <- struct{}{}
	}
	return s.run(ctx)
}

func (s *shift) run(ctx context.Context) error {
	work := context.WithoutCancel(ctx)
	beating, stopBeating := context.WithCancel(work)
	var loops, jobs sync.WaitGroup
	loops.Go(func() { s.beat(beating) })
	loops.Go(func() { s.tell(work) })
	var failed error
	for wait := time.Second; ctx.Err() == nil; {
		n := s.takeFree(ctx)
		if n == 0 {
			break
		}
		units, err := s.claim(ctx, n)
		for range n - len(units) {
			s.free <- struct{}{}
		}
		for _, u := range units {
			s.begin(work, &jobs, u)
		}
		switch {
		case err == nil:
			wait = time.Second
		case ctx.Err() != nil:
		case refused(err):
			failed = err
		default:
			s.Log.Warn("claim jobs; it is tried again", "task", s.Task, "after", wait, "err", err)
			pause(ctx, wait)
			wait = min(2*wait, 30*time.Second)
		}
		if failed != nil {
			break
		}
	}
	s.drain(&jobs)
	close(s.ends)
	stopBeating()
	loops.Wait()
	return failed
}

// refused reports whether asking again is of no use.
func refused(err error) bool {
	return slices.Contains([]pawl.Code{pawl.CodeInvalid, pawl.CodeNotFound, pawl.CodeForbidden, pawl.CodeUnauthorized, pawl.CodeUsage, pawl.CodeTooLarge}, pawl.ErrorCode(err))
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// takeFree waits until a unit can be done, and tells how many that are claimed at once.
func (s *shift) takeFree(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case <-s.free:
	}
	n := 1
	for s.DoBatch == nil {
		select {
		case <-s.free:
			n++
		default:
			return n
		}
	}
	return n
}

// claim claims jobs for up to n units: one for each job, or one for all.
func (s *shift) claim(ctx context.Context, n int) (units []*unit, err error) {
	if s.DoBatch != nil {
		n = s.BatchSize
	}
	var c Claim
	err = s.post(ctx, claimTimeout, "claim", ClaimRequest{WorkerID: s.ID, Limit: n, Wait: fmt.Sprintf("%ds", int(claimWait.Seconds()))}, &c)
	if s.DoBatch != nil && len(c.Items) > 0 {
		return []*unit{{jobs: c.Items}}, err
	}
	for i := range c.Items {
		units = append(units, &unit{jobs: c.Items[i : i+1]})
	}
	return units, err
}

func (s *shift) post(ctx context.Context, timeout time.Duration, verb string, body, into any) error {
	raw, err := s.Client.callWithin(ctx, timeout, "POST", TaskPath(s.Task, verb), nil, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// begin does a unit beside the others.
func (s *shift) begin(ctx context.Context, calls *sync.WaitGroup, u *unit) {
	ctx, cancel := context.WithCancelCause(ctx)
	u.cancel, u.left = cancel, len(u.jobs)
	hands := make([]*inHand, len(u.jobs))
	s.mu.Lock()
	until := time.Now().Add(s.lease)
	for i, job := range u.jobs {
		hands[i] = &inHand{job: job, unit: u, until: until}
		s.hand[job.ID] = hands[i]
	}
	s.mu.Unlock()
	calls.Go(func() {
		defer cancel(nil)
		results, err := s.do(ctx, u.jobs)
		if err == nil && len(results) != len(u.jobs) {
			err = Permanent(fmt.Errorf("there are %d results for %d jobs", len(results), len(u.jobs)))
		}
		for i, h := range hands {
			e := end{inHand: h, err: err}
			if err == nil {
				e.result, e.err = resultOf(results[i])
			}
			s.mu.Lock()
			cause := h.cause
			s.mu.Unlock()
			if e.err != nil && (errors.Is(cause, ErrStopping) || errors.Is(cause, ErrCancelled)) {
				e.err = Snooze(0, cause.Error())
			}
			s.ends <- e // waits if too many were not told yet
		}
		s.free <- struct{}{}
	})
}

// resultOf is a result as it is sent; nil is none.
func resultOf(result any) (json.RawMessage, error) {
	if err, failed := result.(error); failed {
		return nil, err
	}
	if result == nil {
		return nil, nil
	}
	raw, err := json.Marshal(result)
	if err != nil { // it was done: doing it again would not help
		return nil, Permanent(fmt.Errorf("the result is not JSON: %w", err))
	}
	return raw, nil
}

// do does a unit; a panic is an error of its jobs only.
func (s *shift) do(ctx context.Context, jobs []ClaimedJob) (results []any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if s.DoBatch != nil {
		return s.DoBatch(ctx, jobs)
	}
	result, err := s.Do(ctx, jobs[0])
	return []any{result}, err
}

// drain waits for what is being done, and then tells it to end.
func (s *shift) drain(jobs *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { jobs.Wait(); close(done) }()
	late := time.NewTimer(s.Drain)
	defer late.Stop()
	select {
	case <-done:
		return
	case <-late.C:
	}
	s.mu.Lock()
	for _, h := range s.hand {
		h.stopLocked(ErrStopping)
	}
	s.mu.Unlock()
	<-done
}

// meet reads the lease for the first time, from a server that may be away.
func (s *shift) meet(ctx context.Context) error {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, 30*time.Second) {
		err := s.readLease(ctx)
		if err == nil || refused(err) {
			return err
		}
		s.Log.Warn("ask for the task; it is tried again", "task", s.Task, "after", wait, "err", err)
		pause(ctx, wait)
	}
	return nil
}

// readLease asks how long jobs are in hand.
func (s *shift) readLease(ctx context.Context) error {
	raw, err := s.Client.Get(ctx, TaskPath(s.Task))
	if err != nil {
		return err
	}
	var t Task
	if err := json.Unmarshal(raw, &t); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = max(time.Second, t.LeaseTime())
	return nil
}
