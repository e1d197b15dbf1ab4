package simulate

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"
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

// functions are those that asked, by where they are called.
var functions sync.Map

// whoAsks is a number for the functions that led here. Of two loops of a process
// that ask at the same instant, it does not matter then who is the first: each has
// chances of its own.
func whoAsks(what string) (sum uint64, who mark) {
	var callers [11]uintptr
	sum = hashOf(what)
	for _, pc := range callers[:runtime.Callers(3, callers[:])] {
		known, ok := functions.Load(pc)
		if !ok {
			frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
			f := function{hash: hashOf(frame.Function)}
			for words, m := range marked {
				if strings.Contains(frame.Function, words) {
					f.mark |= m
				}
			}
			known = f
			functions.Store(pc, f)
		}
		f := known.(function)
		sum, who = sum*31+f.hash, who|f.mark
	}
	return sum, who
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
