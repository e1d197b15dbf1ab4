// Command hunt breaks the product in many small ways and tells which of them no
// test notices:
//
//	go run ./internal/mutant/hunt -sample 200 ./internal/queue ./internal/store
//
// Conditions are turned round and steps are left out, one at a time. A fault is
// held by a package's own tests, or by those of the folder above if it has none. The tests are built once, with all faults
// switched off; each test is run alone to learn what it reaches; then each
// fault meets the tests that reach it, the quickest first. Tests that need
// PostgreSQL find it in PAWL_TEST_POSTGRES, so run it beside one: make mutants.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(1)
	}
}

// options are what a hunt can be told.
type options struct {
	sample  int
	seed    uint64
	limit   time.Duration
	spend   time.Duration
	workers int
	only    string
	by      string
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var o options
	flags := flag.NewFlagSet("hunt", flag.ContinueOnError)
	flags.IntVar(&o.sample, "sample", 100, "how many faults to try in each package; 0: all")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "which faults are drawn")
	flags.DurationVar(&o.limit, "limit", time.Minute, "how long the tests of one fault may take, beyond three times their usual time")
	flags.DurationVar(&o.spend, "spend", 0, "leave out the slowest tests once those of a fault usually take longer than this together; 0: run all")
	flags.IntVar(&o.workers, "workers", 2, "how many faults are tried at the same time")
	flags.StringVar(&o.only, "only", "", "try the faults of one file")
	flags.StringVar(&o.by, "by", "", "the package whose tests are run; empty: the package's own, or those of the folder above")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("name a package: hunt ./internal/queue")
	}
	if _, err := fmt.Fprintf(out, "seed %d\n", o.seed); err != nil {
		return err
	}
	for _, name := range flags.Args() {
		if err := huntPackage(ctx, out, name, o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
