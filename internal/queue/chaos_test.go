package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// world is what the jobs of a chaos test do, as somebody outside counts it.
type world struct {
	mu      sync.Mutex
	busy    map[string]string // lane: node that runs a job of it
	ran     map[string]int    // payload: finished runs
	overlap string
}

// node is a process of the test: it can be killed, after which whatever its
// goroutines still do no longer counts, as they would not exist.
type node struct {
	name string
	db   *store.DB
	q    *Queue
	stop func()
	dead atomic.Bool
}

func (w *world) task(n *node) Task {
	return Task{Backoff: func(int64, int) time.Duration { return 20 * time.Millisecond }, Run: func(ctx context.Context, j *Job) error {
		w.mu.Lock()
		if other := w.busy[j.Lane]; j.Lane != "" && other != "" && !n.dead.Load() {
			w.overlap = fmt.Sprintf("lane %s runs on %s and %s", j.Lane, other, n.name)
		}
		if j.Lane != "" {
			w.busy[j.Lane] = n.name
		}
		w.mu.Unlock()
		wait := time.NewTimer(time.Duration(rand.IntN(4)) * time.Millisecond)
		defer wait.Stop()
		<-wait.C
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.busy[j.Lane] == n.name {
			delete(w.busy, j.Lane)
		}
		if n.dead.Load() {
			return errors.New("dead")
		}
		if rand.IntN(20) == 0 {
			return errors.New("fails now and then")
		}
		w.ran[string(j.Payload)]++
		return nil
	}}
}

func (w *world) start(t *testing.T, url, name string) *node {
	t.Helper()
	n := &node{name: name}
	var err error
	if n.db, err = store.Open(t.Context(), url, store.Options{}); err != nil {
		t.Fatal(err)
	}
	n.q, n.stop = startQueue(t, n.db, Config{
		Node: store.Node{ID: name}, Lease: time.Second, Drain: time.Millisecond, Workers: 6,
		Tasks:  map[string]Task{"t": w.task(n)},
		limits: limits{hand: 40, batch: 12, lane: 2, horizon: 100 * time.Millisecond, fresh: 2 * time.Millisecond},
	})
	return n
}

// kill ends a node without a word to the database.
func (w *world) kill(n *node) {
	n.dead.Store(true)
	_ = n.db.Close()
	w.mu.Lock()
	for lane, owner := range w.busy {
		if owner == n.name {
			delete(w.busy, lane)
		}
	}
	w.mu.Unlock()
	go n.stop()
}

// Nodes come, go and are killed while jobs arrive. Afterwards every job has
// run, no two nodes ever ran one lane at once, and every key's last payload
// has run.
func TestNothingIsLostInChaos(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		w := &world{busy: map[string]string{}, ran: map[string]int{}}
		var mu sync.Mutex
		nodes := []*node{w.start(t, url, "n0")}
		pick := func() *node { mu.Lock(); defer mu.Unlock(); return nodes[rand.IntN(len(nodes))] }
		shared := nodes[0].db.Shared()

		var want []string // payloads that must run
		lastOfKey := map[string]string{}
		deadline := time.Now().Add(3 * time.Second)
		nextKill := time.Now().Add(700 * time.Millisecond)
		for i := 0; time.Now().Before(deadline); i++ {
			spec := store.JobSpec{Task: "t", Payload: json.RawMessage(strconv.Itoa(i)), RunAt: time.Now().Add(time.Duration(rand.IntN(300)-100) * time.Millisecond)}
			if rand.IntN(2) == 0 {
				spec.Lane = "lane-" + strconv.Itoa(rand.IntN(6))
			}
			if rand.IntN(4) == 0 {
				spec.Key = "key-" + strconv.Itoa(rand.IntN(5))
				spec.Lane = "" // a key that changes lanes may overlap with itself
			}
			if _, err := pick().q.Enqueue(t.Context(), spec); err != nil {
				t.Fatalf("enqueue: %v", err)
			}
			if spec.Key == "" {
				want = append(want, strconv.Itoa(i))
			} else {
				lastOfKey[spec.Key] = strconv.Itoa(i)
			}
			if time.Now().After(nextKill) {
				nextKill = time.Now().Add(time.Duration(400+rand.IntN(1200)) * time.Millisecond)
				name := "n" + strconv.Itoa(i)
				mu.Lock()
				if shared && len(nodes) < 3 && rand.IntN(2) == 0 {
					nodes = append(nodes, w.start(t, url, name))
				} else {
					victim := rand.IntN(len(nodes))
					w.kill(nodes[victim])
					nodes[victim] = w.start(t, url, name)
				}
				mu.Unlock()
			}
		}
		eventually(t, "every job ended", func() bool { return countJobs(t, nodes[0].db) == 0 })
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.overlap != "" {
			t.Error(w.overlap)
		}
		for _, p := range want {
			if w.ran[p] == 0 {
				t.Errorf("job %s never ran", p)
			}
		}
		for k, p := range lastOfKey {
			if w.ran[p] == 0 {
				t.Errorf("the last payload of %s, %s, never ran", k, p)
			}
		}
		t.Logf("%d jobs", len(want))
		for _, n := range nodes {
			n.stop()
			_ = n.db.Close()
		}
	})
}
