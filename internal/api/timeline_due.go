package api

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/hex"
	"hash/fnv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// maxDueLanes is how many lanes of each kind are looked at for what comes due:
// of workflows and schedules those that are due first.
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

// moveTo goes on to the first instant at or after start. Where there is none
// before the end the next is zero. It takes one search, however far that is.
func (d *due) moveTo(start, end time.Time) {
	if !d.next.IsZero() && d.next.Before(start) {
		if step := d.schedule.Interval(); step > 0 {
			d.next = d.next.Add((start.Sub(d.next) + step - 1) / step * step)
		} else {
			d.next, _ = d.schedule.NextWithin(start.Add(-time.Nanosecond), end)
		}
	}
	if !d.next.Before(end) {
		d.next = time.Time{}
	}
}

func (d *due) move(end time.Time) {
	d.next, _ = d.schedule.NextWithin(d.next, end)
	if !d.next.Before(end) {
		d.next = time.Time{}
	}
}

// dueHeap has what comes due first on top.
type dueHeap []*tiedDue

type tiedDue struct {
	due
	text string // its tie
}

func (h dueHeap) Len() int      { return len(h) }
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h dueHeap) Less(i, j int) bool {
	return cmp.Or(h[i].next.Compare(h[j].next), cmp.Compare(h[i].text, h[j].text)) < 0
}
func (h *dueHeap) Push(x any) { *h = append(*h, x.(*tiedDue)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// upcomingItems merges what comes due in [start, to), after the given place, in
// the order of time. It computes an instant for each lane and for each item, and
// stops when whoever asked is gone.
func upcomingItems(ctx context.Context, list []due, start, to time.Time, after timelinePlace, limit int) ([]tiedItem, error) {
	if after.what == isSlot && after.at.After(start) {
		start = after.at
	}
	var waiting dueHeap
	for i := range list {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d := &tiedDue{list[i], list[i].tie()}
		d.moveTo(start, to)
		if after.what == isSlot && d.next.UnixMilli() == after.at.UnixMilli() && d.text <= after.tie {
			d.move(to)
		}
		if !d.next.IsZero() {
			waiting = append(waiting, d)
		}
	}
	heap.Init(&waiting)
	var out []tiedItem
	for len(out) < limit && len(waiting) > 0 {
		d := waiting[0]
		out = append(out, tiedItem{client.TimelineItem{
			At: client.At(d.next), What: isSlot, Kind: string(d.kind), Lane: d.lane, LaneID: client.NullString(d.laneID), Handler: client.NullString(d.handler),
		}, d.text})
		if d.move(to); d.next.IsZero() {
			heap.Pop(&waiting)
		} else {
			heap.Fix(&waiting, 0)
		}
	}
	return out, nil
}

// schedules makes schedules from their stored form, and loads each zone once.
type schedules map[string]*time.Location

func (z schedules) of(kind when.Kind, value, zone string) (when.Schedule, error) {
	if kind != when.KindCron {
		return when.Parse(kind, value, zone)
	}
	loc := z[zone]
	if loc == nil {
		var err error
		if loc, err = when.LoadZone(zone); err != nil {
			return when.Schedule{}, err
		}
		z[zone] = loc
	}
	return when.Cron(value, loc)
}

// dueLanes are what comes due by itself before an instant. partial says that
// there is more. What needs a person does not come due.
func (a *API) dueLanes(ctx context.Context, kind string, now, before time.Time) (list []due, partial bool, err error) {
	for _, k := range []struct {
		kind pawl.Kind
		read func(ctx context.Context, now, before time.Time) ([]due, bool, error)
	}{{pawl.KindWorkflow, a.dueWorkflows}, {pawl.KindSource, a.dueSources}, {pawl.KindSchedule, a.dueSchedules}} {
		if kind != "" && kind != string(k.kind) {
			continue
		}
		more, cut, err := k.read(ctx, now, before)
		if err != nil {
			return nil, false, err
		}
		list, partial = append(list, more...), partial || cut
	}
	return list, partial, nil
}

// overdue is due now.
func overdue(at, now time.Time) time.Time {
	if at.Before(now) {
		return now.Truncate(time.Millisecond)
	}
	return at
}

func (a *API) dueWorkflows(ctx context.Context, now, before time.Time) (list []due, partial bool, err error) {
	var producers []store.DueProducer
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		producers, err = tx.DueProducers(ctx, before, maxDueLanes+1)
		return err
	})
	if partial = len(producers) > maxDueLanes; partial {
		producers = producers[:maxDueLanes]
	}
	parse := schedules{}
	for _, p := range producers {
		schedule, err := parse.of(when.Kind(p.Type), p.Value, p.Timezone)
		if err != nil { // a zone may have been lost since it was checked
			continue
		}
		list = append(list, due{kind: pawl.KindWorkflow, lane: p.Workflow, handler: p.Producer, schedule: schedule, next: overdue(p.NextRunAt, now)})
	}
	return list, partial, err
}

func (a *API) dueSources(ctx context.Context, now, before time.Time) (list []due, partial bool, err error) {
	if a.sources == nil {
		return nil, false, nil
	}
	sources, partial, err := a.sources.Due(ctx, maxDueLanes)
	for _, s := range sources {
		d := due{kind: pawl.KindSource, lane: s.Name, schedule: s.Schedule, next: overdue(s.NextAt, now)}
		if s.NextAt.IsZero() { // it runs now
			d.next = now
			d.move(before)
		}
		list = append(list, d)
	}
	return list, partial, err
}

func (a *API) dueSchedules(ctx context.Context, now, before time.Time) (list []due, partial bool, err error) {
	if a.schedules == nil {
		return nil, false, nil
	}
	var found []store.Schedule
	viewer := access.Reach(callOf(ctx).token, schedulesResource)
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = tx.DueSchedules(ctx, viewer, before, maxDueLanes+1)
		return err
	})
	if partial = len(found) > maxDueLanes; partial {
		found = found[:maxDueLanes]
	}
	parse := schedules{}
	for _, s := range found {
		schedule, err := parse.of(when.KindCron, s.Cron, s.Timezone)
		if err != nil {
			continue
		}
		d := due{kind: pawl.KindSchedule, lane: s.Name, laneID: s.ID, schedule: schedule, next: now}
		d.move(before)
		list = append(list, d)
	}
	return list, partial, err
}
