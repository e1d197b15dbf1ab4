package client

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
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
