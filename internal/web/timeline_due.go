package web

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// dueOf is something that comes due again and again.
type dueOf struct {
	first    time.Time
	schedule when.Schedule
}

// dueTimes are the instants to come of a lane, as marks.
func dueTimes(ctx context.Context, tx *store.Tx, row *laneRow, w timelineWindow) (marks []timelineMark, err error) {
	if word := run.State(row.Word); word != run.Running && word != run.Idle {
		return nil, nil
	}
	list, err := comesDue(ctx, tx, row, w.now)
	for _, d := range list {
		marks = append(marks, d.marks(w)...)
	}
	return marks, err
}

// marks draws the instants until the end of the window; where they are closer
// than a mark is wide they become a band.
func (d dueOf) marks(w timelineWindow) (out []timelineMark) {
	near := time.Duration(float64(w.to.Sub(w.from)) * markWidth / lineWidth)
	at, ok := d.first, true
	for n := 0; ok && at.Before(w.to); n++ {
		x := w.x(at)
		if step := d.schedule.Interval(); step > 0 && step < 2*near || n == dueShown {
			return append(out, timelineMark{x, lineWidth - x, "band", "Due " + when.Until(w.now, at) + " and on: " + d.schedule.Describe()})
		}
		out = append(out, timelineMark{min(x, lineWidth-markWidth), markWidth, "next", "Due at " + instant(at)})
		at, ok = d.schedule.Next(at)
	}
	return out
}

// comesDue reads the schedules of a lane.
func comesDue(ctx context.Context, tx *store.Tx, row *laneRow, now time.Time) (out []dueOf, err error) {
	add := func(first time.Time, s when.Schedule, err error) {
		if err != nil { // a zone may have been lost since it was checked
			return
		}
		if first.IsZero() {
			first, _ = s.Next(now)
		}
		if first.Before(now) {
			first = now
		}
		out = append(out, dueOf{first, s})
	}
	switch pawl.Kind(row.Kind) {
	case pawl.KindWorkflow:
		list, err := tx.ProducerSchedules(ctx, row.ID)
		for _, p := range list {
			s, err := when.Parse(when.Kind(p.Type), p.Value, p.Timezone)
			add(p.NextRunAt, s, err)
		}
		return out, err
	case pawl.KindSource:
		src, err := tx.SourceByName(ctx, row.Name)
		if err != nil {
			return nil, err
		}
		d, err := spec.FromJSON(src.Definition)
		if err != nil {
			return nil, nil //nolint:nilerr // one that is no longer valid does not run either
		}
		s, err := d.Schedule.When()
		add(row.NextAt, s, err)
	case pawl.KindSchedule:
		sch, err := tx.GetSchedule(ctx, row.ID)
		if err != nil || !sch.Enabled {
			return nil, err
		}
		s, err := when.Parse(when.KindCron, sch.Cron, sch.Timezone)
		add(row.NextAt, s, err)
	}
	return out, nil
}
