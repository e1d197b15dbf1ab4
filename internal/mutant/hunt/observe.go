package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/mutant"
)

// groupSize is how many tests share a process, and so a prepared database, on
// PostgreSQL.
const groupSize = 8

// withoutPostgres is the environment in which tests leave PostgreSQL out.
const withoutPostgres = "PAWL_TEST_POSTGRES=none"

// group is tests that run in one process: one test on SQLite, several on
// PostgreSQL.
type group struct {
	of       *program
	tests    []string
	postgres bool
	took     time.Duration
	reaches  map[int]bool
	leftOut  bool // some of it was skipped, as what needs PostgreSQL is
}

// observe runs each test alone, without PostgreSQL, and notes what it reaches.
// Tests that fail by themselves are left out, and named.
func (h *hunt) observe(ctx context.Context) error {
	chosen, err := regexp.Compile(h.tests)
	if err != nil {
		return fmt.Errorf("-tests: %w", err)
	}
	var all []*group
	for _, p := range h.programs {
		list := exec.CommandContext(ctx, p.file, "-test.list", ".")
		list.Dir = p.folder
		names, err := list.Output()
		if err != nil {
			return commandError("list the tests of "+p.path, err)
		}
		for name := range strings.Lines(string(names)) {
			if name = strings.TrimSpace(name); (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")) && chosen.MatchString(name) {
				all = append(all, &group{of: p, tests: []string{name}})
			}
		}
	}
	h.watch(ctx, all)
	return ctx.Err()
}

// observePostgres runs what was skipped on PostgreSQL, in groups.
func (h *hunt) observePostgres(ctx context.Context, of []*program) {
	var all []*group
	for _, p := range of {
		var names []string
		for _, one := range p.groups {
			if one.leftOut {
				names = append(names, one.tests...)
			}
		}
		for some := range slices.Chunk(names, groupSize) {
			all = append(all, &group{of: p, tests: some, postgres: true})
		}
	}
	h.watch(ctx, all)
}

// watch runs groups without a fault and adds those that pass to their programs,
// the quickest first.
func (h *hunt) watch(ctx context.Context, all []*group) {
	var mu sync.Mutex // guards the programs
	each(h.workers, len(all), func(i int) {
		one := all[i]
		trace, err := os.CreateTemp(h.scratch, "trace-")
		if err != nil {
			return
		}
		_ = trace.Close()
		begun := time.Now()
		end := one.run(ctx, one.tests, 10*time.Minute, mutant.EnvTrace+"="+trace.Name())
		one.took, one.leftOut, one.reaches = time.Since(begun), end.leftOut, readTrace(trace.Name())
		mu.Lock()
		defer mu.Unlock()
		if end.passed {
			one.of.groups = append(one.of.groups, one)
		} else {
			one.of.broken = append(one.of.broken, fmt.Sprintf("%s: %s", filepath.Base(one.of.folder), strings.Join(one.tests, ", ")))
		}
	})
	for _, p := range h.programs {
		slices.SortStableFunc(p.groups, func(a, b *group) int { return cmp.Compare(a.took, b.took) })
	}
}

func readTrace(name string) map[int]bool {
	text, _ := os.ReadFile(name)
	reached := map[int]bool{}
	for line := range strings.Lines(string(text)) {
		if id, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			reached[id] = true
		}
	}
	return reached
}

// memory is how much address space tests may take, in KiB: a fault may make a
// loop without end, and this machine has others to serve.
const memory = 16 << 20

// run runs some tests of a group.
func (g *group) run(ctx context.Context, tests []string, limit time.Duration, env string) (end ending) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v `+strconv.Itoa(memory)+`; exec "$@"`, "tests",
		g.of.file, "-test.v", "-test.failfast", "-test.timeout", limit.String(), "-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.Dir, cmd.Env = g.of.folder, append(os.Environ(), env)
	if !g.postgres {
		cmd.Env = append(cmd.Env, withoutPostgres)
	}
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = &end, &end
	end.passed = cmd.Run() == nil
	return end
}

// each calls do for 0 to n-1, some at the same time.
func each(workers, n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range max(workers, 1) {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
