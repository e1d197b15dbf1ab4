package queue

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// place is where a job in hand is.
type place int

const (
	inTimers  place = iota // not yet due
	inLane                 // due, behind another job of its lane
	inReady                // due, waiting for a worker
	inCheck                // a worker asks whether the row is still the same
	inRun                  // running
	inFinish               // ended, not yet written
	inNowhere              // dropped from hand
)

// entry is a job in hand.
type entry struct {
	job     store.Job
	place   place
	order   string    // among those that came due at the same instant
	pool    *pool     // whose workers run it
	index   int       // in the heap of timers
	readAt  time.Time // when the row was last seen as it is here
	started time.Time
	cancel  context.CancelCauseFunc // set while it runs
	marked  bool
	changed bool // while its end was being written
	checked bool // was just found to be as it was read
	unknown bool // the last question whether it is failed
	rearmed bool // its row was changed while it ran
}

// timerHeap orders entries by due time.
type timerHeap []*entry

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return before(h[i], h[j]) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}
func (h *timerHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}

func (h *timerHeap) push(e *entry)   { heap.Push(h, e) }
func (h *timerHeap) pop() *entry     { return heap.Pop(h).(*entry) }
func (h *timerHeap) remove(e *entry) { heap.Remove(h, e.index) }

func before(a, b *entry) bool { return compare(&a.job, &b.job, a.order, b.order) < 0 }

// compare brings jobs into the order in which they run: by time, then by the
// order of their task, then by age.
func compare(a, b *store.Job, orderA, orderB string) int {
	if at := a.RunAt.Compare(b.RunAt); at != 0 {
		return at
	}
	if order := cmp.Compare(orderA, orderB); order != 0 {
		return order
	}
	return cmp.Compare(a.ID, b.ID)
}

// lane is a lane with a job that is ready, running or not yet written.
type lane struct {
	bucket  int
	holder  *entry
	waiting []*entry // in the order they must run; bounded
	more    bool     // due jobs were left in the table
	missed  bool     // more were left while a refill was under way
	filling bool     // a refill is under way or asked for
	ended   int      // finished jobs whose rows a refill may still see
}

// add puts a due job in its place behind the holder.
func (l *lane) add(e *entry) {
	at, _ := slices.BinarySearchFunc(l.waiting, e, func(a, b *entry) int {
		if a.job.Priority != b.job.Priority {
			return b.job.Priority - a.job.Priority
		}
		if before(a, b) {
			return -1
		}
		return 1
	})
	l.waiting = slices.Insert(l.waiting, at, e)
	e.place = inLane
}

func (l *lane) remove(e *entry) {
	if i := slices.Index(l.waiting, e); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}

// fifo is a queue that gives its memory back.
type fifo struct {
	items []*entry
	head  int
}

func (f *fifo) len() int      { return len(f.items) - f.head }
func (f *fifo) push(e *entry) { f.items = append(f.items, e) }

func (f *fifo) pushFront(e *entry) {
	if f.head > 0 {
		f.head--
		f.items[f.head] = e
		return
	}
	f.items = slices.Insert(f.items, 0, e)
}

func (f *fifo) pop() *entry {
	e := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 1024 && f.head > len(f.items)/2 {
		f.items = slices.Delete(f.items, 0, f.head)
		f.head = 0
	}
	return e
}
