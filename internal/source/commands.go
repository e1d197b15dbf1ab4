package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// Why a run now is refused, in the words that workflows use.
const (
	ReasonRunActive  = "run_active"
	ReasonBackingOff = "backing_off"
	ReasonPaused     = lane.ReasonPaused
)

// RunNow asks for a run, in the caller's transaction. It is refused, with a
// reason and without any effect, while the source is paused, at work or backing
// off. Our own limit does not refuse it: the run waits for the limit.
func (s *Service) RunNow(ctx context.Context, tx *store.Tx, name, by string) error {
	const op = "run source"
	if err := lane.RefuseHalted(ctx, tx, op); err != nil {
		return err
	}
	src, err := sourcestore.In(tx).HoldSource(ctx, name)
	if err != nil {
		return err
	}
	v, err := s.loadFrom(ctx, tx, src)
	if err != nil {
		return err
	}
	switch {
	case v.paused():
		return lane.RefusePaused(op, refOf(name), v.known.Pause)
	case !v.wanted():
		return lane.Refuse(op, ReasonPaused, fmt.Sprintf("source %q is not active", name), "Apply it with status: active.")
	case v.row.Status == pawl.StatusActive:
		return lane.Refuse(op, ReasonRunActive, fmt.Sprintf("a run of source %q is active", name), "Wait until it has ended.")
	case !v.retry.Ready(v.def.Budget(), v.now):
		return lane.Refuse(op, ReasonBackingOff, fmt.Sprintf("source %q is backing off after a failure until %s", name, pawl.FormatTime(v.retry.NextAt)),
			"It is retried automatically; to retry now, reset it: pawl reset source "+name)
	}
	if err := sourcestore.In(tx).RequestSource(ctx, src.ID); err != nil {
		return err
	}
	if err := tx.Audit(ctx, by, "source.run", "source:"+name, nil); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "requested"})
	return s.arm(ctx, tx, &src, tx.Now)
}

// Pause keeps a source from starting anything and cancels a fetch that is under
// way, in the caller's transaction; pages that were written stay. Of one that is
// paused, what was said about it is replaced. It reports whether anything changed.
func (s *Service) Pause(ctx context.Context, tx *store.Tx, name, by string, terms lane.PauseTerms) (bool, error) {
	src, err := sourcestore.In(tx).HoldSource(ctx, name)
	if err != nil {
		return false, err
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSource, name)
	if err != nil {
		return false, err
	}
	changed, err := lane.Pause(ctx, tx, s.jobs, known, terms, by)
	if err != nil {
		return false, err
	}
	if src.PausedAt.IsZero() {
		if err := sourcestore.In(tx).SetSourcePaused(ctx, src.ID, true); err != nil {
			return false, err
		}
		changed, err = true, s.cancelActive(ctx, tx, src)
	}
	if err != nil || !changed {
		return false, err
	}
	if err := s.settle(ctx, tx, name); err != nil {
		return false, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "paused"})
	return true, tx.Audit(ctx, by, "source.pause", "source:"+name, lane.AuditPause(terms))
}

// Resume lets a source run again, in the caller's transaction; one that was
// halted gets another chance. It reports whether anything changed.
func (s *Service) Resume(ctx context.Context, tx *store.Tx, name, by string) (bool, error) {
	src, err := sourcestore.In(tx).HoldSource(ctx, name)
	if err != nil {
		return false, err
	}
	v, err := s.loadFrom(ctx, tx, src)
	if err != nil {
		return false, err
	}
	if src.Status != spec.Active {
		return false, lane.Refuse("resume source", "not_active", fmt.Sprintf("the definition of source %q says status: %s", name, src.Status), "Apply it with status: active.")
	}
	halted := v.row.Status != pawl.StatusActive && v.row.ID != "" && run.Halts(v.newest, v.exhausted())
	if src.PausedAt.IsZero() && !halted {
		return false, nil
	}
	if err := s.setUnpaused(ctx, tx, v); err != nil {
		return false, err
	}
	if halted {
		if err := runstore.In(tx).ClearRetry(ctx, pawl.KindSource, name); err != nil {
			return false, err
		}
	}
	if err := tx.Audit(ctx, by, "source.resume", "source:"+name, nil); err != nil {
		return false, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "resumed"})
	return true, s.changed(ctx, tx, &src)
}

// Reset gives a source a new budget and lets its next fetch begin at the first
// page, in the caller's transaction. With all, it also forgets how far the
// incremental cursor had come, so that everything is fetched again.
func (s *Service) Reset(ctx context.Context, tx *store.Tx, name string, all bool, by string) error {
	src, err := sourcestore.In(tx).HoldSource(ctx, name)
	if err != nil {
		return err
	}
	row, err := runstore.In(tx).HoldRetry(ctx, pawl.KindSource, name)
	if err != nil {
		return err
	}
	row.Count, row.Crashes, row.PeriodStart, row.NextAt = 0, 0, tx.Now, time.Time{}
	if err := runstore.In(tx).SetRetry(ctx, row); err != nil {
		return err
	}
	if err := sourcestore.In(tx).SourceMoved(ctx, src.ID, nil, ""); err != nil {
		return err
	}
	if all {
		if err := sourcestore.In(tx).ResetSource(ctx, src.ID); err != nil {
			return err
		}
	}
	if err := tx.Audit(ctx, by, "source.reset", "source:"+name, map[string]bool{"all": all}); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "reset"})
	return s.changed(ctx, tx, &src)
}

