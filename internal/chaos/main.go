//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	seconds int
	seed    uint64
	only    string
	sqlite  bool
	binary  string
	out     io.Writer
}

func main() {
	var o options
	flag.IntVar(&o.seconds, "seconds", 600, "how long faults happen")
	flag.Uint64Var(&o.seed, "seed", 0, "repeat the faults of this seed (0 draws one)")
	flag.StringVar(&o.only, "only", "", "these faults alone, separated by semicolons; no SQLite")
	flag.BoolVar(&o.sqlite, "sqlite", false, "the part on SQLite alone")
	flag.StringVar(&o.binary, "pawl", "", "the program (default: it is built)")
	flag.Parse()
	o.out = os.Stdout
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	clean, err := chaos(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if err != nil || !clean {
		os.Exit(1)
	}
}

// chaos runs everything and reports whether nothing was found.
func chaos(ctx context.Context, o options) (clean bool, err error) {
	if o.seed == 0 {
		o.seed = rand.Uint64() //nolint:gosec // chance
	}
	dir, err := os.MkdirTemp("", "pawl-chaos-")
	if err != nil {
		return false, err
	}
	rep := newReport(o.out)
	rep.printf("seed %d, %d s; logs in %s", o.seed, o.seconds, dir)
	defer func() {
		if clean && err == nil {
			_ = os.RemoveAll(dir)
		} else {
			rep.printf("again: go run ./internal/chaos -seconds %d -seed %d; logs: %s", o.seconds, o.seed, dir)
		}
	}()
	if o.binary == "" {
		o.binary = filepath.Join(dir, "pawl")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.binary, "github.com/pawlrun/pawl/cmd/pawl").CombinedOutput(); err != nil {
			return false, fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	kinds, err := choose(o.only)
	if err != nil {
		return false, err
	}
	db, err := newPair(ctx)
	if err != nil {
		return false, err
	}
	defer db.close()
	var ledgers []*ledger
	share := time.Duration(o.seconds) * time.Second
	if o.only == "" && !o.sqlite {
		share = share * 4 / 5
	}
	if !o.sqlite {
		r, err := newRun("trio", o, dir, rep, db)
		if err != nil {
			return false, err
		}
		ledgers = append(ledgers, r.ledger)
		if err := r.postgres(ctx, kinds, share); err != nil {
			return false, err
		}
	}
	if o.only == "" && ctx.Err() == nil {
		r, err := newRun("solo", o, dir, rep, db)
		if err != nil {
			return false, err
		}
		ledgers = append(ledgers, r.ledger)
		if !o.sqlite {
			share = time.Duration(o.seconds)*time.Second - share
		}
		if err := r.sqlite(ctx, share); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		rep.print(ledgers)
		return false, ctx.Err()
	}
	return rep.print(ledgers), nil
}

func choose(only string) ([]fault, error) {
	if only == "" {
		return faults(), nil
	}
	var kinds []fault
	for name := range strings.SplitSeq(only, ";") {
		found := false
		for _, f := range faults() {
			if f.name == strings.TrimSpace(name) {
				kinds, found = append(kinds, f), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
	}
	return kinds, nil
}

func newRun(name string, o options, dir string, rep *report, db *pair) (*run, error) {
	w, err := newWorld(o.seed)
	if err != nil {
		return nil, err
	}
	return &run{
		name: name, seed: o.seed, rng: newDice(o.seed), dir: filepath.Join(dir, name), binary: o.binary, db: db, world: w,
		ledger: newLedger(), report: rep, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}, nil
}

// postgres is the part with three nodes.
func (r *run) postgres(ctx context.Context, kinds []fault, lasts time.Duration) error {
	defer r.end()
	if err := r.cluster(ctx); err != nil {
		return err
	}
	if err := r.define(ctx, 6, 4, 24); err != nil {
		return err
	}
	working, rest := context.WithCancel(ctx)
	defer rest()
	wg := r.load(working, 100*time.Millisecond)
	// The first jobs of the probing lanes come due.
	pause(ctx, time.Second)
	if err := r.place(ctx); err != nil {
		return err
	}
	pause(ctx, probeAhead+2*time.Second)
	if !r.awaitLanes(ctx, settleWithin) {
		r.find("before any fault lanes are late: %v", r.lateLanes(lateAfter))
	}
	r.storm(ctx, kinds, time.Now().Add(lasts))
	rest()
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	r.world.calmDown()
	r.judge(ctx)
	r.finish()
	return nil
}

func (r *run) finish() {
	r.report.note("%s: the upstream was called for %s; it misbehaved: %v; why was answered %d times", r.name, r.world.summary(), r.world.behaved, r.whys.Load())
}

// end stops everything that this part started.
func (r *run) end() {
	for _, n := range r.nodes {
		n.kill()
		for _, p := range n.proxies {
			p.Close()
		}
		_ = n.log.Close()
	}
	_ = r.world.server.Close()
}
