package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is a history before it is lived. What a step does in detail is decided by
// chances of its own, so that leaving out another one changes nothing about it.
type plan struct {
	seed   uint64
	shared bool // nodes share a database, else they follow each other on a file
	nodes  int
	kinds  []string      // that have a lane
	calm   bool          // no step is a fault
	bare   bool          // the source makes its table, else it is there
	judged bool          // something is expected of the source
	cursor bool          // the source asks for what is new only
	parts  bool          // the consumer of orders has partitions
	drain  time.Duration // how long jobs may go on when a process stops; zero: as always
	steps  []step
}

// step is one thing that happens.
type step struct {
	after  time.Duration // since the step before
	what   string
	chance uint64
}

func (p *plan) has(kind string) bool { return slices.Contains(p.kinds, kind) }

func (p *plan) place() string {
	if p.shared {
		return fmt.Sprintf("a database of %d", p.nodes)
	}
	return "a file"
}

func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s on %s\n", p.seed, strings.Join(p.kinds, ", "), p.place())
	for _, s := range p.steps {
		fmt.Fprintf(&b, "  %8s later: %s\n", s.after, s.what)
	}
	return b.String()
}

// The steps, as often as they are likely.
var (
	faults       = []string{"crash", "crash", "crash", "crash", "stop", "stop", "refuse", "full disk", "slow disk", "clock"} // a file that refuses is one that cannot be opened
	sharedFaults = []string{"lose answers", "lose answers", "freeze", "freeze", "freeze", "stall", "stall", "hang", "outage", "standstill", "mute", "mute", "cut link"}
	stepsOf      = map[string][]string{
		"jobs": {"enqueue", "enqueue", "enqueue", "enqueue many", "enqueue later", "enqueue with key", "enqueue with key", "enqueue with key", "enqueue at the end", "enqueue at the end", "cancel job"},
		"workflow": {
			"publish", "publish", "publish", "publish", "publish again", "trouble", "trouble", "trouble", "bad read", "say", "say", "say", "skip", "pause", "resume", "resume",
			"deploy", "run now", "revoke rule",
		},
		"source":   {"items", "items", "items", "bad upstream", "bad upstream", "fetch now", "pause source", "resume source", "edit source", "delete source"},
		"hook":     {"deliver", "deliver", "deliver", "deliver again", "deliver again", "refuse effects", "refuse effects", "deliver once more", "edit hook"},
		"worker":   {"wish", "wish", "wish", "hand", "hand", "hand", "hand", "withdraw", "change task"},
		"schedule": {"graph", "graph", "graph", "answer", "edit schedule", "switch schedule", "fire", "revoke grant", "revoke grant", "cancel run", "delete schedule", "night", "night"},
	}
	everywhere = []string{"halt", "halt", "lift", "lift", "retention", "retention"}
	// What wants to begin although everything is halted.
	wishes = map[string][]string{
		"jobs": {"enqueue"}, "workflow": {"publish", "run now", "run now"}, "source": {"fetch now"}, "worker": {"wish", "hand"}, "hook": {"deliver"}, "schedule": {"fire"},
	}
	gaps = []time.Duration{0, 3 * time.Millisecond, 40 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 8 * time.Second, 14 * time.Second}
)

// kindSets are which kinds have lanes: mostly one, because what goes wrong
// between two of them needs fewer histories than what goes wrong in one.
var kindSets = [][]string{
	{"jobs"}, {"jobs"}, {"workflow"}, {"workflow"}, {"workflow"}, {"source"}, {"schedule"}, {"jobs", "workflow"}, {"source", "workflow"}, {"jobs", "workflow", "source", "schedule"},
	{"worker"}, {"worker"}, {"jobs", "worker"}, {"hook"}, {"hook", "workflow"},
}

// lengths are how many steps histories have, as often as they are likely: most bugs
// need few, and some need many.
var lengths = []int{1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 8, 12, 20}

// narrow are the kinds of short histories. What is cheap to live is lived more often.
var narrow = [][]string{
	{"jobs"}, {"jobs"}, {"jobs"}, {"jobs"}, {"worker"}, {"worker"}, {"worker"}, {"workflow"}, {"workflow"}, {"workflow"}, {"source"}, {"source"}, {"schedule"}, {"schedule"}, {"hook"},
}

// newPlan draws a history.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plan{seed: seed, shared: r.IntN(5) < 3, nodes: 1, calm: r.IntN(12) == 0}
	n := pick(r, lengths)
	if p.kinds = pick(r, narrow); n > 3 && r.IntN(3) > 0 {
		p.kinds = pick(r, kindSets)
	}
	if *even {
		n, p.kinds = pick(r, []int{2, 3, 4, 5, 6, 8, 12}), pick(r, kindSets)
	}
	if p.shared {
		p.nodes = pick(r, []int{1, 2, 2, 3})
	}
	p.bare, p.judged = p.has("source") && seed%6 == 0, p.has("source") && seed%3 == 1
	p.drain = []time.Duration{0, 300 * time.Millisecond, 300 * time.Millisecond}[seed%3]
	p.cursor = p.has("source") && seed%2 == 1
	p.parts = p.has("workflow") && !p.has("source") && !p.has("hook") && seed%3 == 2 // the rows of a source have no partition
	halted := false
	for range n {
		what := ""
		switch fault := !p.calm && r.IntN(5) < 2; {
		case fault && p.shared && r.IntN(2) == 0:
			what = pick(r, sharedFaults)
		case fault:
			what = pick(r, faults)
		case r.IntN(10) == 0:
			what = pick(r, everywhere)
		default:
			what = pick(r, stepsOf[pick(r, p.kinds)])
		}
		gap := pick(r, gaps)
		if halted { // for long enough that everybody has heard of it
			gap += pick(r, []time.Duration{0, 3 * time.Second, 9 * time.Second, 15 * time.Second})
		}
		if halted && r.IntN(2) == 0 {
			what = pick(r, wishes[pick(r, p.kinds)])
		}
		halted = what == "halt" || halted && what != "lift"
		p.steps = append(p.steps, step{after: gap + time.Duration(r.Int64N(int64(gap/2)+1000))*1, what: what, chance: r.Uint64()})
	}
	return p
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// dice draws by name: the same seed and the same words are the same number,
// whatever else was drawn.
func dice(seed uint64, words string, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed^hashOf(words), n))
}

func hashOf(words string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(words) {
		h = (h ^ uint64(words[i])) * 1099511628211
	}
	return h
}
