package source

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// ContinueName is the task that ends what holds a source back until a time.
const ContinueName = lane.ContinuePrefix + string(pawl.KindSource)

// paused: a person wants the source to rest.
func (v *view) paused() bool { return !v.source.PausedAt.IsZero() && v.source.DeletingAt.IsZero() }

// setUnpaused notes that nobody wants a source to rest any more.
func (s *Service) setUnpaused(ctx context.Context, tx *store.Tx, v *view) error {
	if err := lane.Unpause(ctx, tx, v.known); err != nil {
		return err
	}
	return sourcestore.In(tx).SetSourcePaused(ctx, v.source.ID, false)
}

// proceed ends the pause of a source whose time has come, or tells when it will. A source
// that failed too often is not said to be mended by that.
func (s *Service) proceed(ctx context.Context, name string) (again time.Time, err error) {
	if err := s.cfg.fault("continuing"); err != nil {
		return time.Time{}, err
	}
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		again = time.Time{}
		src, err := sourcestore.In(tx).HoldSource(ctx, name)
		if err != nil { // it is deleted
			return pawl.IgnoreNotFound(err)
		}
		v, err := s.loadFrom(ctx, tx, src)
		if err != nil {
			return err
		}
		switch until := v.known.Pause.Until; {
		case until.IsZero() || src.PausedAt.IsZero():
			return nil
		case until.After(tx.Now): // it was paused anew
			again = until
			return nil
		}
		if err := s.setUnpaused(ctx, tx, v); err != nil {
			return err
		}
		if err := tx.Audit(ctx, lane.Continued, "source.resume", "source:"+name, lane.AuditPauseOver(v.known.Pause)); err != nil {
			return err
		}
		s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "resumed"})
		return s.changed(ctx, tx, &src)
	})
	if err != nil {
		return time.Time{}, err
	}
	return again, s.cfg.fault("continued")
}
