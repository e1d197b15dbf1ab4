package queue

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
)

// startAPI runs a queue that only enqueues.
func startAPI(t testing.TB, db *store.DB) *Queue {
	t.Helper()
	q, err := New(Config{DB: db, Node: store.Node{ID: "api"}, limits: shortAnswers()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = q.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return q
}

func shortAnswers() limits {
	l := defaultLimits()
	l.answer = 500 * time.Millisecond
	return l
}

// callers share transactions, of which answers get lost. Whatever was
// accepted runs once, and nothing runs twice, whatever the callers were told.
func TestAcceptedEnqueueIsOneJobWhateverAnswersAreLost(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return q.Health() == nil })
	p := proxy.New(t, url)
	api := startAPI(t, openDB(t, p.URL()))
	eventually(t, "callers share", func() bool { return api.enq.running.Load() })
	var mu sync.Mutex
	accepted := map[string]bool{}
	var wg sync.WaitGroup
	for caller := range 32 {
		wg.Go(func() {
			for i := range 12 {
				payload := strconv.Itoa(caller*1000 + i)
				if caller == 0 {
					p.LoseAnswers("INSERT", 1)
					p.LoseAnswers("SELECT 1", 1) // the look after it
				}
				if _, err := api.Enqueue(t.Context(), store.JobSpec{Task: "t", Payload: json.RawMessage(payload)}); err == nil {
					mu.Lock()
					accepted[payload] = true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	p.KeepAnswers()
	if p.Lost() == 0 {
		t.Fatal("no answer was lost")
	}
	ran := func() map[string]int {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		n := map[string]int{}
		for _, j := range rec.runs {
			n[string(j.Payload)]++
		}
		return n
	}
	eventually(t, "whatever was accepted ran, and nothing is left", func() bool {
		n := ran()
		for payload := range accepted {
			if n[payload] == 0 {
				return false
			}
		}
		return countJobs(t, q.db) == 0
	})
	for payload, n := range ran() {
		if n != 1 {
			t.Errorf("request %s became %d jobs", payload, n)
		}
	}
	if len(accepted) < 32 {
		t.Errorf("only %d requests were accepted", len(accepted))
	}
}

// A job whose commit was not answered, so that its caller was refused, runs as
// soon as one that was: its owner is told to look.
func TestJobInDoubtRunsSoon(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	p := proxy.New(t, url)
	api := startAPI(t, openDB(t, p.URL()))
	eventually(t, "it has joined", func() bool { return api.Health() == nil && api.enq.running.Load() })
	for name, enqueue := range map[string]func() error{ // all answers: heartbeats take some of them
		"alone": func() error {
			p.LoseAnswers("INSERT", -1)
			p.LoseAnswers("SELECT 1", -1) // the look after it
			_, err := api.Enqueue(t.Context(), store.JobSpec{Task: "t"})
			return err
		},
		"in a transaction": func() error {
			p.LoseAnswers("COMMIT", -1)
			return api.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := api.EnqueueTx(ctx, tx, store.JobSpec{Task: "t"})
				return err
			})
		},
	} {
		began := time.Now()
		if err := enqueue(); err == nil {
			t.Fatalf("%s: the answer was not lost", name)
		}
		p.KeepAnswers()
		if j := rec.wait(t); j.StartedAt.Sub(began) > 20*time.Second {
			t.Errorf("%s: it ran after %v", name, j.StartedAt.Sub(began))
		}
	}
}

// A caller that repeats its request hears of the job that is there, and the
// owner of the job hears of it too.
func TestRemindedOwnerRunsTheJob(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	db := openDB(t, url)
	j := enqueueAll(t, db, []store.JobSpec{{Task: "t"}})[0] // by somebody who died before it could tell
	api := startAPI(t, db)
	if err := api.Remind(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := rec.wait(t); got.ID != j.ID || time.Since(began) > 30*time.Second {
		t.Errorf("ran %d after %v", got.ID, time.Since(began))
	}
}

// A hint that cannot be sent is kept until it is.
func TestHintIsKeptUntilItIsSent(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	p := proxy.New(t, url)
	api := startAPI(t, openDB(t, p.URL()))
	jobs := enqueueAll(t, q.db, []store.JobSpec{{Task: "t"}})
	p.Cut()
	p.Refuse()
	api.hints.due(jobs)
	eventually(t, "it is being sent", func() bool { return len(api.hints.wake) == 0 })
	p.Resume()
	began := time.Now()
	if rec.wait(t); time.Since(began) > 30*time.Second {
		t.Errorf("it ran after %v", time.Since(began))
	}
}
