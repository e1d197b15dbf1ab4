package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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

// postmaster is the process of the PostgreSQL server, zero if it is not of this
// machine.
func postmaster(ctx context.Context, pg string) int {
	if pg == "" {
		return 0
	}
	c, err := pgx.Connect(ctx, pg)
	if err != nil {
		return 0
	}
	defer c.Close(ctx) //nolint:errcheck // nothing was written
	var backend int
	if err := c.QueryRow(ctx, `select pg_backend_pid()`).Scan(&backend); err != nil {
		return 0
	}
	parent, _, _ := readStat(strconv.Itoa(backend))
	return parent
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
		parent, used, ended := readStat(e.Name())
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

// readStat reads the parent of a process, its processor time, and that of its
// children that have ended; zero where there is no such process.
func readStat(pid string) (parent int, used, ended time.Duration) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name before it may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	const tick = 10 * time.Millisecond // of Linux, on every machine that it runs on
	sum := func(user, system string) time.Duration {
		u, _ := strconv.Atoi(user)
		s, _ := strconv.Atoi(system)
		return time.Duration(u+s) * tick
	}
	return parent, sum(fields[11], fields[12]), sum(fields[13], fields[14])
}