// CancelRun implements lane.Kind: it ends the newest run of a source. Pages that
// were written stay, and the schedule goes on.
func (s *Service) CancelRun(ctx context.Context, tx *store.Tx, r runstore.Run, by string) (runstore.Run, error) {
	const op = "cancel run"
	newest, err := runstore.In(tx).NewestRun(ctx, r.Kind, r.Lane)
	if err != nil {
		return runstore.Run{}, err
	}
	if newest.ID != r.ID {
		return runstore.Run{}, lane.Refuse(op, "history", fmt.Sprintf("run %s is over; the newest run of %s is %s", r.ID, r.Lane, newest.ID), "")
	}
	cancelled, err := s.ledger.Cancel(ctx, tx, r)
	if errors.Is(err, pawl.ErrLeaseLost) { // nobody executes it; it is recovered first
		return runstore.Run{}, lane.Refuse(op, "recovering", fmt.Sprintf("run %s was interrupted and is about to be recovered", r.ID), "Try again in a moment.")
	}
	if err != nil {
		return runstore.Run{}, err
	}
	src, err := sourcestore.In(tx).SourceByName(ctx, r.Lane)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return runstore.Run{}, err
	}
	if err == nil {
		tx.AfterCommit(func() { s.withdraw(src.ID, r.ID) })
		if err := s.changed(ctx, tx, &src); err != nil {
			return runstore.Run{}, err
		}
	}
	return cancelled, tx.Audit(ctx, by, "run.cancel", "run:"+r.ID, nil)
}

// cancelActive cancels the run of a source that is under way.
func (s *Service) cancelActive(ctx context.Context, tx *store.Tx, src sourcestore.Source) error {
	r, err := runstore.In(tx).ActiveRun(ctx, pawl.KindSource, src.Name)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	switch _, err := s.ledger.Cancel(ctx, tx, r); {
	case err == nil:
		tx.AfterCommit(func() { s.withdraw(src.ID, r.ID) })
		return nil
	case errors.Is(err, pawl.ErrConflict), errors.Is(err, pawl.ErrLeaseLost): // it has just ended, or is recovered
		return nil
	default:
		return err
	}
}

// deleteBatch is how many rows are deleted in one transaction.
const deleteBatch = 5000

// Delete removes a source: a fetch that is under way is cancelled, and then its
// rows, its state and its definition go. It can be asked again after a crash.
// With keepRows the table stays as it is. One that is needed is not deleted; the
// refusal names what the owner may know of.
func (s *Service) Delete(ctx context.Context, name string, keepRows bool, owner, by string) (rows int64, err error) {
	var v *view
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		src, err := sourcestore.In(tx).HoldSource(ctx, name)
		if err != nil {
			return err
		}
		if src.DeletingAt.IsZero() {
			if err := s.cfg.Needs.RefuseDelete(ctx, tx, name, owner); err != nil {
				return err
			}
		}
		if err := sourcestore.In(tx).SetSourceDeleting(ctx, src.ID); err != nil {
			return err
		}
		if src.DeletingAt.IsZero() { // else it is written down already
			if err := tx.Audit(ctx, by, "source.delete", "source:"+name, map[string]bool{"keepRows": keepRows}); err != nil {
				return err
			}
		}
		if err := s.cancelActive(ctx, tx, src); err != nil {
			return err
		}
		if err := s.settle(ctx, tx, name); err != nil {
			return err
		}
		v, err = s.loadFrom(ctx, tx, src)
		return err
	})
	if err != nil {
		return 0, err
	}
	if !keepRows {
		if rows, err = s.deleteRows(ctx, v); err != nil {
			return rows, err
		}
	}
	if err := s.cfg.fault("rows deleted"); err != nil {
		return rows, err
	}
	return rows, s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		src, err := sourcestore.In(tx).HoldSource(ctx, name)
		if err != nil {
			return err
		}
		if err := sourcestore.In(tx).DeleteSource(ctx, src); err != nil {
			return err
		}
		s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "deleted"})
		return nil
	})
}

// deleteRows removes the rows of a source in parts, so that others are not kept
// waiting. Whatever a cancelled fetch had under way cannot be written after its
// run has ended, so the last part leaves nothing.
func (s *Service) deleteRows(ctx context.Context, v *view) (rows int64, err error) {
	for {
		var n int64
		remove := func(ctx context.Context, db table.DB, dialect string) error {
			plan, err := table.New(dialect, v.def)
			if err != nil {
				return err
			}
			n, err = plan.DeleteRows(ctx, db, v.source.Name, deleteBatch)
			return err
		}
		if name := v.def.Write.Connection; name == "" {
			err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return remove(ctx, tx, s.db.Name()) })
		} else if s.cfg.Database != nil {
			var other Database
			if other, err = s.cfg.Database(name); err == nil {
				err = other.Write(ctx, func(ctx context.Context, db table.DB) error { return remove(ctx, db, other.Dialect()) })
			}
		}
		rows += n
		if err != nil || n < deleteBatch {
			return rows, err
		}
	}
}
