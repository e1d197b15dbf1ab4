package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// drain gives what waits for a follower, as its lines of data.
func drain(f *Feed, to *follower) []string {
	var out []string
	for line := range strings.Lines(string(f.take(to))) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

func follow(t *testing.T, f *Feed, kinds []string, id string, after int64) *follower {
	t.Helper()
	to, ok := f.follow(view{}, kinds, id, after)
	if !ok {
		t.Fatal("no room")
	}
	return to
}

func TestFeedGivesEachFollowerWhatItAskedFor(t *testing.T) {
	f := NewFeed()
	defer f.Close()
	all, jobs, one := follow(t, f, nil, "", 0), follow(t, f, []string{"job"}, "", 0), follow(t, f, []string{"job", "run"}, "2", 0)
	f.publish("job", "1", subject{}, 1)
	f.publish("run", "2", subject{}, 2)
	f.publish("token", "2", subject{}, 3)
	for _, c := range []struct {
		to   *follower
		want string
	}{{all, "[1 2 3]"}, {jobs, "[1]"}, {one, "[2]"}} {
		if got := fmt.Sprint(drain(f, c.to)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	f.leave(all)
	f.publish("job", "1", subject{}, 4)
	if got := drain(f, all); got != nil {
		t.Errorf("left, and got %v", got)
	}
}

// A slow follower loses its oldest events, is told how many, and holds nobody
// up.
func TestFeedDropsTheOldestForTheSlow(t *testing.T) {
	f := NewFeed()
	defer f.Close()
	to := follow(t, f, nil, "", 0)
	for i := range followerRoom + 10 {
		f.publish("job", "1", subject{}, i)
	}
	got := drain(f, to)
	if len(got) != followerRoom+1 || got[0] != `{"count":10,"atLeast":false}` || got[1] != "10" || got[followerRoom] != strconv.Itoa(followerRoom+9) {
		t.Errorf("%d events, beginning with %v", len(got), got[:2])
	}
	f.publish("job", "1", subject{}, "next")
	if got := drain(f, to); fmt.Sprint(got) != `["next"]` {
		t.Errorf("then %v", got)
	}
}

func TestFeedResumesAfterTheLastEventSeen(t *testing.T) {
	f := NewFeed()
	defer f.Close()
	first := follow(t, f, nil, "", 0)
	begin := f.next
	for i := range 5 {
		f.publish("job", "1", subject{}, i)
	}
	f.leave(first)
	f.publish("job", "1", subject{}, 5) // nobody follows, but somebody may come back
	if got := fmt.Sprint(drain(f, follow(t, f, nil, "", begin+2))); got != "[3 4 5]" {
		t.Errorf("resumed with %s", got)
	}
	if got := drain(f, follow(t, f, nil, "", f.next-1)); got != nil {
		t.Errorf("nothing was missed, and got %v", got)
	}
	for name, after := range map[string]int64{"an earlier process": begin - 1000, "the future": f.next + 1000} {
		got := drain(f, follow(t, f, nil, "", after))
		if len(got) == 0 || got[0] != `{"count":1,"atLeast":true}` {
			t.Errorf("%s: %v", name, got)
		}
	}
	for i := range 3 * feedMemory {
		f.publish("job", "1", subject{}, i)
	}
	if got := drain(f, follow(t, f, nil, "", begin)); got[0] != fmt.Sprintf(`{"count":%d,"atLeast":true}`, 1+len(f.recent)-followerRoom) {
		t.Errorf("after more than is remembered: %s", got[0])
	}
	if len(f.recent) < feedMemory || len(f.recent) > 2*feedMemory {
		t.Errorf("%d events are remembered", len(f.recent))
	}
}

// A follower is told where it begins: one whose connection breaks before its first
// event misses nothing either.
func TestFeedResumesBeforeTheFirstEvent(t *testing.T) {
	f := NewFeed()
	defer f.Close()
	for i := range 2 { // the first of the process, and one after others
		to := follow(t, f, nil, "", 0)
		f.leave(to)
		f.publish("job", "1", subject{}, i)
		again := follow(t, f, nil, "", to.place)
		if got := fmt.Sprint(drain(f, again)); got != fmt.Sprint([]int{i}) || again.place != to.place {
			t.Errorf("resumed at %d with %s", again.place, got)
		}
	}
}

// The numbers grow by one, also over what nobody heard.
func TestFeedSleepsWhileNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFeed()
		defer f.Close()
		observe := func() { f.Observe(queue.Event{What: "succeeded", Job: store.Job{ID: 7}, At: time.Now()}) }
		observe()
		if allocs := testing.AllocsPerRun(100, observe); allocs != 0 || len(f.recent) != 0 {
			t.Errorf("nobody listens, but there are %v allocations and %d events", allocs, len(f.recent))
		}
		to := follow(t, f, nil, "", 0)
		observe()
		last := f.next - 1
		f.leave(to)
		time.Sleep(feedLinger - time.Second)
		observe()
		if got := drain(f, follow(t, f, nil, "", last)); len(got) != 1 || !strings.Contains(got[0], `"what":"succeeded"`) {
			t.Errorf("came back in time and got %v", got)
		}
		f.followers = nil
		last = f.next - 1
		f.leave(to)
		time.Sleep(feedLinger + time.Second)
		observe()
		if got := drain(f, follow(t, f, nil, "", last)); fmt.Sprint(got) != `[{"count":1,"atLeast":true}]` {
			t.Errorf("came back late and got %v", got)
		}
	})
}

