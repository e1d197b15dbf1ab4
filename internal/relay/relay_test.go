package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// node is a relay with one that follows what it hears.
type node struct {
	*Relay
	db     *store.DB
	wants  atomic.Pointer[Wants]
	heard  chan News
	cancel context.CancelFunc
	done   chan struct{}
}

func newNode(t *testing.T, url string) *node {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{db: db, heard: make(chan News, 10_000), done: make(chan struct{})}
	n.wants.Store(&Wants{})
	n.Relay = New(Config{DB: db, Log: slog.New(slog.DiscardHandler), Wanted: func() Wants { return *n.wants.Load() }, Heard: func(news News) { n.heard <- news }})
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		n.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-n.done
		_ = db.Close()
	})
	return n
}

func (n *node) follow(w Wants) {
	n.wants.Store(&w)
	n.Followed()
}

// next waits for what is heard next that is not only a loss.
func (n *node) next(t *testing.T) News {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case news := <-n.heard:
			if len(news.Events)+len(news.Lanes) > 0 {
				return news
			}
		case <-limit:
			t.Fatal("nothing was heard")
		}
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		wait(t.Context(), 5*time.Millisecond)
	}
}

func event(i int) Event {
	return Event{Kind: "job", ID: fmt.Sprint(i), Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), Owner: new("alice")}
}

// What happens on one node is heard on those where it is followed, in order and
// with all that says who may know; and only what is followed is told.
func TestNodesHearEachOther(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := newNode(t, url), newNode(t, url)
	a.follow(Wants{Events: true})
	eventually(t, "b learns that a follows events", b.WantsEvents)
	b.Lane("source:prices") // nobody looks at a page
	for i := range 100 {
		b.Event(event(i))
	}
	b.Event(Event{Kind: "run", ID: "r", Data: json.RawMessage(`{}`), LaneKind: "schedule", LaneKey: "s1"})
	var got []Event
	for len(got) < 101 {
		news := a.next(t)
		got = append(got, news.Events...)
		if len(news.Lanes) > 0 {
			t.Errorf("told of %v, which nobody follows", news.Lanes)
		}
	}
	for i, e := range got[:100] {
		if want := event(i); e.ID != want.ID || string(e.Data) != string(want.Data) || e.Owner == nil || *e.Owner != "alice" {
			t.Fatalf("event %d was heard as %+v", i, e)
		}
	}
	if e := got[100]; e.LaneKind != "schedule" || e.LaneKey != "s1" || e.Owner != nil {
		t.Errorf("the lane of an event was heard as %+v", e)
	}

	a.follow(Wants{Lanes: true})
	eventually(t, "b learns that a has only pages", func() bool { return !b.WantsEvents() })
	for range 50 {
		b.Lane("source:prices")
	}
	if news := a.next(t); len(news.Lanes) != 1 || news.Lanes[0] != "source:prices" || len(news.Events) > 0 {
		t.Errorf("of fifty changes of one lane was heard: %+v", news)
	}
	a.follow(Wants{})
	eventually(t, "b learns that nobody follows", func() bool { return !b.lanes.Load() })
}

// A node that starts later learns at once what is followed, and what was followed on
// a node that is gone is told no more.
func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a := newNode(t, url)
	a.follow(Wants{Events: true})
	b := newNode(t, url)
	eventually(t, "the new node learns that a follows", b.WantsEvents)
	a.cancel()
	<-a.done
	b.mu.Lock()
	b.judge(time.Now().Add(wantFor + time.Second)) // as if that much time had passed
	b.mu.Unlock()
	if b.WantsEvents() {
		t.Error("what a node followed is told for ever")
	}
}

