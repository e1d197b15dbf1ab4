package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// workServer hands out jobs, and does not take completions until all of them were
// extended.
type workServer struct {
	t    *testing.T
	jobs int

	mu       sync.Mutex
	given    int
	extended map[string]bool
	done     map[string]int
	all      chan struct{} // closed when all were extended
	over     func()
}

func (s *workServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	_, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, TasksPath+"/"), "/")
	switch verb {
	case "claim":
		var ask ClaimRequest
		_ = json.NewDecoder(r.Body).Decode(&ask)
		c := Claim{Items: []ClaimedJob{}}
		s.mu.Lock()
		for ; s.given < s.jobs && len(c.Items) < ask.Limit; s.given++ {
			c.Items = append(c.Items, ClaimedJob{ID: strconv.Itoa(s.given), LeaseToken: "t", Payload: json.RawMessage("{}")})
		}
		s.mu.Unlock()
		if len(c.Items) == 0 {
			<-r.Context().Done()
			return
		}
		answer(c)
	case "extend":
		var ask ExtendRequest
		_ = json.NewDecoder(r.Body).Decode(&ask)
		answer(s.take(ask.Items, func(id string) { s.extended[id] = true }))
	case "complete":
		var ask CompleteRequest
		_ = json.NewDecoder(r.Body).Decode(&ask)
		<-s.all
		items := make([]LeaseRequest, len(ask.Items))
		for i, item := range ask.Items {
			items[i] = LeaseRequest{item.ID, item.LeaseToken}
		}
		answer(s.take(items, func(id string) { s.done[id]++ }))
	default:
		answer(Task{Lease: "1s"})
	}
}

func (s *workServer) take(items []LeaseRequest, note func(id string)) (out Leases) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(items) == 0 || len(items) > 1000 {
		s.t.Errorf("%d in one request", len(items))
	}
	was := len(s.extended)
	for _, item := range items {
		note(item.ID)
		out.Items = append(out.Items, Lease{ID: item.ID, OK: true})
	}
	if was < s.jobs && len(s.extended) == s.jobs {
		close(s.all)
	}
	if len(s.done) == s.jobs {
		s.over()
	}
	return out
}

// A worker claims others while it says how jobs ended. Those that are not told yet are
// extended too, and no request has more than the server takes.
func TestWorkersClaimWhileTheyTell(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	s := &workServer{t: t, jobs: 1900, extended: map[string]bool{}, done: map[string]int{}, all: make(chan struct{}), over: stop}
	server := httptest.NewServer(s)
	defer server.Close()
	c, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var mu sync.Mutex
	busy, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		busy += n
		most = max(most, busy)
	}
	do := func(context.Context, ClaimedJob) (any, error) {
		count(1)
		defer count(-1)
		return true, nil
	}
	if err := (Worker{Client: c, Task: "t", Concurrency: 1000, Do: do}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(s.done) != s.jobs || most > 1000 {
		t.Errorf("%d of %d jobs ended, %d at once", len(s.done), s.jobs, most)
	}
	for id, n := range s.done {
		if n != 1 {
			t.Errorf("job %s was completed %d times", id, n)
		}
	}
}

// shiftServer hands out jobs as a test says, and notes what it is told. It takes no
// request that names a job twice.
type shiftServer struct {
	t      *testing.T
	give   func(ask ClaimRequest) []ClaimedJob
	extend func(LeaseRequest) Lease // nil does not answer
	lease  string
	away   atomic.Int32 // so often it does not say what the task is

	mu   sync.Mutex
	told map[string]string // guarded by mu: by the token of the lease, a result or an error
}

