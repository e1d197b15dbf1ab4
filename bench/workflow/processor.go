package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
)

// processor is the processor time of everybody who takes part.
type processor struct {
	server, workers, postgres time.Duration
}

func (p processor) minus(o processor) processor {
	return processor{p.server - o.server, p.workers - o.workers, p.postgres - o.postgres}
}

// per says what one of n costs.
func (p processor) per(n int) string {
	each := func(d time.Duration) float64 { return ms(d) / float64(n) }
	text := fmt.Sprintf("server %.2f + workers %.2f", each(p.server), each(p.workers))
	if p.postgres > 0 {
		text += fmt.Sprintf(" + PostgreSQL %.2f", each(p.postgres))
	}
	return text + " ms"
}

// processorUse sums up what processes have used until now, those of the given
// PostgreSQL server and those that this one started.
func processorUse(postmaster int) processor {
	var sum processor
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		parent, used, ended := measure.ReadStat(e.Name())
		switch {
		case e.Name() == strconv.Itoa(os.Getpid()):
			sum.server += used
			sum.workers += ended
		case parent == os.Getpid():
			sum.workers += used
		case postmaster > 0 && (parent == postmaster || e.Name() == strconv.Itoa(postmaster)):
			sum.postgres += used
		}
	}
	return sum
}
