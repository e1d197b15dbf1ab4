package workflow

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// liveKit is a kit whose lanes are worked on by a real queue.
type liveKit struct {
	*kit
	ran chan string // phases of handlers, as they begin
}

// newLiveKit starts a queue with a service; both stop when the test ends.
func newLiveKit(t *testing.T, url string) *liveKit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l := &liveKit{kit: &kit{t: t, db: db, desk: newDesk()}, ran: make(chan string, 1000)}
	l.scripts.defs = map[string]definition{}
	l.s, err = New(Options{DB: db, Scripts: &l.scripts, Ledger: ledger.New(ledger.Config{Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: Holdings{}}})})
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(queue.Config{
		DB: db, Node: store.Node{ID: store.NewID(), Share: true}, Workers: 2,
		Tasks: l.s.Tasks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.s.Attach(q)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := q.Run(ctx); err != nil {
			t.Errorf("run the queue: %v", err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return l
}

// told makes every handler of a definition say when it runs.
func (l *liveKit) told(d definition) definition {
	for path, h := range d.handlers {
		d = d.handler(path, func(c *goCtx, args []json.RawMessage) any {
			l.ran <- path
			return h(c, args)
		})
	}
	return d
}

// await waits for the next phases that run, in any order.
func (l *liveKit) await(want ...string) {
	l.t.Helper()
	var got []string
	deadline := time.After(90 * time.Second)
	for range want {
		select {
		case phase := <-l.ran:
			got = append(got, phase)
		case <-deadline:
			l.t.Fatalf("%v ran, want %v", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.t.Fatalf("%v ran, want %v", got, want)
	}
}

// lessons 17, 20..22: deploy, event, run now and resume each
// reach the handlers of an idle workflow by themselves, through the queue.
func TestQueueRunsWhatBecomesDue(t *testing.T) {
	t.Parallel()
	pgtest.Both(t, func(t *testing.T, url string) {
		l := newLiveKit(t, url)
		w := l.deploy("alive", "1", l.told(producing(map[string]string{"p": "1d"})))
		l.await("consumers.take.prepare", "producers.p.handler")
		l.publish(w, "in", "a")
		l.await("consumers.take.prepare")
		for l.runNow("alive") != nil { // until the run before has committed
			moment(t)
		}
		l.await("producers.p.handler")
		l.pause("alive")
		l.publish(w, "in", "b")
		l.resume("alive")
		l.await("consumers.take.prepare")
	})
}

// moment gives other goroutines a moment, in real time.
func moment(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(5 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal("the test is over")
	}
}

// with a clock of its own the queue wakes a lane at its
// instants and at no others.
func TestQueueWakesLanesAtTheirInstants(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	synctest.Test(t, func(t *testing.T) {
		l := newLiveKit(t, url)
		var mu sync.Mutex
		var at []string
		begun := time.Now()
		note := func(what string, h goHandler) goHandler {
			return func(c *goCtx, args []json.RawMessage) any {
				mu.Lock()
				at = append(at, what+" "+time.Since(begun).Round(time.Second).String())
				mu.Unlock()
				return h(c, args)
			}
		}
		w := l.deploy("clockwork", "1", consuming(note("take", takeOne("in"))).
			consumer("nap", note("nap", napping(7*time.Minute)), "other").
			producer("p", Schedule{Interval: "5m"}, note("p", idle)))
		pass(6 * time.Minute)
		l.publish(w, "in", "a")
		pass(6 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(at)
		want := []string{"nap 0s", "nap 7m0s", "p 0s", "p 10m0s", "p 5m0s", "take 0s", "take 6m0s"}
		if !slices.Equal(at, want) {
			t.Errorf("runs at %v, want %v", at, want)
		}
	})
}