func (s *shiftServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, TasksPath+"/"), "/")
	var ask struct {
		ClaimRequest
		Items []struct {
			ID, LeaseToken string
			Result         json.RawMessage
			Error          WorkerErrorRequest
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&ask)
	answer := Leases{Items: []Lease{}}
	seen := map[string]bool{}
	for _, item := range ask.Items {
		if seen[item.ID] {
			s.t.Errorf("%s names job %s twice", verb, item.ID)
		}
		seen[item.ID] = true
		l := Lease{ID: item.ID, OK: true}
		switch verb {
		case "extend":
			if s.extend == nil {
				http.Error(w, "away", http.StatusServiceUnavailable)
				return
			}
			l = s.extend(LeaseRequest{item.ID, item.LeaseToken})
		case "complete", "fail":
			s.mu.Lock()
			s.told[item.LeaseToken] = string(item.Result) + item.Error.Class + " " + item.Error.Message
			s.mu.Unlock()
		}
		answer.Items = append(answer.Items, l)
	}
	switch verb {
	case "":
		if s.away.Add(-1) >= 0 {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(Task{Lease: s.lease})
	case "claim":
		jobs := s.give(ask.ClaimRequest)
		if len(jobs) == 0 {
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(Claim{Items: jobs})
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// work runs a worker until all leases were told of, and returns what was told.
func (s *shiftServer) work(w Worker, leases int) map[string]string {
	s.t.Helper()
	s.told = map[string]string{}
	server := httptest.NewServer(s)
	defer server.Close()
	c, err := New(Config{URL: server.URL})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithTimeout(s.t.Context(), time.Minute)
	defer stop()
	go func() {
		defer stop()
		for ctx.Err() == nil {
			s.mu.Lock()
			n := len(s.told)
			s.mu.Unlock()
			if n >= leases {
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
	}()
	w.Client, w.Task = c, "t"
	if err := w.Run(ctx); err != nil {
		s.t.Fatal(err)
	}
	return s.told
}

// once gives jobs to the first who claims.
func once(jobs ...ClaimedJob) func(ClaimRequest) []ClaimedJob {
	var mu sync.Mutex
	return func(ClaimRequest) []ClaimedJob {
		mu.Lock()
		defer mu.Unlock()
		out := jobs
		jobs = nil
		return out
	}
}

func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	s := &shiftServer{t: t, lease: "30s", give: once(ClaimedJob{ID: "1", LeaseToken: "one"})}
	s.away.Store(1)
	told := s.work(Worker{Do: func(context.Context, ClaimedJob) (any, error) { return 1, nil }}, 1)
	if told["one"] != "1 " {
		t.Errorf("told %v", told)
	}
}

// A job for which nobody answers for a whole lease is told that another worker may
// have it.
func TestSilenceIsALostLease(t *testing.T) {
	s := &shiftServer{t: t, lease: "1s", give: once(ClaimedJob{ID: "1", LeaseToken: "a"})}
	told := s.work(Worker{Do: func(ctx context.Context, _ ClaimedJob) (any, error) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Second):
			return "too late", nil
		}
	}}, 1)
	if told["a"] != " "+ErrLeaseLost.Error() {
		t.Errorf("told %q", told)
	}
}

// A job whose lease was lost may come back to the same worker, while it is still at the
// first attempt. What that comes to is not told, and the second one is held on to.
func TestAJobMayComeBackToTheSameWorker(t *testing.T) {
	give := make(chan []ClaimedJob, 2)
	give <- []ClaimedJob{{ID: "1", LeaseToken: "a", Attempt: 1}}
	first, held := make(chan struct{}), make(chan struct{})
	var again, still sync.Once
	s := &shiftServer{t: t, lease: "1s"}
	s.give = func(ClaimRequest) []ClaimedJob {
		select {
		case jobs := <-give:
			return jobs
		case <-time.After(3 * time.Second):
			return nil
		}
	}
	s.extend = func(l LeaseRequest) Lease {
		if l.LeaseToken == "a" {
			again.Do(func() { give <- []ClaimedJob{{ID: "1", LeaseToken: "b", Attempt: 2}} })
			<-first // it has come back
			return Lease{ID: l.ID, Code: LeaseLost}
		}
		select {
		case <-first: // has ended
			still.Do(func() { close(held) })
		default:
		}
		return Lease{ID: l.ID, OK: true}
	}
	told := s.work(Worker{Concurrency: 2, Do: func(ctx context.Context, job ClaimedJob) (any, error) {
		if job.Attempt == 1 {
			<-first
			return "late", nil
		}
		close(first)
		select {
		case <-held:
		case <-time.After(20 * time.Second):
			t.Error("its lease is not extended")
		}
		return "done", ctx.Err()
	}}, 1)
	if len(told) != 1 || told["b"] != `"done" ` {
		t.Errorf("told %q", told)
	}
}

// The jobs of a claim are done by one call, each ends for itself, and the call may go on
// while one of them may.
func TestBatchesAreDoneByOneCall(t *testing.T) {
	jobs := []ClaimedJob{{ID: "1", LeaseToken: "a"}, {ID: "2", LeaseToken: "b"}, {ID: "3", LeaseToken: "c"}}
	asked := make(chan ClaimRequest, 10)
	first := once(jobs...)
	s := &shiftServer{t: t, lease: "1s", give: func(ask ClaimRequest) []ClaimedJob {
		asked <- ask
		return first(ask)
	}}
	cancelled := make(chan struct{}, 1000)
	s.extend = func(l LeaseRequest) Lease {
		if l.ID == "3" {
			cancelled <- struct{}{}
			return Lease{ID: l.ID, Code: LeaseCancelled}
		}
		return Lease{ID: l.ID, OK: true}
	}
	told := s.work(Worker{BatchSize: 7, DoBatch: func(ctx context.Context, jobs []ClaimedJob) ([]any, error) {
		<-cancelled
		<-cancelled // it is known
		results := make([]any, len(jobs))
		results[0], results[1], results[2] = len(jobs), Permanent(errors.New("never")), errors.New("was cancelled")
		return results, ctx.Err()
	}}, 3)
	if ask := <-asked; ask.Limit != 7 {
		t.Errorf("asked for %d", ask.Limit)
	}
	if told["a"] != "3 " || told["b"] != "permanent never" || told["c"] != "snooze "+ErrCancelled.Error() {
		t.Errorf("told %q", told)
	}
	s.give = once(jobs...)
	for token, text := range s.work(Worker{DoBatch: func(context.Context, []ClaimedJob) ([]any, error) { return []any{1}, nil }}, 3) {
		if text != "permanent there are 1 results for 3 jobs" {
			t.Errorf("%s is told as %q", token, text)
		}
	}
	s.give = once(jobs[:1]...)
	if told := s.work(Worker{DoBatch: func(context.Context, []ClaimedJob) ([]any, error) { panic("oh") }}, 1); told["a"] != " panic: oh" {
		t.Errorf("told %q", told)
	}
}

// Requests beside each other keep their connections.
func TestConnectionsAreKept(t *testing.T) {
	var mu sync.Mutex
	made := 0
	together := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-together
		_, _ = w.Write([]byte("{}"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			made++
		}
	}
	server.Start()
	defer server.Close()
	c, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const beside = 8
	for range 3 {
		var wg sync.WaitGroup
		for range beside {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "/x"); err != nil {
					t.Error(err)
				}
			})
		}
		for range beside {
			together <- struct{}{}
		}
		wg.Wait()
	}
	mu.Lock()
	defer mu.Unlock()
	if made > beside+2 { // one may be made that another request has no use for any more
		t.Errorf("%d connections were made for %d requests at once", made, beside)
	}
}
