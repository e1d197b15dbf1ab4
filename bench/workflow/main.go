// Command workflow measures workflows on SQLite and PostgreSQL with full
// durability, beside the two raw limits of the same run: how often the disk
// commits, and how many phases the sandbox runs; and on PostgreSQL beside peers,
// which it builds from modules of their own and starts as processes.
//
// usage: go run ./workflow [-quick] [-runs | -peers] [-pg URL] [-only SQLite|PostgreSQL] [-dir DIR] [-out FILE]
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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/script"
)

// sizes are how much is measured.
type sizes struct {
	events, lanes, perLane, samples, idle, pending, pendingRuns int
	raw                                                         time.Duration
	runsOnly                                                    bool
	profile                                                     string // of the runs
}

func main() {
	script.WorkerMain()
	quick := flag.Bool("quick", false, "a tenth of all sizes, to see that everything works")
	pg := flag.String("pg", os.Getenv("PAWL_TEST_POSTGRES"), "`URL` of a PostgreSQL server with the right to create databases")
	only := flag.String("only", "", "measure only `SQLite` or PostgreSQL")
	dir := flag.String("dir", "", "keep the databases below this `directory`, which should be on a real disk")
	out := flag.String("out", "", "also write the report to this `file`")
	runs := flag.Bool("runs", false, "measure only runs per second and what they cost")
	peers := flag.Bool("peers", false, "measure only Pawl beside its peers, on PostgreSQL")
	profile := flag.String("cpuprofile", "", "write a profile of this process to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := sizes{events: 2000, lanes: 1000, perLane: 2, samples: 300, idle: 10_000, pending: 100_000, pendingRuns: 200, raw: 3 * time.Second}
	beside := peerSizes{rounds: 3, one: 600, many: 1000, warmUp: 300, limit: 5 * time.Minute}
	if *quick {
		s = sizes{events: 200, lanes: 100, perLane: 2, samples: 50, idle: 1000, pending: 10_000, pendingRuns: 50, raw: time.Second}
		beside = peerSizes{rounds: 1, one: 60, many: 100, warmUp: 30, limit: 2 * time.Minute}
	}
	if *peers && (*runs || *only == "SQLite" || *pg == "") {
		fail(errors.New("peers are measured on PostgreSQL, and not with -runs"))
	}
	s.runsOnly = *runs
	s.profile = *profile
	var report strings.Builder
	fmt.Fprintf(&report, "# Workflows beside the raw limits\n\nWritten by `make bench-workflow` on %s: %d cores, %s/%s, %s. Full durability.\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, db := range []struct{ name, url string }{{"SQLite", ""}, {"PostgreSQL", *pg}} {
		if db.name == "PostgreSQL" && db.url == "" || *only != "" && *only != db.name || *peers {
			continue
		}
		if err := measure(ctx, &report, db.name, db.url, *dir, s); err != nil {
			fail(err)
		}
	}
	var failed error
	switch {
	case *runs || *only == "SQLite":
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

// startProfile begins a profile of the processor.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { pprof.StopCPUProfile(); _ = f.Close() }), nil
}

// measure takes all measurements on one database.
func measure(ctx context.Context, report *strings.Builder, name, pg, dir string, s sizes) error {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, name+": "+format+"\n", args...) }
	say("raw limits")
	commits, phases, err := rawLimits(ctx, pg, dir, s.raw)
	if err != nil {
		return err
	}
	fmt.Fprintf(report, "\n## %s\n\n| | |\n|---|--:|\n", name)
	line := func(what, value string, args ...any) {
		fmt.Fprintf(report, "| %s | %s |\n", what, fmt.Sprintf(value, args...))
	}
	line("small commits per second, 8 lanes at once", "%.0f", commits)
	line("phases of the sandbox per second", "%.0f", phases)
	limit := min(commits/commitsPerRun, phases/phasesPerRun)
	line("tighter limit of runs per second (three durable commits, three phases a run)", "%.0f", limit)
	stop, err := startProfile(s.profile)
	if err != nil {
		return err
	}
	defer stop()
	for _, shape := range []struct {
		what       string
		lanes, per int
	}{{"one workflow", 1, s.events}, {fmt.Sprintf("%d workflows", s.lanes), s.lanes, s.perLane}} {
		say("runs, %s", shape.what)
		rate, cost, err := drainRuns(ctx, pg, dir, shape.lanes, shape.per)
		if err != nil {
			return err
		}
		line("runs per second, "+shape.what+" (share of the limit)", "%.0f (%.2f)", rate, rate/limit)
		line("processor time of such a run", "%s", cost)
	}
	stop()
	if s.runsOnly {
		return nil
	}
	say("publish to prepare")
	p50, p99, err := publishToPrepare(ctx, pg, dir, s.samples)
	if err != nil {
		return err
	}
	line("publish to prepare when idle, p50 / p99", "%.2f / %.2f ms", ms(p50), ms(p99))
	say("pending events")
	few, many, err := pendingCost(ctx, pg, dir, s.pendingRuns, s.pending)
	if err != nil {
		return err
	}
	line(fmt.Sprintf("a run beside %d pending events of its topic, against beside 100", s.pending), "%.2f ms / %.2f ms (%.2fx)", ms(many), ms(few), float64(many)/float64(few))
	say("idle workflows")
	memory, cpu, err := idleCost(ctx, pg, dir, s.idle)
	if err != nil {
		return err
	}
	line(fmt.Sprintf("memory of the process with %d idle workflows", s.idle), "%.0f MB", float64(memory)/1e6)
	line("processor time in 10 s of that", "%.0f ms", ms(cpu))
	if name == "SQLite" {
		cold, warm, err := coldPhase(ctx)
		if err != nil {
			return err
		}
		line("first phase of a script in a new worker / the next ones, p50", "%.1f / %.2f ms", ms(cold), ms(warm))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