// Rows are forgotten after half a minute, and nobody can hear what is forgotten.
func TestWhatWasToldIsForgotten(t *testing.T) {
	t.Parallel()
	pgtest.Both(t, func(t *testing.T, url string) {
		n := newNode(t, url)
		if err := n.db.Say(t.Context(), "old", "old", 0); err != nil {
			t.Fatal(err)
		}
		wait(t.Context(), 5*time.Millisecond)
		if err := n.db.Say(t.Context(), "new", "new", time.Millisecond); err != nil {
			t.Fatal(err)
		}
		got, err := n.db.Hear(t.Context(), []string{"new", "old", "never"})
		if err != nil || len(got) != 1 || got[0] != "new" {
			t.Errorf("heard %q, %v", got, err)
		}
	})
}

// A file has one node, which says nothing.
func TestAFileTellsNobody(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), "sqlite:"+t.TempDir()+"/pawl.db", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()                                                         //nolint:errcheck // nothing to lose
	New(Config{DB: db, Log: slog.New(slog.DiscardHandler)}).Run(t.Context()) // returns
	var none *Relay
	none.Event(event(1))
	none.Lane("source:a")
	none.Followed()
	if none.WantsEvents() {
		t.Error("no relay wants events")
	}
}

// What anybody could send on the channel makes no node tell more than it would
// to its own, hear what is not there, or keep without bound.
func TestForgedMessagesDoNothing(t *testing.T) {
	t.Parallel()
	r := New(Config{Log: slog.New(slog.DiscardHandler), Wanted: func() Wants { return Wants{} }})
	for _, message := range []string{"", " ", "x", "x want", "x told", "x told a b", "x hello", r.node + " told 1", r.node + " want events", "x told " + strings.Repeat("y", 300), "\x00 \xff"} {
		r.heard(message)
	}
	if r.WantsEvents() || len(r.unheard) > 0 {
		t.Errorf("nonsense is believed: %v, %q", r.WantsEvents(), r.unheard)
	}
	for i := range 3 * mostNodes {
		r.heard(fmt.Sprintf("%d want events lanes", i))
		r.heard(fmt.Sprintf("%d told %d", i, i))
	}
	if len(r.wanted) > mostNodes || len(r.unheard) > mostUnheard || !r.missed {
		t.Errorf("%d nodes and %d rows are remembered, missed: %v", len(r.wanted), len(r.unheard), r.missed)
	}
}

// More than there is room for is counted, and what there is room for is told in
// pieces of a bounded size.
func TestOnlySoMuchWaits(t *testing.T) {
	t.Parallel()
	r := New(Config{Log: slog.New(slog.DiscardHandler)})
	r.heard("x want events")
	data := json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 10 {
				r.Event(Event{Data: data})
			}
		})
	}
	wg.Wait()
	told, lost := 0, 0
	for more := true; more; {
		var news News
		news, more = r.take()
		size := 0
		for _, e := range news.Events {
			size += len(e.Data)
		}
		if size > batchBytes {
			t.Errorf("%d bytes at once", size)
		}
		told, lost = told+len(news.Events), lost+news.Lost
	}
	if told+lost != 100 || told != roomBytes/len(data) || r.size != 0 {
		t.Errorf("of 100 events %d are told and %d lost, %d bytes are counted", told, lost, r.size)
	}
}

// The ends of jobs are told while somebody waits for one, and only then.
func TestNodesHearOfTheEndsOfJobs(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := newNode(t, url), newNode(t, url)
	b.Ended(1) // nobody waits
	a.follow(Wants{Ends: true})
	eventually(t, "b learns that somebody waits at a", b.ends.Load)
	if b.WantsEvents() {
		t.Error("who waits for ends is told everything")
	}
	for i := range 100 {
		b.Ended(int64(1000 + i))
	}
	var got []int64
	for limit := time.After(20 * time.Second); len(got) < 100; {
		select {
		case news := <-a.heard:
			got = append(got, news.Ended...)
		case <-limit:
			t.Fatalf("heard of %v", got)
		}
	}
	if got[0] != 1000 || got[99] != 1099 {
		t.Errorf("heard of %v", got)
	}
	a.follow(Wants{})
	eventually(t, "b learns that nobody waits", func() bool { return !b.ends.Load() })
	var none *Relay
	none.Ended(1)
}
