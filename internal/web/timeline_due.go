package web

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// dueTimes are the instants to come of a lane, as marks.
func dueTimes(ctx context.Context, tx *store.Tx, k lane.Kind, l *lane.Lane, w timelineWindow) (marks []timelineMark, err error) {
	if l.State != run.Running && l.State != run.Idle {
		return nil, nil
	}
	list, err := k.Repeats(ctx, tx, l)
	for _, d := range list {
		marks = append(marks, dueMarks(d, w)...)
	}
	return marks, err
}

// dueMarks draws the instants until the end of the window; where they are closer
// than a mark is wide they become a band.
func dueMarks(d lane.Due, w timelineWindow) (out []timelineMark) {
	near := time.Duration(float64(w.to.Sub(w.from)) * markWidth / lineWidth)
	at, ok := d.Next, true
	if at.IsZero() {
		at, ok = d.Schedule.Next(w.now)
	}
	if at.Before(w.now) {
		at = w.now
	}
	for n := 0; ok && at.Before(w.to); n++ {
		x := w.x(at)
		if step := d.Schedule.Interval(); step > 0 && step < 2*near || n == dueShown {
			return append(out, timelineMark{x, lineWidth - x, "band", "Due " + when.Until(w.now, at) + ", then " + d.Schedule.Describe(), ""})
		}
		out = append(out, timelineMark{min(x, lineWidth-markWidth), markWidth, "next", "Due at " + instant(at), ""})
		at, ok = d.Schedule.Next(at)
	}
	return out
}
