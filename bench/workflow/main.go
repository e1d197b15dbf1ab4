// Command workflow measures workflows on SQLite and PostgreSQL with full
// durability, beside the two raw limits of the same run: how often the disk
// commits, and how many phases the sandbox runs; and on PostgreSQL beside peers,
// which it builds from modules of their own and starts as processes.
//
// usage: go run ./workflow [-quick] [-parts limits,runs,latency,pending,idle,cold,peers] [-parts prune [-rows N] [-prune-time DURATION]] [-pg URL] [-only SQLite|PostgreSQL] [-dir DIR] [-out FILE]
//
// Without -pg (or PAWL_TEST_POSTGRES) only SQLite is measured, and no peer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/script"
)

// allParts are measured unless others are named; prune is measured by itself.
var allParts = []string{"limits", "runs", "latency", "pending", "idle", "cold", "peers"} //nolint:gochecknoglobals // a table

// sizes are how much is measured.
type sizes struct {
	events, lanes, perLane, samples, idle, pending, pendingRuns int
	raw                                                         time.Duration
	rows                                                        int // of history that is pruned
	pruneTime                                                   time.Duration
	parts                                                       map[string]bool
	profile, heap                                               string // of the runs, and of idle workflows
}

func main() {
	script.WorkerMain()
	quick := flag.Bool("quick", false, "a tenth of all sizes, to see that everything works")
	pg := flag.String("pg", os.Getenv("PAWL_TEST_POSTGRES"), "`URL` of a PostgreSQL server with the right to create databases")
	only := flag.String("only", "", "measure only `SQLite` or PostgreSQL")
	dir := flag.String("dir", "", "keep the databases below this `directory`, which should be on a real disk")
	out := flag.String("out", "", "also write the report to this `file`")
	parts := flag.String("parts", strings.Join(allParts, ","), "measure only these `parts`")
	rows := flag.Int("rows", 1_000_000, "so `many` rows of history are pruned")
	pruneTime := flag.Duration("prune-time", 2*time.Minute, "measure each way of pruning for this `time` at most")
	profile := flag.String("cpuprofile", "", "write profiles of this process during the runs to this `file`, with the number of workflows at its end")
	heap := flag.String("memprofile", "", "write a profile of the memory that idle workflows use to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := sizes{events: 2000, lanes: 1000, perLane: 2, samples: 300, idle: 10_000, pending: 100_000, pendingRuns: 200, raw: 3 * time.Second}
	beside := peerSizes{rounds: 3, one: 600, many: 1000, warmUp: 300, limit: 5 * time.Minute}
	if *quick {
		s = sizes{events: 200, lanes: 100, perLane: 2, samples: 50, idle: 1000, pending: 10_000, pendingRuns: 50, raw: time.Second}
		beside = peerSizes{rounds: 1, one: 60, many: 100, warmUp: 30, limit: 2 * time.Minute}
	}
	s.parts = map[string]bool{}
	for part := range strings.SplitSeq(*parts, ",") {
		if !slices.Contains(allParts, part) && part != "prune" {
			fail(fmt.Errorf("there is no part %q; there are %s, and prune", part, strings.Join(allParts, ", ")))
		}
		s.parts[part] = true
	}
	s.profile, s.heap, s.rows, s.pruneTime = *profile, *heap, *rows, *pruneTime
	title, target := "Workflows beside the raw limits", "bench-workflow"
	if *parts == "prune" {
		title, target = "Runs while history is pruned", "bench-prune"
	}
	var report strings.Builder
	fmt.Fprintf(&report, "# %s\n\nWritten by `make %s` on %s: %d cores, %s/%s, %s. Full durability.\n",
		title, target, time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, db := range []struct{ name, url string }{{"SQLite", ""}, {"PostgreSQL", *pg}} {
		if db.name == "PostgreSQL" && db.url == "" || *only != "" && *only != db.name || *parts == "peers" {
			continue
		}
		if err := measureAll(ctx, &report, db.name, db.url, *dir, s); err != nil {
			fail(err)
		}
	}
	var failed error
	switch {
	case !s.parts["peers"] || *only == "SQLite":
	case *pg == "":
		report.WriteString("\n## Beside peers, PostgreSQL\n\nNot measured: there was no PostgreSQL.\n")
	default:
		failed = measurePeers(ctx, &report, *pg, *dir, beside)
	}
	if ctx.Err() != nil {
		fail(errors.New("interrupted"))
	}
	fmt.Print(report.String())
	if *out != "" { // a peer that failed is said to have failed
		if err := os.WriteFile(*out, []byte(report.String()), 0o644); err != nil {
			fail(err)
		}
	}
	if failed != nil {
		fail(fmt.Errorf("not everything could be measured: %w", failed))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// startProfile begins a profile of the processor, for so many lanes.
func startProfile(file string, lanes int) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(fmt.Sprintf("%s.%d", file, lanes))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { pprof.StopCPUProfile(); _ = f.Close() }), nil
}

// table is what was measured on one database.
type table struct {
	*strings.Builder
	name string
}

func (t table) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, t.name+": "+format+"\n", args...)
}

