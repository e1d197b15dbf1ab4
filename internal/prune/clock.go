package prune

import (
	"context"

	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

// readClock is what the database has seen of time.
func readClock(ctx context.Context, tx prunestore.Tx) (retention.Clock, error) {
	c, err := tx.Clock(ctx)
	return clockOf(c), err
}

func clockOf(c prunestore.Clock) retention.Clock {
	out := retention.Clock{At: c.At}
	for _, l := range c.Leaps {
		out.Leaps = append(out.Leaps, retention.Leap(l))
	}
	return out
}

// look notes the instant of the transaction, and whether the clock leapt.
func look(ctx context.Context, tx prunestore.Tx) (c retention.Clock, leapt bool, err error) {
	known, err := tx.HoldClock(ctx)
	if err != nil {
		return c, false, err
	}
	c, leap, leapt := clockOf(known).Look(tx.Now)
	if leapt {
		if err := tx.AddLeap(ctx, prunestore.Leap(leap)); err != nil {
			return c, false, err
		}
	}
	return c, leapt, tx.SetClock(ctx, c.At)
}
