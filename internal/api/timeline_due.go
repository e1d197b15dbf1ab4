package api

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/hex"
	"hash/fnv"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
)

// maxDueLanes is how many lanes of each kind are looked at for what comes due:
// of workflows and schedules those that are due first.
const maxDueLanes = 1000

// due is something that comes due again and again, at the next instant.
type due struct {
	lane.Due
	next time.Time
}

// tie tells what comes due at one instant apart, in few characters.
func (d *due) tie() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(d.Kind) + "\x00" + d.Name + "\x00" + d.id() + "\x00" + d.Handler)) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

// id is that of a lane whose name is not enough.
func (d *due) id() string {
	if d.Owned {
		return d.Key
	}
	return ""
}

// moveTo goes on to the first instant at or after start. Where there is none
// before the end the next is zero. It takes one search, however far that is.
func (d *due) moveTo(start, end time.Time) {
	if !d.next.IsZero() && d.next.Before(start) {
		if step := d.Schedule.Interval(); step > 0 {
			d.next = d.next.Add((start.Sub(d.next) + step - 1) / step * step)
		} else {
			d.next, _ = d.Schedule.NextWithin(start.Add(-time.Nanosecond), end)
		}
	}
	if !d.next.Before(end) {
		d.next = time.Time{}
	}
}

func (d *due) move(end time.Time) {
	d.next, _ = d.Schedule.NextWithin(d.next, end)
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
			At: client.At(d.next), What: isSlot, Kind: string(d.Kind), Lane: d.Name, LaneID: client.NullString(d.id()), Handler: client.NullString(d.Handler),
		}, d.text})
		if d.move(to); d.next.IsZero() {
			heap.Pop(&waiting)
		} else {
			heap.Fix(&waiting, 0)
		}
	}
	return out, nil
}

// dueLanes are what comes due by itself before an instant. partial says that
// there is more. What needs a person does not come due.
func (a *API) dueLanes(ctx context.Context, kind string, now, before time.Time) (list []due, partial bool, err error) {
	for _, k := range a.kinds {
		if kind != "" && kind != string(k.Kind()) {
			continue
		}
		found, more, err := k.Due(ctx, viewerOf(ctx, k.Kind()).Owner, before, maxDueLanes)
		if err != nil {
			return nil, false, err
		}
		partial = partial || more
		for _, one := range found {
			d := due{one, overdue(one.Next, now)}
			if one.Next.IsZero() { // it runs now
				d.next = now
				d.move(before)
			}
			list = append(list, d)
		}
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
