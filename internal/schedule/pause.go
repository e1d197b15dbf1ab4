package schedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// ContinueName is the task that ends what holds a schedule back until a time.
const ContinueName = lane.ContinuePrefix + string(pawl.KindSchedule)

// Pause switches a schedule off until an instant, or until somebody switches it on, in
// the caller's transaction. Of one that is off, what was said about that is replaced.
func (s *Service) Pause(ctx context.Context, tx *store.Tx, ownerID, id, by string, terms lane.PauseTerms) (schedulestore.Schedule, error) {
	if _, err := s.Owned(ctx, tx, ownerID, id); err != nil {
		return schedulestore.Schedule{}, err
	}
	sch, err := schedulestore.In(tx).HoldSchedule(ctx, id)
	if err != nil {
		return sch, err
	}
	stopped := sch.Enabled
	if stopped {
		next := sch
		next.Enabled = false
		if sch, err = s.put(ctx, tx, sch, next, true, by); err != nil {
			return sch, err
		}
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, id)
	if err != nil {
		return sch, err
	}
	said, err := lane.Pause(ctx, tx, s.jobs, known, terms, by)
	if err != nil || !said && !stopped {
		return sch, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(id, sch.Name), What: "updated"})
	return sch, tx.Audit(ctx, by, "schedule.pause", "schedule:"+id, lane.AuditPause(terms))
}

// notePause keeps what is said about a pause with the switch: who turned it off, and
// nothing once it is on.
func (s *Service) notePause(ctx context.Context, tx *store.Tx, was, now schedulestore.Schedule, by string) error {
	if was.Enabled == now.Enabled {
		return nil
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, now.ID)
	if err != nil {
		return err
	}
	if now.Enabled {
		return lane.Unpause(ctx, tx, known)
	}
	_, err = lane.Pause(ctx, tx, s.jobs, known, lane.PauseTerms{}, by)
	return err
}

// passDisabled records the instants that came due since a schedule is off and that have
// no row yet. Whatever changes a schedule that is off does this first, because its times
// and the instant since when it is as it is change with it.
func (s *Service) passDisabled(ctx context.Context, tx *store.Tx, was schedulestore.Schedule) error {
	if was.Enabled || !was.DeletedAt.IsZero() {
		return nil
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, was.ID)
	if err != nil {
		return err
	}
	times, err := s.timesOf(ctx, tx, was)
	if err != nil {
		return err
	}
	due, _, err := s.dueSince(ctx, tx, was.ID, times, was.UpdatedAt, tx.Now, nil)
	if err != nil {
		return err
	}
	words := "The schedule was disabled."
	if !known.Pause.At.IsZero() {
		words = lane.PausedThen(known.Pause, tx.Now)
	}
	return s.passOver(ctx, tx, was, following{passed: due, disposition: run.DispositionSkippedDisabled, words: words})
}

// proceed lets a schedule continue whose time has come: its cap's, its pause's, or both.
// It tells when to look again.
func (s *Service) proceed(ctx context.Context, id string) (again time.Time, err error) {
	if err := s.cfg.fault("continuing"); err != nil {
		return time.Time{}, err
	}
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		again = time.Time{}
		sch, err := schedulestore.In(tx).GetSchedule(ctx, id)
		if err == nil { // calendars before schedules, as whoever changes a calendar does
			err = s.shareCalendars(ctx, tx, sch)
		}
		if err == nil {
			sch, err = schedulestore.In(tx).HoldSchedule(ctx, id)
		}
		if err != nil {
			return pawl.IgnoreNotFound(err)
		}
		if sch, err = s.continued(ctx, tx, sch); err != nil {
			return err
		}
		again = sch.CappedUntil
		until, err := s.endPause(ctx, tx, sch)
		if !until.IsZero() && (again.IsZero() || until.Before(again)) {
			again = until
		}
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return again, s.cfg.fault("continued")
}

// endPause switches a schedule on whose pause is over, or tells when it will be. A cap
// that holds it back goes on doing so, and what switched it off beside the person stays.
func (s *Service) endPause(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (until time.Time, err error) {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
	if err != nil {
		return time.Time{}, pawl.IgnoreNotFound(err)
	}
	switch until = known.Pause.Until; {
	case until.IsZero() || sch.Enabled: // it is on, however that came: there is nothing to end
		return time.Time{}, nil
	case until.After(tx.Now):
		return until, nil
	}
	if err := tx.Audit(ctx, lane.Continued, "schedule.resume", "schedule:"+sch.ID, lane.AuditPauseOver(known.Pause)); err != nil {
		return time.Time{}, err
	}
	if switchedOff(sch) != "" {
		return time.Time{}, lane.Unpause(ctx, tx, known)
	}
	next := sch
	next.Enabled = true
	_, err = s.put(ctx, tx, sch, next, true, lane.Continued)
	return time.Time{}, err
}

// switchedOff is why a schedule was disabled without a person; empty if it was not.
func switchedOff(sch schedulestore.Schedule) string {
	if sch.Enabled || !sch.CappedUntil.IsZero() { // its issue is the cap's
		return ""
	}
	return sch.Issue
}

// refuseDisabled refuses to start a slot of a schedule that is off, and says why it is.
func refuseDisabled(ctx context.Context, tx *store.Tx, op string, sch schedulestore.Schedule) error {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
	if err != nil {
		return err
	}
	why := switchedOff(sch)
	if why == "" && !known.Pause.At.IsZero() {
		return lane.RefusePaused(op, refOf(sch.ID, sch.Name), known.Pause)
	}
	text := fmt.Sprintf("schedule %q is disabled", sch.Name)
	if why != "" {
		text += ": " + strings.TrimSuffix(why, ".")
	}
	return lane.Refuse(op, ReasonPaused, text, "Enable it first: "+run.Command("resume", string(pawl.KindSchedule), sch.Name))
}

// pausedStatus is the status of a schedule that is off.
func pausedStatus(sch schedulestore.Schedule, p runstore.Pause) (run.State, run.Issue, string) {
	switch why := switchedOff(sch); {
	case why != "":
		return run.NeedsAttention, run.IssuePrecondition, "It was disabled: " + why + " Enable it to continue."
	case p.At.IsZero():
		return run.Stopped, run.IssuePaused, "It is disabled; resume it to continue."
	}
	return run.Stopped, run.IssuePaused, lane.PausedSentence(p)
}
