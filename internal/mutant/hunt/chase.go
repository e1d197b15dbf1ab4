package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/mutant"
)

// quick is how long the tests of the first round take in all: most faults are
// noticed by a test that takes no time.
const quick = 3 * time.Second

type verdict int

const (
	unreached verdict = iota
	survived
	noticed
)

// words are how a verdict is told; what was noticed is not worth a line.
var words = map[verdict]string{survived: "not noticed", unreached: "not reached"} //nolint:gochecknoglobals // a constant table

// draw chooses the faults to try. What is drawn in a package depends on the seed
// and the package alone.
func (h *hunt) draw() {
	for _, p := range h.prey {
		rand.New(rand.NewPCG(h.seed, 0)).Shuffle(len(p.faults), func(i, j int) { p.faults[i], p.faults[j] = p.faults[j], p.faults[i] })
		p.faults = p.faults[min(max(h.skip, 0), len(p.faults)):]
		if h.sample > 0 && h.sample < len(p.faults) {
			p.faults = p.faults[:h.sample]
		}
	}
}

// chase meets every fault with the tests that reach it: without PostgreSQL
// first, and with it for those that are left.
func (h *hunt) chase(ctx context.Context) error {
	var mu sync.Mutex // guards out: what is found is told at once
	tell := func(p *prey, f *fault, where string) {
		if word := words[f.verdict]; word != "" && ctx.Err() == nil {
			mu.Lock()
			defer mu.Unlock()
			_, _ = fmt.Fprintf(h.out, "%s/%s:%d:%d: %s%s: %s\n", p.name, filepath.Base(f.place.Filename), f.place.Line, f.place.Column, word, where, f.what)
		}
	}
	h.round(ctx, false, func(p *prey, f *fault) {
		if h.verbose {
			tell(p, f, " without PostgreSQL")
		}
	})
	var left []*program
	for _, p := range h.prey {
		if slices.ContainsFunc(p.faults, func(f *fault) bool { return f.verdict != noticed }) {
			for _, one := range h.programs {
				if (p.held == nil || p.held == one) && !slices.Contains(left, one) {
					left = append(left, one)
				}
			}
		}
	}
	h.observePostgres(ctx, left)
	h.round(ctx, true, func(p *prey, f *fault) { tell(p, f, "") })
	return ctx.Err()
}

func (h *hunt) round(ctx context.Context, postgres bool, judged func(*prey, *fault)) {
	type chance struct {
		prey  *prey
		fault *fault
	}
	var all []chance
	for _, p := range h.prey {
		for _, f := range p.faults {
			if f.verdict != noticed {
				all = append(all, chance{p, f})
			}
		}
	}
	each(h.workers, len(all), func(i int) {
		one := all[i]
		one.fault.verdict = max(one.fault.verdict, h.try(ctx, one.prey, one.fault, postgres))
		judged(one.prey, one.fault)
	})
}

// try meets one fault with the tests that reach it, its package's own first.
func (h *hunt) try(ctx context.Context, p *prey, f *fault, postgres bool) verdict {
	found := unreached
	var spent time.Duration
	for _, own := range []bool{true, false} {
		var first, rest []*group
		for _, program := range h.programs {
			if (p.held == nil || program == p.held) != own {
				continue
			}
			for _, one := range program.groups {
				if one.postgres != postgres || !one.reaches[f.id] {
					continue
				}
				switch spent += one.took; {
				case spent <= quick || len(first) == 0:
					first = append(first, one)
				case h.spend == 0 || spent <= h.spend:
					rest = append(rest, one)
				}
			}
		}
		for _, some := range [][]*group{first, rest} {
			if len(some) > 0 {
				found = survived
			}
			if h.meet(ctx, f, some) {
				return noticed
			}
		}
	}
	return found
}

// meet reports whether one of the groups notices a fault. Those of one program
// run in one process.
func (h *hunt) meet(ctx context.Context, f *fault, groups []*group) bool {
	for _, p := range h.programs {
		var of *group
		var tests []string
		var usual time.Duration
		for _, one := range groups {
			if one.of == p {
				of, tests, usual = one, append(tests, one.tests...), usual+one.took
			}
		}
		if of == nil {
			continue
		}
		limit, env := 3*usual+h.limit, mutant.EnvActive+"="+strconv.Itoa(f.id)
		end := of.run(ctx, tests, limit, env)
		if !end.passed && !end.hung && end.failed != "" { // once more, lest a test that a busy machine disturbs takes the credit
			end = of.run(ctx, []string{end.failed}, limit, env)
		}
		if !end.passed {
			return true
		}
	}
	return false
}
