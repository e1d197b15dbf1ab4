// Command hunt breaks the product in many small ways and tells which of them no
// test notices:
//
//	go run ./internal/mutant/hunt -seed 1 -sample 200 ./internal/queue ./internal/store
//
// Conditions are turned round and steps are left out, one at a time. All faults
// of all packages are planted at once, switched off, and the tests of each
// package are built once with them; a package without tests is held by those of
// the folder above. Each test is run alone to learn what it reaches; then each
// fault meets the tests that reach it: its package's own before those of the
// others, the quickest first, on SQLite. What all of them miss meets the tests
// that need PostgreSQL, in small groups, because preparing a database takes
// longer than most tests. They find it in PAWL_TEST_POSTGRES: make mutants.
//
// A fault and the test that is to notice it, in seconds:
//
//	go run ./internal/mutant/hunt -sample 0 -only claim.go:41 -tests TestClaim ./internal/queue
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
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
	sample   int
	skip     int
	seed     uint64
	limit    time.Duration
	spend    time.Duration
	workers  int
	only     string
	by       string
	tests    string
	verbose  bool
	packages []string
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "seed %d\n", o.seed); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "pawl-hunt-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	h := &hunt{options: o, scratch: scratch, out: out}
	if err := h.build(ctx); err != nil {
		return err
	}
	if err := h.observe(ctx); err != nil {
		return err
	}
	h.draw()
	if err := h.chase(ctx); err != nil {
		return err
	}
	return h.report()
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("hunt", flag.ContinueOnError)
	flags.IntVar(&o.sample, "sample", 100, "how many faults to try in each package; 0: all")
	flags.IntVar(&o.skip, "skip", 0, "leave out so many of those that are drawn first, to go on with an earlier hunt of the same seed")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "which faults are drawn")
	flags.DurationVar(&o.limit, "limit", 10*time.Second, "how long the tests of one fault may take, beyond three times their usual time")
	flags.DurationVar(&o.spend, "spend", 0, "leave out the slowest tests once those of a fault usually take longer than this together; 0: run all")
	flags.IntVar(&o.workers, "workers", 2, "how many faults are tried at the same time")
	flags.StringVar(&o.only, "only", "", "try these faults, by file or file:line, with commas between them")
	flags.StringVar(&o.by, "by", "", "the packages whose tests are run, with commas between them; empty: the package's own, or those of the folder above, and then those of the other packages")
	flags.StringVar(&o.tests, "tests", "", "run the tests that match this expression; empty: all")
	flags.BoolVar(&o.verbose, "v", false, "tell at once what no test notices without PostgreSQL")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.packages = flags.Args(); len(o.packages) == 0 {
		return o, fmt.Errorf("name a package: hunt ./internal/queue")
	}
	return o, nil
}

// wants reports whether -only asks for a place.
func (o options) wants(file string, line int) bool {
	if o.only == "" {
		return true
	}
	for one := range strings.SplitSeq(o.only, ",") {
		if one == file || one == fmt.Sprintf("%s:%d", file, line) {
			return true
		}
	}
	return false
}
