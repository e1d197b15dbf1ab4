package subject

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Recorder notes what happens to the jobs of one batch. Its handler is called
// for every job of every queue, so it takes no lock.
type Recorder struct {
	batch     Batch
	called    []int64 // each element is written by one goroutine
	committed []int64
	started   []atomic.Int64
	lanes     []laneWatch

	handled, duplicates, strays atomic.Int64
	overlaps, disorder          atomic.Int64
	first, last                 atomic.Int64
	all                         chan struct{} // closed when every job was handled
}

// laneWatch sees whether a lane's jobs run one at a time and in order.
type laneWatch struct {
	running atomic.Int32
	last    atomic.Int64 // number of the last job that started, plus one
}

// NewRecorder expects the jobs of the batch.
func NewRecorder(b Batch) *Recorder {
	r := &Recorder{
		batch:     b,
		called:    make([]int64, b.Count),
		committed: make([]int64, b.Count),
		started:   make([]atomic.Int64, b.Count),
		all:       make(chan struct{}),
	}
	if b.Lanes > 0 {
		r.lanes = make([]laneWatch, b.Lanes+1)
	}
	return r
}

// Handle is the handler of every job: it reads the clock, yields once if the
// job has a lane, and returns.
func (r *Recorder) Handle(seq int) {
	now := time.Now().UnixMicro()
	i := seq - r.batch.First
	if i < 0 && i >= -r.batch.Beside {
		time.Sleep(time.Duration(r.batch.SlowMS) * time.Millisecond)
		return
	}
	if i < 0 || i >= len(r.started) {
		r.strays.Add(1)
		return
	}
	if !r.started[i].CompareAndSwap(0, now) {
		r.duplicates.Add(1)
		return
	}
	r.first.CompareAndSwap(0, now)
	lane := r.batch.laneIndex(seq)
	if lane >= 0 {
		r.enterLane(lane, seq)
		runtime.Gosched() // let others run meanwhile, or no overlap could be seen
		r.lanes[lane].running.Add(-1)
	}
	if r.handled.Add(1) == int64(len(r.started)) {
		r.last.Store(time.Now().UnixMicro())
		close(r.all)
	}
}

func (r *Recorder) enterLane(lane, seq int) {
	w := &r.lanes[lane]
	if w.running.Add(1) > int32(max(1, r.batch.PerLane)) {
		r.overlaps.Add(1)
	}
	if w.last.Swap(int64(seq)+1) > int64(seq) {
		r.disorder.Add(1)
	}
}

// Tally returns the counts so far.
func (r *Recorder) Tally() Tally {
	return Tally{
		Handled:    int(r.handled.Load()),
		Duplicates: int(r.duplicates.Load()),
		Strays:     int(r.strays.Load()),
		Overlaps:   int(r.overlaps.Load()),
		Disorder:   int(r.disorder.Load()),
		FirstUS:    r.first.Load(),
		HandledUS:  r.last.Load(),
	}
}

// Samples returns the instants of all jobs. No enqueue may be under way.
func (r *Recorder) Samples() *Samples {
	s := &Samples{Called: r.called, Committed: r.committed, Started: make([]int64, len(r.started))}
	for i := range r.started {
		s.Started[i] = r.started[i].Load()
	}
	return s
}
