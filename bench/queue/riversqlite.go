package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// riverSQLiteContenders is River on SQLite: a program in a module of its own,
// built when it is needed.
func riverSQLiteContenders() []contender {
	return []contender{{
		name: "river-sqlite", title: "River on SQLite", store: onSQLite,
		about:   "500 workers, fetch cooldown 1 ms, poll every 10 ms; one connection, WAL, synchronous=FULL",
		noLanes: "2,000 queues on one connection only wait for each other",
		prepare: buildRiverSQLite,
	}}
}

func buildRiverSQLite(ctx context.Context, bench benchDir) ([]string, error) {
	program := filepath.Join(bench.scratch, "riversqlite")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(bench.root, "riversqlite")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build River on SQLite: %w: %s", err, out)
	}
	return []string{program}, nil
}
