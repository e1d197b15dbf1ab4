package web

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
)

const hookSecret = "s3cret-of-the-hook"

// makeHooks makes the service of hooks, whose deliveries become jobs that nobody
// runs.
func (r *rig) makeHooks() *hook.Service {
	r.t.Setenv("PAWL_TEST_HOOK_SECRET", hookSecret)
	r.hooks = hook.New(hook.Config{
		DB: r.db, Log: slog.New(slog.DiscardHandler), Getenv: func(string) string { return hookSecret }, MaxPayload: 1 << 20,
		Changed: func(name string) { r.pulse.Changed(lane.Ref{Kind: "hook", Key: name}) },
		Enqueue: func(ctx context.Context, tx *store.Tx, job store.JobSpec) (string, error) {
			jobs, err := tx.Enqueue(ctx, []store.JobSpec{job})
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(jobs[0].ID, 10), nil
		},
	})
	return r.hooks
}
