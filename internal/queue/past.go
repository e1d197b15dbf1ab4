package queue

import (
	"sync/atomic"

	"github.com/pawlrun/pawl/internal/store"
)

// past remembers the last jobs whose ends were written. Whoever adds a job hears
// of the commit a moment after the database did it; in that moment a fetch may find
// the row, and it may run and end. Its row is then offered once more, and nothing
// in hand says that it is gone.
type past struct {
	ends  [4096]ended   // guarded by the board's mu; a ring, whose next place is that of count
	count atomic.Uint64 // changed with the board's mu
}

type ended struct{ id, rev int64 }

func (p *past) note(id, rev int64) {
	n := p.count.Load()
	p.ends[n%uint64(len(p.ends))] = ended{id, rev}
	p.count.Store(n + 1)
}

// now is a moment, for since.
func (p *past) now() uint64 { return p.count.Load() }

// since tells which of the jobs ended since a moment. It reports false when that is
// too long ago to say.
func (p *past) since(moment uint64, jobs []store.Job) (gone map[int64]int64, known bool) {
	n := p.count.Load()
	if n-moment > uint64(len(p.ends)) {
		return nil, false
	}
	if n == moment || len(jobs) == 0 {
		return nil, true
	}
	first, last := jobs[0].ID, jobs[0].ID
	for i := range jobs {
		first, last = min(first, jobs[i].ID), max(last, jobs[i].ID)
	}
	for ; moment < n; moment++ {
		e := p.ends[moment%uint64(len(p.ends))]
		if e.id < first || e.id > last {
			continue
		}
		if gone == nil {
			gone = map[int64]int64{}
		}
		gone[e.id] = max(gone[e.id], e.rev)
	}
	return gone, true
}
