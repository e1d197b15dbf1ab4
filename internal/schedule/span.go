package schedule

import (
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

const (
	// maxRecorded is how many slots that will not run have a row each; those after
	// them are one row. It is also how many that were missed run later at most.
	maxRecorded = 1000
	// mostFresh is more than how many instants can have come due a moment ago.
	mostFresh = 100
)

// span is instants of a schedule without a slot: one, or many in a row.
type span struct {
	first, last time.Time
	count       int64
	apart       bool // a slot is between it and the one before: no row can cover both
}

func single(at time.Time) span { return span{first: at, last: at, count: 1} }

// fold appends instants to a list whose first ones, as many as most, are each by
// themselves, and joins those after them.
func fold(list, more []span, most int) []span {
	for _, d := range more {
		n := len(list)
		if n == 0 || d.apart || n <= most && list[n-1].count == 1 {
			list = append(list, d)
			continue
		}
		list[n-1].last, list[n-1].count = d.last, list[n-1].count+d.count
	}
	return list
}

// dueSince lists the instants in (after, now] of which nothing became yet, and the
// first one after now. Of others a backfill or a gap in the work of this server saw
// to. No span is in one of the halts and beside it.
func (s *Service) dueSince(ctx context.Context, tx *store.Tx, id string, times when.Schedule, after, now time.Time, halts stretches) (due []span, next time.Time, err error) {
	first, ok := times.Next(after)
	if !ok || times.Start(first).After(now) {
		return nil, first, nil
	}
	known, err := schedulestore.In(tx).CoveredBetween(ctx, id, first, now)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, end := range halts.ends(after, now) {
		var part []span
		if part, next = dueBetween(times, after, end, known, s.cfg.record); next.IsZero() {
			return append(due, part...), next, nil
		}
		due, after = append(due, part...), next.Add(-time.Millisecond)
	}
	return due, next, nil
}

// dueBetween lists the instants in (after, now] that the known rows do not cover,
// and the first one after now. The first ones and the latest are each by
// themselves, at least most of them. It is pure.
func dueBetween(times when.Schedule, after, now time.Time, known []schedulestore.Stretch, most int) (due []span, next time.Time) {
	keep := most + mostFresh
	rows := rowsOnTheWay{known: known}
	var tail []span
	for at := after; ; {
		n, ok := times.Next(at)
		if !ok || times.Start(n).After(now) {
			return append(due, tail...), n
		}
		at = n
		covered, apart := rows.reach(n)
		if covered {
			continue
		}
		tail = append(tail, span{n, n, 1, apart})
		if len(tail) < 2*keep {
			continue
		}
		due, tail = fold(due, tail[:keep], most), slices.Clone(tail[keep:])
		if last, count := times.Leap(at, now, keep); count > 0 && rows.free(last) {
			first, _ := times.Next(at)
			due, tail = fold(fold(due, tail, most), []span{{first: first, last: last, count: count}}, most), nil
			at = last
		}
	}
}

// rowsOnTheWay are the rows that somebody passes who goes from instant to instant.
type rowsOnTheWay struct {
	known []schedulestore.Stretch // that are still ahead, the oldest first
	until time.Time               // the last instant that those behind cover
	met   bool                    // one since the last instant that none covers
}

// reach goes on to an instant. It reports whether a row covers it, and if not,
// whether there is one between it and the last that none covers.
func (r *rowsOnTheWay) reach(at time.Time) (covered, apart bool) {
	for len(r.known) > 0 && !r.known[0].First.After(at) {
		r.until, r.met, r.known = r.known[0].Last, true, r.known[1:]
	}
	if !at.After(r.until) {
		return true, false
	}
	apart, r.met = r.met, false
	return false, apart
}

// free reports whether no row is ahead up to an instant.
func (r *rowsOnTheWay) free(until time.Time) bool {
	return len(r.known) == 0 || r.known[0].First.After(until)
}

// setApart makes sure that an instant has no part in a row that covers many: then
// it has one of its own, if it is an instant of that row. The caller holds the
// schedule.
func (s *Service) setApart(ctx context.Context, tx *store.Tx, id string, at time.Time) error {
	row, err := schedulestore.In(tx).CoveringSlot(ctx, id, at)
	if err != nil || row.Through.IsZero() {
		return pawl.IgnoreNotFound(err)
	}
	v, err := schedulestore.In(tx).ScheduleVersion(ctx, id, row.Revision)
	if err != nil {
		return err
	}
	times, err := s.times(ctx, tx, id, v.Cron, v.Timezone, v.Timing)
	if err != nil {
		return err
	}
	return schedulestore.In(tx).SplitSlot(ctx, row.ID, partsOf(times, row, at))
}

// partsOf are what a row of many becomes when an instant is set apart.
func partsOf(times when.Schedule, row schedulestore.Slot, at time.Time) (parts []schedulestore.Stretch) {
	before := schedulestore.Stretch{First: row.ScheduledFor, Last: row.ScheduledFor}
	next := row.ScheduledFor // the first that is not before at
	for next.Before(at) {
		before.Last, before.Count = next, before.Count+1
		if last, count := times.Leap(next, at.Add(-time.Millisecond), 0); count > 0 {
			before.Last, before.Count = last, before.Count+count
		}
		following, ok := times.Next(before.Last)
		if !ok || following.After(row.Through) {
			next = row.Through.Add(time.Millisecond)
			break
		}
		next = following
	}
	if before.Count > 0 {
		parts = append(parts, before)
	}
	left := row.Count - before.Count
	if next.Equal(at) {
		parts, left = append(parts, schedulestore.Stretch{First: at, Last: at, Count: 1}), left-1
		if next, _ = times.Next(at); next.IsZero() {
			left = 0
		}
	}
	if left > 0 && !next.After(row.Through) {
		parts = append(parts, schedulestore.Stretch{First: next, Last: row.Through, Count: left})
	}
	return parts
}
