// Command queue measures Pawl's queue beside its peers, in one run, on one
// PostgreSQL and one kind of SQLite file with full durability, and prints a
// table of ratios. A full run also writes bench/RESULTS.md, or
// with -workers, which measures workers over HTTP, bench/WORKERS.md.
//
// usage: go run ./queue [-quick] [-only SCENARIO/SUBJECT] [-pg URL] [-json FILE] [-dir DIR] [-workers [-waiting N]] [-rounds N] [-cpuprofile FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	quick bool
	only  string
	pg    string
	json  string
	dir   string
	serve string

	workers bool
	waiting int
	rounds  int
	profile string
}

// full reports whether the sizes are those that the titles name, and nobody is
// left out: only then is the file of results written.
func (o options) full() bool { return !o.quick && o.only == "" && o.waiting == 0 && o.rounds == 0 }

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "a tenth of all sizes, to see that everything works")
	flag.StringVar(&o.only, "only", "", "regular expressions `SCENARIO/SUBJECT`; either may be empty")
	flag.StringVar(&o.pg, "pg", "", "`URL` of a PostgreSQL server to use instead of a new one; it needs the right to create databases")
	flag.StringVar(&o.json, "json", "", "write the raw numbers to this `file`")
	flag.StringVar(&o.dir, "dir", "", "keep the databases below this `directory`, which should be on a real disk")
	flag.StringVar(&o.serve, "serve", "", "be the queue of that `name`, for the program that started this one")
	flag.BoolVar(&o.workers, "workers", false, "measure workers that are programs of their own, and write WORKERS.md")
	flag.IntVar(&o.waiting, "waiting", 0, "how many `jobs` wait in the crowded lane of -workers; 0 is a million, or 50,000 with -quick")
	flag.IntVar(&o.rounds, "rounds", 0, "how often a scenario is measured that is repeated at all; 0 is three times, or once with -quick")
	flag.StringVar(&o.profile, "cpuprofile", "", "let each queue in Go write a profile of its processor time to this `file`; the last one stays")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := start(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, o options) error {
	if o.serve != "" {
		return serve(ctx, o.serve, o.profile)
	}
	run, root, err := measureAll(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	text := run.markdown()
	fmt.Print(text)
	if o.json != "" {
		if err := run.writeJSON(o.json); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted; " + run.suite.file + " is as it was")
	}
	if o.full() { // a peer that failed is said to have failed
		if err := os.WriteFile(filepath.Join(root, run.suite.file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	if run.failed() {
		return errors.New("not everything could be measured; the report says what")
	}
	return nil
}

// measureAll starts what is needed, runs everything and takes it down again.
func measureAll(ctx context.Context, o options, progress io.Writer) (_ *report, root string, err error) {
	b := &bench{size: fullSizes(), progress: progress, suite: queueSuite()}
	if o.profile != "" {
		if b.profile, err = filepath.Abs(o.profile); err != nil {
			return nil, "", fmt.Errorf("read -cpuprofile: %w", err)
		}
	}
	if o.workers {
		b.suite = workersSuite()
	}
	if o.quick {
		b.size = quickSizes()
	}
	if o.waiting > 0 {
		b.size.Waiting = o.waiting
	}
	if o.rounds > 0 {
		b.size.Rounds = o.rounds
	}
	if b.only, err = parseFilter(o.only); err != nil {
		return nil, "", err
	}
	if b.dir.root, err = findRoot(); err != nil {
		return nil, "", err
	}
	if b.dir.scratch, err = os.MkdirTemp(o.dir, "pawl-bench-"); err != nil {
		return nil, "", fmt.Errorf("create directory: %w", err)
	}
	defer os.RemoveAll(b.dir.scratch)
	warnMemoryDisk(b.dir.scratch, progress)

	url := o.pg
	if url == "" {
		srv, err := startServer(ctx, o.dir)
		if err != nil {
			return nil, "", err
		}
		defer srv.stop()
		url = srv.url
	}
	if b.cluster, err = openCluster(ctx, url, o.pg != ""); err != nil {
		return nil, "", err
	}
	defer b.cluster.close(context.WithoutCancel(ctx))
	run := &report{Quick: o.quick, Waiting: o.waiting, suite: b.suite}
	if run.Facts, err = gatherFacts(ctx, b.cluster, time.Now()); err != nil {
		return nil, "", err
	}
	b.prepare(ctx)
	run.Results = b.run(ctx)
	run.Targets = judge(run)
	return run, b.dir.root, nil
}
