package api

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

const (
	// maxWaits is how many requests can wait for the end of a job at one node, and
	// maxUserWaits how many of one user.
	maxWaits     = 10_000
	maxUserWaits = 2000

	// waitLook is how often the jobs that are waited for are looked at, by one
	// statement for some hundred of them: an end on another node may be told before
	// that node knows that somebody waits here, and what nodes tell can be lost.
	waitLook = time.Second
)

// jobWaits are requests that wait for the end of a job. Ends in this process wake them,
// and those that other nodes tell of.
type jobWaits struct {
	mu     sync.Mutex
	byJob  map[int64][]*jobWait // guarded by mu
	byUser map[string]int       // guarded by mu
	looks  bool                 // somebody looks at the jobs; guarded by mu
	count  atomic.Int64         // changed with mu held, so that an end that nobody waits for costs one read
	every  time.Duration        // waitLook, or what a test wants
}

// jobWait is one of them.
type jobWait struct {
	job  int64
	user string
	wake chan struct{} // has room for one sign
}

// Awaited reports whether anybody here waits for the end of a job.
func (f *Feed) Awaited() bool { return f.waits.any() }

// jobEnded wakes those who wait for the job, here and on other nodes.
func (f *Feed) jobEnded(j *store.Job) {
	f.waits.ended(j.ID)
	if j.Owner != "" {
		f.relay.Ended(j.ID)
	}
}

// await puts a request in line, before it looks at the job: an end after that wakes
// it.
func (f *Feed) await(db *store.DB, user string, job int64) (*jobWait, error) {
	s := &f.waits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count.Load() >= maxWaits || s.byUser[user] >= maxUserWaits {
		return nil, &pawl.Error{Code: pawl.CodeUnavailable, Reason: "too_many_waits", Op: "wait for job", Msg: "too many requests wait for jobs already", Hint: "Wait for fewer jobs at once, or follow the stream."}
	}
	if s.byJob == nil {
		s.byJob, s.byUser = map[int64][]*jobWait{}, map[string]int{}
	}
	w := &jobWait{job: job, user: user, wake: make(chan struct{}, 1)}
	s.byJob[job] = append(s.byJob[job], w)
	s.byUser[user]++
	if s.count.Add(1) == 1 {
		f.relay.Followed()
	}
	if !s.looks {
		s.looks = true
		go f.lookAtAwaited(db)
	}
	return w, nil
}

// left takes a request out of line.
func (s *jobWaits) left(w *jobWait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Add(-1)
	if s.byUser[w.user]--; s.byUser[w.user] == 0 {
		delete(s.byUser, w.user)
	}
	s.byJob[w.job] = slices.DeleteFunc(s.byJob[w.job], func(o *jobWait) bool { return o == w })
	if len(s.byJob[w.job]) == 0 {
		delete(s.byJob, w.job)
	}
}

func (s *jobWaits) any() bool { return s.count.Load() > 0 }

// ended wakes those who wait for the jobs.
func (s *jobWaits) ended(jobs ...int64) {
	if !s.any() || len(jobs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range jobs {
		for _, w := range s.byJob[id] {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
}

// awaited are the jobs that are waited for. If there are none, nobody looks any more.
func (s *jobWaits) awaited() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = s.any()
	return slices.Collect(maps.Keys(s.byJob))
}

// lookAtAwaited wakes those whose jobs are found to have ended, while anybody waits.
func (f *Feed) lookAtAwaited(db *store.DB) {
	tick := time.NewTicker(f.waits.every)
	defer tick.Stop()
	for {
		select {
		case <-f.end:
			return
		case <-tick.C:
		}
		jobs := f.waits.awaited()
		if len(jobs) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), handlerTimeout)
		there, err := db.UnendedJobs(ctx, jobs)
		cancel()
		if err == nil { // else it looks again in a moment
			f.waits.ended(slices.DeleteFunc(jobs, func(id int64) bool { return there[id] })...)
		}
	}
}
