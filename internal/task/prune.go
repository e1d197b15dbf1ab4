package task

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// PruneName is the task that forgets what is old.
const PruneName = "pawl.prune"

const (
	pruneEvery  = time.Hour
	pruneBatch  = 1000
	historyKept = 7 * 24 * time.Hour
	keysKept    = 24 * time.Hour
)

// Prune is the task that forgets what is old: the outcomes of jobs after a
// week, idempotency keys after a day. It goes in batches, so that it never
// holds the database for long.
func Prune(db *store.DB, log *slog.Logger) queue.Task {
	return queue.Task{
		Internal: true,
		Run: func(ctx context.Context, _ *queue.Job) error {
			now := time.Now()
			n, err := inBatches(ctx, func() (int64, error) { return db.PruneJobHistory(ctx, now.Add(-historyKept), pruneBatch) })
			if err != nil {
				return err
			}
			m, err := inBatches(ctx, func() (int64, error) {
				return userstore.On(db).DeleteOldIdempotencyKeys(ctx, now.Add(-keysKept), pruneBatch)
			})
			if err != nil {
				return err
			}
			if n+m > 0 {
				log.InfoContext(ctx, "forgot what is old", "jobs", n, "idempotencyKeys", m)
			}
			return queue.Snooze(now.Add(pruneEvery))
		},
	}
}

// PruneJob is the one job of that task.
func PruneJob() store.JobSpec {
	return store.JobSpec{Task: PruneName, Key: PruneName, KeyMode: store.Keep, Priority: -1}
}

func inBatches(ctx context.Context, step func() (int64, error)) (int64, error) {
	var total int64
	for {
		n, err := step()
		total += n
		if err != nil || n < pruneBatch || ctx.Err() != nil {
			return total, err
		}
	}
}