func (t table) line(what, value string, args ...any) {
	fmt.Fprintf(t, "| %s | %s |\n", what, fmt.Sprintf(value, args...))
}

// measureAll takes the measurements on one database.
func measureAll(ctx context.Context, report *strings.Builder, name, pg, dir string, s sizes) error {
	t := table{report, name}
	fmt.Fprintf(t, "\n## %s\n\n| | |\n|---|--:|\n", name)
	var most limits
	if s.parts["limits"] {
		t.say("raw limits")
		var err error
		if most, err = rawLimits(ctx, pg, dir, s.raw); err != nil {
			return err
		}
		t.line("small commits per second, 8 lanes at once", "%.0f", most.commits)
		t.line("phases of the sandbox per second", "%.0f", most.phases)
		t.line("tighter limit of runs per second (three durable commits, three phases a run)", "%.0f", most.both())
		t.line("limit of one lane, runs per second (the same phases and commits, one after the other)", "%.0f", most.serial)
	}
	if s.parts["runs"] {
		if err := t.runs(ctx, pg, dir, s, most); err != nil {
			return err
		}
	}
	if s.parts["latency"] {
		t.say("publish to prepare")
		stages, err := publishToPrepare(ctx, pg, dir, s.samples)
		if err != nil {
			return err
		}
		for _, stage := range []struct {
			what string
			took []time.Duration
		}{
			{"publish to prepare when idle, p50 / p99", stages.all}, {"of that: the publish itself", stages.publish},
			{"of that: until a worker has the job", stages.claim}, {"of that: until prepare starts", stages.look},
		} {
			p50, p99 := quantiles(stage.took)
			t.line(stage.what, "%.2f / %.2f ms", ms(p50), ms(p99))
		}
	}
	if s.parts["pending"] {
		t.say("pending events")
		few, many, err := pendingCost(ctx, pg, dir, s.pendingRuns, s.pending)
		if err != nil {
			return err
		}
		t.line(fmt.Sprintf("a run beside %d pending events of its topic, against beside 100", s.pending), "%.2f ms / %.2f ms (%.2fx)", ms(many), ms(few), float64(many)/float64(few))
	}
	if s.parts["prune"] {
		if err := t.prunes(ctx, pg, dir, s.rows, s.pruneTime); err != nil {
			return err
		}
	}
	return t.rest(ctx, pg, dir, s)
}

// runs measures how many runs there are in a second, and what one costs.
func (t table) runs(ctx context.Context, pg, dir string, s sizes, most limits) error {
	for _, shape := range []struct {
		what       string
		lanes, per int
	}{{"one workflow", 1, s.events}, {fmt.Sprintf("%d workflows", s.lanes), s.lanes, s.perLane}} {
		t.say("runs, %s", shape.what)
		rate, cost, err := drainRuns(ctx, pg, dir, shape.lanes, shape.per, s.profile)
		if err != nil {
			return err
		}
		switch {
		case !s.parts["limits"]:
			t.line("runs per second, "+shape.what, "%.0f", rate)
		case shape.lanes == 1:
			t.line("runs per second, "+shape.what+" (share of the tighter limit, and of that of one lane)", "%.0f (%.2f, %.2f)", rate, rate/most.both(), rate/most.serial)
		default: // many lanes use what one leaves
			t.line("runs per second, "+shape.what+" (share of the tighter limit)", "%.0f (%.2f)", rate, rate/most.both())
		}
		t.line("processor time of such a run", "%s", cost)
	}
	return nil
}

// rest measures what is there when nothing happens.
func (t table) rest(ctx context.Context, pg, dir string, s sizes) error {
	if s.parts["idle"] {
		t.say("idle workflows")
		memory, cpu, err := idleCost(ctx, pg, dir, s.idle, s.heap)
		if err != nil {
			return err
		}
		t.line(fmt.Sprintf("memory of the process with %d idle workflows", s.idle), "%.0f MB", float64(memory)/1e6)
		t.line("processor time in 10 s of that", "%.0f ms", ms(cpu))
	}
	if s.parts["cold"] && pg == "" {
		cold, warm, err := coldPhase(ctx)
		if err != nil {
			return err
		}
		t.line("first phase of a script in a new worker / the next ones, p50", "%.1f / %.2f ms", ms(cold), ms(warm))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
