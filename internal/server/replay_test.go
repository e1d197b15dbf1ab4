package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/api"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/web"
	"github.com/pawlrun/pawl/internal/workflow"
)

type noJobs struct{}

func (noJobs) EnqueueTx(_ context.Context, _ *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	return make([]store.Job, len(specs)), nil
}

// Replays do not take the workers of real runs: they have some of their own.
func TestReplaysHaveWorkersOfTheirOwn(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		ctx := t.Context()
		db, err := store.Open(ctx, url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		s := &server{cfg: Default(), db: db, log: slog.New(slog.DiscardHandler), feed: api.NewFeed(), pulse: web.NewPulse()}
		if err := s.buildWorkflows(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		s.workflows.Attach(noJobs{})
		const source = `export default { name: "idle", topics: { t: {} }, producers: { p: { publishes: ["t"], schedule: { interval: "1h" }, handler: () => {} } }, consumers: { c: { subscribe: ["t"], prepare: () => ({ reservations: [], data: null }) } } }`
		deployed, err := s.workflows.Apply(ctx, workflow.Deploy{Filename: "idle.workflow.ts", Script: source, By: "tester"})
		if err != nil {
			t.Fatal(err)
		}
		taken, err := db.Take(ctx, "n", store.Bucket{})
		if err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
		var r runstore.Run
		err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			r, err = s.ledger.Begin(ctx, tx, store.Fence{Bucket: taken[0].ID, Node: "n", Epoch: taken[0].Epoch}, ledger.Spec{
				Kind: pawl.KindWorkflow, Lane: "idle", Handler: "p", HandlerType: pawl.HandlerProducer, Trigger: "manual", ScriptVersion: deployed.Version,
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.pool.Close() // no worker of real runs is left
		if replayed, err := s.workflows.Replay(ctx, r.ID, "", ""); err != nil || len(replayed.Differences) > 0 {
			t.Errorf("a replay without workers of real runs: %+v, %v", replayed, err)
		}
		s.trials.Close()
		if _, err := s.workflows.Replay(ctx, r.ID, "", ""); !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("a replay without workers of its own: %v", err)
		}
	})
}
