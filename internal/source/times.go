package source

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// loadTimes makes the schedule of a source, with the days of its calendars. It is
// zero if its zone was lost since it was checked.
func (s *Service) loadTimes(ctx context.Context, tx *store.Tx, v *view) (err error) {
	if v.plan, err = timing.Decode(v.state.Plan); err != nil {
		return err
	}
	if v.def.Schedule.Limited() {
		v.times, err = v.plan.Compile(ctx, tx, s.cfg.Calendars, v.source.ID, v.def.Schedule.Rule())
	} else {
		v.times, err = v.def.Schedule.When()
	}
	if pawl.ErrorCode(err) == pawl.CodeInvalid {
		v.times, err = when.Schedule{}, nil
	}
	return err
}

// instant is what the next run stands for; zero: nothing, for the schedule has
// ended.
func (v *view) instant() time.Time {
	switch {
	case !v.state.RequestedAt.IsZero():
		return v.state.RequestedAt
	case v.unfinished():
		return v.state.LastAttemptAt
	}
	last, missed := v.lastRun(), v.def.Schedule.Late()
	if last.IsZero() {
		if v.times.Excluded(v.source.CreatedAt) == "" {
			return v.source.CreatedAt
		}
		last = v.source.CreatedAt
	}
	if missed != nil {
		last = v.state.StoodFor
	}
	if since := time.UnixMilli(v.plan.Since).UTC(); v.plan.Since != 0 && last.Before(since) {
		last = since // what was left out then, or not planned yet, was not missed
	}
	next, _ := v.times.Next(last)
	if missed != nil {
		return timing.Next(v.times, missed, next, v.now)
	}
	return next
}

// dueAt is when the schedule lets it run next, by its jitter; zero if never.
func (v *view) dueAt() time.Time {
	at := v.instant()
	if at.IsZero() || !v.state.RequestedAt.IsZero() || v.unfinished() || v.lastRun().IsZero() && at.Equal(v.source.CreatedAt) {
		return at
	}
	return timing.Start(v.times, at)
}

// standsFor is the instant of the schedule that a run begins for; zero if it was
// asked for, or is another attempt.
func (v *view) standsFor() time.Time {
	if !v.state.RequestedAt.IsZero() || v.unfinished() {
		return time.Time{}
	}
	return v.instant()
}

// due is the source as something that comes due.
func (v *view) due(next time.Time) lane.Due {
	d := lane.Due{Ref: refOf(v.source.Name), Schedule: v.times, Next: next}
	if m := v.def.Schedule.Late(); m != nil {
		d.Missed = m.Policy
	}
	return d
}

// holdCalendars notes the versions of the calendars that a definition names.
func (s *Service) holdCalendars(ctx context.Context, tx *store.Tx, d spec.Definition) (plan timing.Plan, err error) {
	if !d.Schedule.Limited() {
		return plan, nil
	}
	faults, err := plan.Hold(ctx, tx, s.cfg.Calendars, d.Schedule.Rule(), false)
	if err == nil && len(faults) > 0 {
		return plan, badSchedule(faults...)
	}
	return plan, err
}

func badSchedule(faults ...pawl.Field) error {
	e := &pawl.Error{Code: pawl.CodeInvalid, Op: "check source", Msg: "the source is not valid: " + faults[0].Message}
	for _, f := range faults {
		e.Fields = append(e.Fields, pawl.Field{Pointer: "/schedule" + f.Pointer, Message: f.Message})
	}
	return e
}

// planSource keeps what the instants of a source depend on, if its schedule is
// another one than before. One that never runs is refused.
func (s *Service) planSource(ctx context.Context, tx *store.Tx, src sourcestore.Source, d spec.Definition, was []byte, plan timing.Plan) (sourcestore.Source, error) {
	var before spec.Schedule
	if was != nil {
		old, err := definitionOf(src.Name, was)
		if err != nil {
			return src, err
		}
		before = old.Schedule
	}
	if reflect.DeepEqual(before, d.Schedule) || !before.Limited() && !d.Schedule.Limited() {
		return src, nil
	}
	if d.Schedule.Limited() {
		if d.Schedule.Missed != nil {
			plan.Since = tx.Now.UnixMilli()
		}
		rule := d.Schedule.Rule()
		if timing.Fixed(rule, d.Schedule.Missed != nil) {
			plan.Anchor = tx.Now.UnixMilli()
		}
		times, err := plan.Compile(ctx, tx, s.cfg.Calendars, src.ID, rule)
		if err != nil {
			return src, err
		}
		if why, never := timing.NeverRuns(rule, times, tx.Now, timing.Instant); never {
			return src, badSchedule(why)
		}
	}
	if err := sourcestore.In(tx).SetSourcePlan(ctx, src.ID, plan.Encode()); err != nil {
		return src, err
	}
	return sourcestore.In(tx).GetSource(ctx, src.ID)
}

// UsersOf implements calendar.User. Sources are everybody's, but whoever sees only
// what is theirs is told no names.
func (s *Service) UsersOf(ctx context.Context, tx *store.Tx, name, owner string) (names []string, all int, err error) {
	list, err := s.using(ctx, tx, name)
	for _, src := range list {
		if owner == "" {
			names = append(names, "source "+src.Name)
		}
	}
	return names, len(list), err
}

// using are the sources that leave out the days of a calendar.
func (s *Service) using(ctx context.Context, tx *store.Tx, name string) ([]sourcestore.Source, error) {
	list, err := sourcestore.In(tx).SourcesNaming(ctx, when.CalendarPrefix+name)
	return slices.DeleteFunc(list, func(src sourcestore.Source) bool {
		d, err := definitionOf(src.Name, src.Definition)
		return err != nil || !slices.Contains(d.Schedule.Rule().Calendars(), name)
	}), err
}

// CalendarChanged implements calendar.User: the sources that leave out the days of
// the calendar are planned anew.
func (s *Service) CalendarChanged(ctx context.Context, tx *store.Tx, name string, revision int64, _ string) error {
	list, err := s.using(ctx, tx, name)
	if err != nil {
		return err
	}
	for _, one := range list {
		src, err := sourcestore.In(tx).HoldSource(ctx, one.Name)
		if errors.Is(err, pawl.ErrNotFound) {
			continue // it was deleted at this moment
		}
		if err == nil {
			err = s.replan(ctx, tx, src, name, revision)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) replan(ctx context.Context, tx *store.Tx, src sourcestore.Source, name string, revision int64) error {
	v, err := s.loadFrom(ctx, tx, src)
	if err != nil || !slices.Contains(v.def.Schedule.Rule().Calendars(), name) {
		return err // it was changed at this moment
	}
	plan, times, err := v.plan.Replan(ctx, tx, s.cfg.Calendars, timing.Change{
		Calendar: name, Revision: revision, Seed: src.ID, Rule: v.def.Schedule.Rule(), Who: "source " + src.Name,
	})
	if err != nil {
		return err
	}
	if !times.Floats() {
		// An instant of the past that was left out until now is none that was
		// missed; one that is due stays so.
		plan.Since = tx.Now.UnixMilli()
		if at := v.instant(); !at.IsZero() && !at.After(tx.Now) {
			plan.Since = at.UnixMilli() - 1
		}
	}
	if err := sourcestore.In(tx).SetSourcePlan(ctx, src.ID, plan.Encode()); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(src.Name), What: "planned"})
	return s.changed(ctx, tx, &src)
}
