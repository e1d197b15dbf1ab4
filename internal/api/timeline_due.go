package api

import (
	"context"
	"encoding/hex"
	"hash/fnv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// maxDueLanes is how many lanes of each kind are looked at for what comes due.
const maxDueLanes = 1000

func kindOf(text string) pawl.Kind { return pawl.Kind(text) }

// due is something that comes due again and again.
type due struct {
	kind     pawl.Kind
	lane     string
	laneID   string // of a schedule
	handler  string // of a workflow
	schedule when.Schedule
	next     time.Time
}

// tie tells what comes due at one instant apart, in few characters.
func (d *due) tie() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(d.kind) + "\x00" + d.lane + "\x00" + d.laneID + "\x00" + d.handler)) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

// moveTo goes on to the first instant at or after the given one. Where there is
// none the next is zero.
func (d *due) moveTo(start time.Time) {
	if step := d.schedule.Interval(); step > 0 && d.next.Before(start) {
		d.next = d.next.Add(start.Sub(d.next) / step * step)
	}
	for !d.next.IsZero() && d.next.Before(start) {
		d.move()
	}
}

func (d *due) move() {
	next, ok := d.schedule.Next(d.next)
	if !ok {
		next = time.Time{}
	}
	d.next = next
}

// upcomingItems merges what comes due in [start, to), after the given place, in
// the order of time.
func upcomingItems(list []due, start, to time.Time, after timelinePlace, limit int) []TimelineItem {
	if after.what == isSlot && after.at.After(start) {
		start = after.at
	}
	ties := make([]string, len(list))
	for i := range list {
		ties[i] = list[i].tie()
		list[i].moveTo(start)
		if after.what == isSlot && list[i].next.UnixMilli() == after.at.UnixMilli() && ties[i] <= after.tie {
			list[i].move()
		}
	}
	var out []TimelineItem
	for len(out) < limit {
		first := -1
		for i := range list {
			if list[i].next.IsZero() || !list[i].next.Before(to) {
				continue
			}
			if first < 0 || list[i].next.Before(list[first].next) || list[i].next.Equal(list[first].next) && ties[i] < ties[first] {
				first = i
			}
		}
		if first < 0 {
			return out
		}
		d := &list[first]
		out = append(out, TimelineItem{
			At: Instant{d.next}, What: isSlot, Kind: string(d.kind), Lane: d.lane, LaneID: orNull(d.laneID), Handler: orNull(d.handler), tie: ties[first],
		})
		d.move()
	}
	return out
}

// dueLanes are everything that will come due by itself. partial says that there
// is more.
func (a *API) dueLanes(ctx context.Context, kind string, now time.Time) (list []due, partial bool, err error) {
	for _, k := range []struct {
		kind pawl.Kind
		read func(context.Context, time.Time) ([]due, bool, error)
	}{{pawl.KindWorkflow, a.dueWorkflows}, {pawl.KindSource, a.dueSources}, {pawl.KindSchedule, a.dueSchedules}} {
		if kind != "" && kind != string(k.kind) {
			continue
		}
		more, cut, err := k.read(ctx, now)
		if err != nil {
			return nil, false, err
		}
		list, partial = append(list, more...), partial || cut
	}
	return list, partial, nil
}

// goesOn reports whether a lane runs again without a person.
func goesOn(w run.Word) bool { return w == run.Running || w == run.Idle }

// overdue is due now.
func overdue(at, now time.Time) time.Time {
	if at.Before(now) {
		return now.Truncate(time.Millisecond)
	}
	return at
}

func (a *API) dueWorkflows(ctx context.Context, now time.Time) (list []due, partial bool, err error) {
	lanes, next, err := a.flows.Lanes(ctx, "", maxDueLanes)
	if err != nil {
		return nil, false, err
	}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list = nil
		for _, l := range lanes {
			if !goesOn(l.Word) {
				continue
			}
			producers, err := tx.ProducerSchedules(ctx, l.ID)
			if err != nil {
				return err
			}
			for _, p := range producers {
				schedule, err := when.Parse(when.Kind(p.Type), p.Value, p.Timezone)
				if err != nil { // a zone may have been lost since it was checked
					continue
				}
				list = append(list, due{kind: pawl.KindWorkflow, lane: l.Name, handler: p.Producer, schedule: schedule, next: overdue(p.NextRunAt, now)})
			}
		}
		return nil
	})
	return list, next != "", err
}

func (a *API) dueSources(ctx context.Context, now time.Time) ([]due, bool, error) {
	if a.sources == nil {
		return nil, false, nil
	}
	sources, next, err := a.sources.List(ctx, "", maxDueLanes)
	if err != nil {
		return nil, false, err
	}
	var list []due
	for i := range sources {
		s := &sources[i]
		schedule, err := s.Definition.Schedule.When()
		if err != nil || !goesOn(s.Word) {
			continue
		}
		d := due{kind: pawl.KindSource, lane: s.Name, schedule: schedule, next: overdue(s.NextAt, now)}
		if s.NextAt.IsZero() { // it runs now
			d.next = now
			d.move()
		}
		list = append(list, d)
	}
	return list, next != "", nil
}

func (a *API) dueSchedules(ctx context.Context, now time.Time) (list []due, partial bool, err error) {
	if a.graphs == nil {
		return nil, false, nil
	}
	viewer := access.Reach(callOf(ctx).token, schedulesResource)
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list = nil
		schedules, err := tx.ListSchedules(ctx, viewer, "", maxDueLanes+1)
		if partial = len(schedules) > maxDueLanes; partial {
			schedules = schedules[:maxDueLanes]
		}
		for _, s := range schedules {
			schedule, err := when.Parse(when.KindCron, s.Cron, s.Timezone)
			if err != nil || !s.Enabled {
				continue
			}
			d := due{kind: pawl.KindSchedule, lane: s.Name, laneID: s.ID, schedule: schedule, next: now}
			d.move()
			list = append(list, d)
		}
		return err
	})
	return list, partial, err
}
