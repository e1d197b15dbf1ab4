package simulate

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// mark says in whose name the database is asked, for faults that are aimed.
type mark uint8

const (
	buries mark = 1 << iota // a node declares another one dead
	shares                  // a node takes lanes, or gives them away
	beats                   // a heartbeat
	ends                    // the ends of jobs
	moves                   // a run goes on to its next phase, or ends
	adds                    // jobs are added
)

// aims are what faults may be aimed at; zero is whatever comes.
var aims = []mark{0, 0, 0, buries | shares, shares, ends, moves, adds}

// marked are the words in names of functions that tell.
var marked = map[string]mark{
	"(*lessee).bury": buries, "(*lessee).take": shares, "(*lessee).giveBack": shares, "(*DB).Beat": beats,
	"(*Queue).tryEnds": ends, "internal/ledger.": moves, ").Enqueue": adds, "(*execution).write": moves, "(*attempt).settle": moves, "(*attempt).take": moves,
	"(*fetching).write": moves,
}

// function is what is known of one by where it is called.
type function struct {
	hash uint64
	mark mark
}

// depth is how many of the functions that led to an exchange tell who asks.
const depth = 11

// askers are who asked, by the functions that led there.
var askers = struct {
	mu   sync.Mutex
	of   map[[depth]uintptr]store.SimulatedAsker // guarded by mu
	from map[uintptr]function                    // by where they are called; guarded by mu
}{of: map[[depth]uintptr]store.SimulatedAsker{}, from: map[uintptr]function{}}

// whoAsks is a number for the functions that led here. Of two loops of a process
// that ask at the same instant, it does not matter then who is the first: each has
// chances of its own.
func whoAsks(what string, by *store.SimulatedAsker) (sum uint64, who mark) {
	if !by.Known {
		var callers [depth]uintptr
		n := runtime.Callers(3, callers[:])
		askers.mu.Lock()
		known, ok := askers.of[callers]
		if !ok {
			known = follow(callers[:n])
			askers.of[callers] = known
		}
		askers.mu.Unlock()
		*by = known
	}
	return hashOf(what)*by.Times + by.Path, mark(by.Marks)
}

// follow goes along the functions that led to an exchange. It is called with the
// askers' mu held.
func follow(callers []uintptr) store.SimulatedAsker {
	by := store.SimulatedAsker{Times: 1, Known: true}
	for _, pc := range callers {
		f, ok := askers.from[pc]
		if !ok {
			frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
			f.hash = hashOf(frame.Function)
			for words, m := range marked {
				if strings.Contains(frame.Function, words) {
					f.mark |= m
				}
			}
			askers.from[pc] = f
		}
		by.Path, by.Times, by.Marks = by.Path*31+f.hash, by.Times*31, by.Marks|uint8(f.mark)
	}
	return by
}

// meet lets a burial last until one that stands still goes on, if that is soon: so
// that it beats at that very moment.
func (w *world) meet(from *life, r *rand.Rand) {
	for _, l := range w.alive() {
		l.mu.Lock()
		left := time.Until(l.thaw)
		l.mu.Unlock()
		if l != from && left > 0 && left < 3*time.Second && r.IntN(3) > 0 {
			pass(left + time.Duration(r.Int64N(int64(20*time.Millisecond))))
			return
		}
	}
}
