//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	_ "modernc.org/sqlite" // the driver of the copies
)

// sqlite is the part with one node on a file, which becomes one on PostgreSQL.
func (r *run) sqlite(ctx context.Context, lasts time.Duration) error {
	defer r.end()
	n, err := r.addNode("node", "sqlite:.pawl/pawl.db")
	if err != nil {
		return err
	}
	if err := r.startAll(ctx); err != nil {
		return err
	}
	if err := r.define(ctx, 3, 2, 6); err != nil {
		return err
	}
	working, rest := context.WithCancel(ctx)
	defer rest()
	wg := r.load(working, 100*time.Millisecond)
	if !pause(ctx, probeAhead+2*time.Second) {
		return nil
	}
	kinds := []fault{
		{name: "sqlite: kill and restart", bound: time.Second, whole: true, do: restarted},
		{name: "sqlite: kill and restart", bound: time.Second, whole: true, do: restarted},
		{name: "sqlite: full disk", whole: true, do: fullDisk},
		{name: "sqlite: backup", whole: true, do: backedUp},
		{name: "sqlite: stop and restart", whole: true, do: rolled},
	}
	r.storm(ctx, kinds, time.Now().Add(lasts))
	if ctx.Err() != nil {
		return nil
	}
	// It moves while everybody goes on asking, and nobody answers.
	end := r.open("kill")
	r.report.say("promote: %s", n.name)
	r.report.count("promote")
	if err := r.promote(ctx, n); err != nil {
		r.find("promote: %v", err)
		rest()
		wg.Wait()
		return nil
	}
	end()
	r.settle(ctx, "promote")
	pause(ctx, 5*time.Second)
	rest()
	wg.Wait()
	r.world.calmDown()
	r.judge(ctx)
	r.finish()
	return nil
}

// fullDisk bounds the files that the node may write, and lifts the bound.
func fullDisk(ctx context.Context, r *run, n *node, begun func()) error {
	pid := n.pid()
	begun()
	if err := limitFiles(pid, 64<<10); err != nil {
		return err
	}
	pause(ctx, time.Second+r.chance(4*time.Second))
	if err := limitFiles(pid, ^uint64(0)); err != nil {
		return err
	}
	return n.awaitReady(ctx)
}

func limitFiles(pid int, bytes uint64) error {
	limit := syscall.Rlimit{Cur: bytes, Max: ^uint64(0)}
	const fsize = 1                                                                                                                           // RLIMIT_FSIZE
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), fsize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 { //nolint:gosec // as prlimit wants it
		return fmt.Errorf("bound the files of a process: %w", errno)
	}
	return nil
}

// program runs a command of Pawl in the folder of a node.
func (r *run) program(ctx context.Context, n *node, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Dir = n.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// backedUp makes a copy under load. It is sound, and has every job that was
// acknowledged before it was asked for.
func backedUp(ctx context.Context, r *run, n *node, begun func()) error {
	ids := map[string]bool{}
	r.ledger.mu.Lock()
	for _, p := range r.ledger.promises {
		for _, id := range p.ids {
			ids[id] = true
		}
	}
	r.ledger.mu.Unlock()
	begun()
	target := filepath.Join(n.dir, fmt.Sprintf("copy-%d.db", time.Now().UnixNano()))
	if out, err := r.program(ctx, n, "backup", "--server", n.url, target); err != nil {
		return fmt.Errorf("backup: %w\n%s", err, out)
	}
	db, err := sql.Open("sqlite", "file:"+target+"?mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it was read
	var sound string
	if err := db.QueryRowContext(ctx, `pragma integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		return fmt.Errorf("the copy is %q (%w)", sound, err)
	}
	rows, err := db.QueryContext(ctx, `select cast(id as text) from jobs union select cast(id as text) from job_history`)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		delete(ids, id)
	}
	if len(ids) > 0 {
		return fmt.Errorf("%d jobs that were acknowledged before are not in the copy", len(ids))
	}
	return rows.Err()
}

// promote kills the node, moves its file to PostgreSQL, is killed in the middle
// of that some times, and starts the node there.
func (r *run) promote(ctx context.Context, n *node) error {
	if err := r.db.exec(ctx, `create database promoted`); err != nil {
		return err
	}
	db := &pair{servers: r.db.servers, primary: r.db.primary, name: "promoted"}
	target := db.url(db.name, db.servers[0].Host()+","+db.servers[1].Host())
	n.kill()
	for try := range 20 {
		bound, cancel := context.WithTimeout(ctx, time.Minute)
		if try < 3 { // killed sooner or later
			bound, cancel = context.WithTimeout(ctx, 100*time.Millisecond+r.chance(time.Second))
		}
		out, err := r.program(bound, n, "promote", "--to", target)
		killed := bound.Err() != nil
		cancel()
		if err == nil {
			break
		}
		if !killed {
			return fmt.Errorf("%w\n%s", err, strings.TrimSpace(out))
		}
	}
	r.db = db
	for i, a := range n.args {
		if a == "--database" {
			n.args[i+1] = target
		}
	}
	if err := n.start(); err != nil {
		return err
	}
	return n.awaitReady(ctx)
}