func TestFeedThatIsClosedIsNotFollowed(t *testing.T) {
	f := NewFeed()
	f.Close()
	f.Close()
	f.publish("job", "1", subject{}, 1)
	if _, ok := f.follow(view{}, nil, "", 0); ok {
		t.Error("followed a feed that is closed")
	}
}

func TestFeedIsSafeForConcurrentUse(t *testing.T) {
	f := NewFeed()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				f.publish("job", "1", subject{}, i)
			}
		})
		wg.Go(func() {
			for range 50 {
				if to, ok := f.follow(view{}, nil, "", 0); ok {
					f.take(to)
					f.leave(to)
				}
			}
		})
	}
	wg.Wait()
	f.Close()
}

// wire is a connection that a test reads.
type wire struct {
	mu   sync.Mutex
	text strings.Builder
	fail bool
}

func (w *wire) Header() http.Header { return http.Header{} }
func (w *wire) WriteHeader(int)     {}
func (w *wire) Flush()              {}
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail {
		return 0, http.ErrHandlerTimeout
	}
	return w.text.Write(p)
}

func (w *wire) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestStreamBeatsWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Config{})
		w := &wire{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		to := follow(t, a.feed, nil, "", 0)
		go func() { defer close(done); a.send(ctx, http.NewResponseController(w), w, to, nil) }()
		time.Sleep(2*heartbeat + time.Second)
		a.feed.publish("job", "1", subject{}, 1)
		synctest.Wait()
		want := fmt.Sprintf("retry: 2000\nid: %d\n: connected\n\n: heartbeat\n\n: heartbeat\n\nid: %d\nevent: job\ndata: 1\n\n", a.feed.next-2, a.feed.next-1)
		if w.String() != want {
			t.Errorf("sent %q, want %q", w.String(), want)
		}
		cancel()
		<-done
	})
}

func TestStreamEndsWithTheProcessAndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(*API, *wire){
			"closed": func(a *API, _ *wire) { a.feed.publish("job", "1", subject{}, "last words"); a.feed.Close() },
			"broken": func(_ *API, w *wire) { w.mu.Lock(); w.fail = true; w.mu.Unlock() },
		} {
			a := New(Config{})
			w := &wire{}
			done := make(chan struct{})
			to := follow(t, a.feed, nil, "", 0)
			go func() { defer close(done); a.send(t.Context(), http.NewResponseController(w), w, to, nil) }()
			synctest.Wait()
			end(a, w)
			time.Sleep(heartbeat + time.Second)
			synctest.Wait()
			select {
			case <-done:
			default:
				t.Fatalf("%s: the stream goes on", name)
			}
			if name == "closed" && !strings.Contains(w.String(), "last words") {
				t.Errorf("what had happened before the end was not sent: %q", w.String())
			}
			a.feed.leave(to)
			a.feed.Close()
		}
	})
}
