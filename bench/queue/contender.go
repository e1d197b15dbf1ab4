package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"

	"github.com/pawlrun/pawl/bench/subject"
)

// store is the kind of database that a contender keeps its jobs in.
type store string

const (
	onPostgres store = "PostgreSQL"
	onSQLite   store = "SQLite"
)

// contender is one queue in one configuration.
type contender struct {
	name  string
	title string
	store store
	about string // its configuration, for the report
	pawl  bool   // the one that the others are measured against
	// noLanes says why the contender has no serial lanes; empty when it has.
	noLanes string

	// Exactly one of the two says how it runs: in this program, started again
	// with -serve, or as a program that prepare makes ready.
	inGo    func() subject.Subject
	prepare func(ctx context.Context, bench benchDir) (argv []string, err error)
}

// contenders lists all of them in the order of the report.
func contenders() []contender {
	return slices.Concat(pawlContenders(), workersContenders(), riverContenders(), graphileContenders(), pgbossContenders(), riverSQLiteContenders())
}

func contenderNamed(name string) (contender, error) {
	for _, c := range contenders() {
		if c.name == name {
			return c, nil
		}
	}
	return contender{}, fmt.Errorf("find subject: there is no %q", name)
}

// argv returns the command that runs the contender; one in Go writes a profile of its
// processor time to the file, if there is one.
func (c contender) argv(ctx context.Context, bench benchDir, profile string) ([]string, error) {
	if c.prepare != nil {
		return c.prepare(ctx, bench)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	argv := []string{self, "-serve", c.name}
	if profile != "" {
		argv = append(argv, "-cpuprofile", profile)
	}
	return argv, nil
}

// serve runs a contender in this process, for the program that started it.
func serve(ctx context.Context, name, profile string) error {
	c, err := contenderNamed(name)
	if err != nil {
		return err
	}
	if c.inGo == nil {
		return fmt.Errorf("serve %s: it is a program of its own", name)
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return fmt.Errorf("create profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("start profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	return subject.Serve(ctx, c.inGo(), os.Stdin, os.Stdout)
}
