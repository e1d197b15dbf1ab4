package need_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/need/needtest"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// crowd is a kind of very many lanes, which notes those that look again, and the jobs
// that are armed.
type crowd struct {
	woken map[string]int
	jobs  []store.JobSpec
}

func (c *crowd) Kind() pawl.Kind { return pawl.KindSchedule }
func (c *crowd) Freshened(_ context.Context, tx *store.Tx, lane string) error {
	tx.AfterCommit(func() { c.woken[lane]++ })
	return nil
}

func (c *crowd) NeedingName(_ context.Context, _ *store.Tx, lane, _ string) (string, error) {
	return "schedule " + lane, nil
}

func (c *crowd) EnqueueTx(_ context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	tx.AfterCommit(func() { c.jobs = append(c.jobs, specs...) })
	return make([]store.Job, len(specs)), nil
}

// A fetch that very many lanes wait for wakes each of them once: some with its end, and
// the others by a job, which finds those that are left after a crash.
func TestAFetchWakesAllWhoWait(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // a test
		c := &crowd{woken: map[string]int{}}
		var b need.Book
		b.Provide(needtest.Source{})
		b.Use(c)
		b.Attach(db, c)
		needs := []client.Need{{Source: "rates", MaxAge: "1m"}, {Source: "prices", MaxAge: "1m"}}
		write := func(fn store.Func) {
			t.Helper()
			if err := db.Write(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(ctx context.Context, tx *store.Tx) error { return needtest.Make(ctx, tx, tx.Now.Add(-time.Hour)) })
		const lanes = 250
		write(func(ctx context.Context, tx *store.Tx) error {
			for i := range lanes + 10 { // ten do not wait
				name := fmt.Sprintf("l%03d", i)
				if err := b.Declare(ctx, tx, pawl.KindSchedule, name, needs); err != nil {
					return err
				}
				if i >= lanes {
					continue
				}
				stale, err := b.Wait(ctx, tx, lane.Ref{Kind: pawl.KindSchedule, Name: name}, name, needs)
				if err != nil {
					return err
				}
				if len(stale) != 2 || stale[0].Source != "prices" || stale[0].Since.IsZero() {
					t.Errorf("%+v", stale)
				}
			}
			return nil
		})
		write(func(ctx context.Context, tx *store.Tx) error {
			if err := needtest.Fetch(ctx, tx, &b, "prices"); err != nil {
				return err
			}
			refusal := b.RefuseDelete(ctx, tx, "prices", "")
			if refusal == nil || !strings.Contains(refusal.Error(), "schedule l000, schedule l001, schedule l002, schedule l003, schedule l004, 255 others") {
				t.Errorf("%v", refusal)
			}
			return nil
		})
		if len(c.woken) != 100 || len(c.jobs) != 1 || c.jobs[0].Task != need.TaskName {
			t.Fatalf("%d woken, jobs %+v", len(c.woken), c.jobs)
		}
		job := &queue.Job{}
		job.Payload = c.jobs[0].Payload
		for range 2 { // the second time as after a crash
			if err := b.Task().Run(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
		if len(c.woken) != lanes {
			t.Errorf("%d woken", len(c.woken))
		}
		for name, n := range c.woken {
			if n != 1 {
				t.Errorf("%s was woken %d times", name, n)
			}
		}
		job.Payload = json.RawMessage(`{}`)
		if err := b.Task().Run(t.Context(), job); err == nil {
			t.Error("a job without a source runs")
		}
	})
}
