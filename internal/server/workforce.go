package server

import (
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// workerSilence is how long no worker was seen when people are told that none is
// there. Those that are make themselves seen every few seconds.
const workerSilence = time.Minute

// workforce tells who there is to run things, and whether they may. A process that
// works itself need not look for others.
func (s *server) workforce(ctx context.Context, tx *store.Tx) (run.Workforce, error) {
	halt, err := lane.HaltOf(ctx, tx)
	if err != nil || slices.Contains(s.cfg.Roles, RoleWorker) {
		return run.Workforce{Halt: halt}, err
	}
	seen, err := tx.WorkerSeen(ctx)
	if err != nil {
		return run.Workforce{}, err
	}
	alone := !s.db.Shared() // nobody else can have the file
	return run.Workforce{Missing: alone || tx.Now.Sub(seen) > workerSilence, Seen: seen, Halt: halt}, nil
}
