package workflow

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// A run is some steps ahead of its row. What it does before its call leaves has
// no effects, so there is nothing to keep until then: to begin, to reserve and to
// write down the call are one transaction. Losing it only means that the run is
// begun again. So that people see what goes on, no step stays unwritten for
// longer than this, nor while the run calls somebody outside.
const holdTime = 5 * time.Millisecond

// transition is a step of a run in a transaction: it gets the run as the step
// before left it.
type transition func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error)

// unwritten are the steps of a run that are not in the database yet.
type unwritten struct {
	mu    store.Turn
	row   runstore.Run // as the database has it, the zero Run if it has none; guarded by mu, as are the others
	steps []transition
	timer *time.Timer
}

// laterAs is later for a step that is another one as long as the run is not in the
// database: first then stands for all there is.
func (x *execution) laterAs(ctx context.Context, next runstore.Run, step, first transition) error {
	x.unwritten.mu.Lock()
	defer x.unwritten.mu.Unlock()
	if x.unwritten.row.ID == "" {
		step, x.unwritten.steps = first, nil
	}
	return x.laterLocked(ctx, next, step)
}

// later takes a step that leads to next, which is written with one that comes
// after it, or by itself if none comes soon.
func (x *execution) later(ctx context.Context, next runstore.Run, step transition) error {
	x.unwritten.mu.Lock()
	defer x.unwritten.mu.Unlock()
	return x.laterLocked(ctx, next, step)
}

func (x *execution) laterLocked(ctx context.Context, next runstore.Run, step transition) error {
	x.unwritten.steps = append(x.unwritten.steps, step)
	x.run = next
	if x.cfg.writeThrough {
		_, err := x.writeLocked(ctx, nil, store.Lazy)
		return err
	}
	if x.unwritten.timer == nil {
		x.unwritten.timer = time.AfterFunc(holdTime, func() {
			if err := x.writeHeld(ctx); err != nil { // the next step finds out
				x.log.Debug("a run was not written yet", "run", next.ID, "why", err)
			}
		})
	}
	return nil
}

// writeHeld writes what was held until now. A run that may not be written any
// more, because somebody changed the workflow, ends at once.
func (x *execution) writeHeld(ctx context.Context) error {
	x.unwritten.mu.Lock()
	defer x.unwritten.mu.Unlock()
	if len(x.unwritten.steps) == 0 {
		return nil
	}
	_, err := x.writeLocked(ctx, nil, store.Lazy)
	if errors.Is(err, pawl.ErrConflict) {
		x.cancel(errWithdrawn)
	}
	return err
}

// write takes a step and writes it with those before it.
func (x *execution) write(ctx context.Context, step transition, opts ...store.Option) error {
	next, err := x.writeBeside(ctx, step, opts...)
	if err == nil {
		x.run = next
	}
	return err
}

// writeBeside is write for somebody else than who executes the run: a step that
// leaves it as it is.
func (x *execution) writeBeside(ctx context.Context, step transition, opts ...store.Option) (runstore.Run, error) {
	x.unwritten.mu.Lock()
	defer x.unwritten.mu.Unlock()
	return x.writeLocked(ctx, step, opts...)
}

func (x *execution) writeLocked(ctx context.Context, last transition, opts ...store.Option) (runstore.Run, error) {
	u, before := &x.unwritten, x.held
	var next runstore.Run
	err := x.db.WritePlan(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := tx.Fence(ctx, x.run.Owner); err != nil {
			return err
		}
		if err := before.commit(ctx, tx); err != nil {
			return err
		}
		next = u.row
		for _, step := range u.steps {
			if next, err = step(ctx, tx, next); err != nil {
				return err
			}
		}
		if last != nil {
			if next, err = last(ctx, tx, next); err != nil {
				return err
			}
		}
		return x.flush(ctx, tx)
	}, opts...)
	if err == nil {
		x.held = held{}
		u.row, u.steps = next, nil
		u.stopTimer()
	}
	return next, err
}

// written reports whether the database knows of the run.
func (u *unwritten) written() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.row.ID != ""
}

// drop forgets the steps that were not written.
func (u *unwritten) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.steps = nil
	u.stopTimer()
}

func (u *unwritten) stopTimer() {
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}
