package simulate

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

var (
	oneSeed = flag.Int64("seed", -1, "live the history of this seed alone, and tell it")
	seeds   = flag.Int("seeds", 0, "live this many histories; zero: as many as fit into the budget")
	from    = flag.Uint64("from", 1, "the first seed")
	kind    = flag.String("kind", "", "live only histories that have lanes of this kind (jobs, workflow, source, schedule, worker, hook)")
	budget  = flag.Duration("budget", time.Minute, "how long to live histories")
	long    = flag.Bool("long", false, "do not shorten a history that fails")
	trace   = flag.Bool("trace", false, "tell of every exchange with the database")
	goOn    = flag.Bool("on", false, "go on after a history that fails, and tell what is wrong only")
	even    = flag.Bool("even", false, "draw the lengths and kinds of histories as evenly as once, to compare")
	loud    = flag.Bool("loud", false, "with -seed: show what nodes log")
	logTo   io.Writer
)

// outcome is what came of a history.
type outcome struct {
	failed []string
	story  []string
	steps  int64
	counts map[string]int
	took   time.Duration // of simulated time
}

// cost is what histories of one sort take of a processor.
type cost struct {
	n     int
	steps int64
	used  time.Duration
}

// places are the databases in which histories are lived. Making a table while a
// history is lived costs as much as the history, because every statement is planned
// anew, then and when it is forgotten: so most sources find the table that one
// before them left, and some make theirs on a database of its own.
type places struct {
	full, bare *store.Simulation
	spool      string // for answers that are too large for memory
}

func newPlaces(t *testing.T) *places {
	t.Helper()
	old := runtime.GOMAXPROCS(1) // what runs at one instant, runs in one order
	gc := debug.SetGCPercent(800)
	t.Cleanup(func() { runtime.GOMAXPROCS(old); debug.SetGCPercent(gc) })
	p := &places{spool: t.TempDir()}
	for _, sim := range []**store.Simulation{&p.full, &p.bare} {
		made, err := store.NewSimulation(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(made.Close)
		*sim = made
	}
	if err := makeItems(t.Context(), p.full.Open(store.SimulatedProcess{})); err != nil {
		t.Fatal(err)
	}
	return p
}

// of is where a history is lived.
func (p *places) of(h *plan) *store.Simulation {
	if h.bare {
		return p.bare
	}
	return p.full
}

// liveOnce lives a plan in a bubble of its own.
func liveOnce(t *testing.T, p *plan, sim *places) (out outcome) {
	t.Helper()
	var made atomic.Uint64
	var mu sync.Mutex
	counts := map[uint64]uint64{}
	store.SimulateIDs(func() string {
		n := made.Add(1)
		asked, _ := whoAsks("id", new(store.SimulatedAsker))
		mu.Lock()
		r := dice(p.seed^asked, "id", counts[asked])
		counts[asked]++
		mu.Unlock()
		return fmt.Sprintf("%012x", time.Now().UnixMilli())[:8] + fmt.Sprintf("-%s-7%03x-%04x-%012x", fmt.Sprintf("%012x", time.Now().UnixMilli())[8:], n&0xfff, 0x8000|n>>12, r.Uint64()>>16)
	})
	defer store.SimulateIDs(nil)
	synctest.Test(t, func(t *testing.T) {
		w, err := live(p, sim.of(p), sim.spool)
		if err != nil {
			t.Fatal(err)
		}
		out = outcome{w.failed, w.story, w.steps.Load(), w.counts, w.lasted}
	})
	return out
}

// TestHistories lives histories, each decided by its seed: whatever happens to a
// cluster and around it, nothing is lost, nothing is done twice, lanes are serial,
// slots run once, what is due runs in time, and what people are told is true.
func TestHistories(t *testing.T) {
	sim := newPlaces(t)
	if *oneSeed >= 0 {
		if *loud {
			logTo = os.Stderr
		}
		p := newPlan(uint64(*oneSeed))
		out := liveOnce(t, p, sim)
		_, _ = fmt.Fprintf(os.Stdout, "%s%s\n%d steps of the database in %v\n", p, strings.Join(out.story, "\n"), out.steps, out.took)
		if len(out.failed) > 0 {
			report(t, p, out, sim)
		}
		return
	}
	begin := time.Now()
	n, steps, lived := 0, int64(0), time.Duration(0)
	costs := map[string]*cost{}
	counts := map[string]int{}
	for seed := *from; *seeds > 0 && n < *seeds || *seeds == 0 && time.Since(begin) < *budget; seed++ {
		p := newPlan(seed)
		if *kind != "" && !p.has(*kind) {
			continue
		}
		before := processorTime()
		out := liveOnce(t, p, sim)
		used := processorTime() - before
		for _, of := range []string{"all", strings.Join(p.kinds, ", "), p.place()} {
			if costs[of] == nil {
				costs[of] = &cost{}
			}
			costs[of].n++
			costs[of].steps += out.steps
			costs[of].used += used
		}
		n++
		steps += out.steps
		lived += out.took
		for what, k := range out.counts {
			counts[what] += k
		}
		if len(out.failed) > 0 && *goOn {
			t.Errorf("seed %d: %s", seed, out.failed[0])
			continue
		}
		if len(out.failed) > 0 {
			t.Logf("found by history %d, after %v of a processor", n, processorTime().Round(10*time.Millisecond))
			report(t, p, out, sim)
			return
		}
	}
	t.Logf("%d histories of %v in %v, %d exchanges with the database, faults %v", n, lived.Round(time.Second), time.Since(begin).Round(time.Millisecond), steps, counts)
	for _, of := range slices.Sorted(maps.Keys(costs)) {
		c := costs[of]
		t.Logf("%s: %d, %.0f and %.0f exchanges for each second of a processor", of, c.n, float64(c.n)/c.used.Seconds(), float64(c.steps)/c.used.Seconds())
	}
}

// A seed is a history. What remains of chance is the runtime's, which draws the
// order of timers of one instant, so not every one happens again as it did.
func TestMostSeedsRepeatThemselves(t *testing.T) {
	sim := newPlaces(t)
	const n = 20
	same := 0
	for seed := uint64(1); seed <= n; seed++ {
		if slices.Equal(liveOnce(t, newPlan(seed), sim).story, liveOnce(t, newPlan(seed), sim).story) {
			same++
		}
	}
	if same < n/2 {
		t.Errorf("of %d histories %d happened again as they did", n, same)
	}
}

// report shortens a history that fails and tells it.
func report(t *testing.T, p *plan, out outcome, sim *places) {
	t.Helper()
	shortest, told := p, out
	for again := !*long; again; {
		again = false
		for i := range shortest.steps {
			less := *shortest
			less.steps = slices.Delete(slices.Clone(shortest.steps), i, i+1)
			if i < len(less.steps) {
				less.steps[i].after += shortest.steps[i].after
			}
			if o := liveOnce(t, &less, sim); len(o.failed) > 0 {
				shortest, told, again = &less, o, true
				break
			}
		}
	}
	t.Errorf("%s\n%s\n%s\nrun it again: go test ./internal/simulate -run TestHistories -seed %d", told.failed[0], shortest, strings.Join(told.story, "\n"), p.seed)
}

// pass lets simulated time go by.
func pass(d time.Duration) { time.Sleep(d) }

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
