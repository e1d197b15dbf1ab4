package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/bench/subject/peer"
)

// buildLimit is for one peer, from nothing: Temporal's server is large.
const buildLimit = 40 * time.Minute

// contender is Pawl or a peer. All run workflows of three durable steps that do
// nothing, on new and empty databases of the same PostgreSQL.
type contender struct {
	name   string
	about  string
	folder string // of its program, below bench; empty for Pawl itself

	program string // which was built
	version string
	rates   map[bool][]float64 // of its rounds; true: one by one
	failed  error
}

func contenders() []*contender {
	return []*contender{
		{name: "Pawl", about: "prepare, mutate with one call, and next, each in the sandbox"},
		{name: "DBOS Transact", folder: "dbos", about: "three steps in Go, in the process that starts the workflows"},
		{name: "Temporal", folder: "temporal", about: "three activities in Go; server and worker in one process, which keeps everything in PostgreSQL"},
	}
}

// peerSizes are how much is measured.
type peerSizes struct {
	rounds int
	one    int // workflows, one by one
	many   int // workflows, many at once
	warmUp int // workflows of the peers
	limit  time.Duration
}

// measurePeers measures Pawl and its peers in turns, and reports. A peer that
// fails is said to have failed, and is the error that is returned after that.
func measurePeers(ctx context.Context, report *strings.Builder, pg, dir string, s peerSizes) error {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "peers: "+format+"\n", args...) }
	scratch, err := os.MkdirTemp("", "pawl-bench-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the folder of temporary files
	all := contenders()
	for _, c := range all {
		if c.folder != "" {
			say("build %s; the first time takes some minutes", c.name)
			c.program, c.failed = build(ctx, c.folder, scratch)
		}
	}
	for _, oneByOne := range []bool{true, false} {
		for round := range s.rounds {
			for _, c := range all {
				if c.failed != nil || ctx.Err() != nil {
					continue
				}
				say("%s, one by one: %v, round %d", c.name, oneByOne, round+1)
				if err := c.measure(ctx, pg, dir, s, oneByOne); err != nil {
					c.failed = err
				}
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	peerTable(report, all, s)
	return failures(all)
}

// failures is an error if anybody failed.
func failures(all []*contender) error {
	var list []error
	for _, c := range all {
		if c.failed != nil {
			list = append(list, fmt.Errorf("%s: %w", c.name, c.failed))
		}
	}
	return errors.Join(list...)
}

// build builds the program of a peer, which is a module of its own.
func build(ctx context.Context, folder, scratch string) (program string, err error) {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	program = filepath.Join(scratch, folder)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	cmd.Dir = folder
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its compilers and cleans up
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, reason(string(out)))
	}
	return program, nil
}

// measure adds the rate of one round.
func (c *contender) measure(ctx context.Context, pg, dir string, s peerSizes, oneByOne bool) error {
	rate, err := c.rate(ctx, pg, dir, s, oneByOne)
	if err != nil {
		return err
	}
	if c.rates == nil {
		c.rates = map[bool][]float64{}
	}
	c.rates[oneByOne] = append(c.rates[oneByOne], rate)
	return nil
}

func (c *contender) rate(ctx context.Context, pg, dir string, s peerSizes, oneByOne bool) (rate float64, err error) {
	if c.folder == "" {
		lanes, per := s.many, 2 // and the event that wakes it
		if oneByOne {
			lanes, per = 1, s.one-1
		}
		rate, _, err = drainRuns(ctx, pg, dir, lanes, per, "")
		return rate, err
	}
	database, clean, err := scratch(ctx, pg, dir)
	if err != nil {
		return 0, err
	}
	defer clean()
	req := peer.Request{Database: database, Workflows: s.many, WarmUp: s.warmUp, OneByOne: oneByOne, Limit: s.limit}
	if oneByOne {
		req.Workflows = s.one
	}
	answer, err := peer.Ask(ctx, c.program, req)
	c.version = answer.Version
	return float64(req.Workflows) / answer.Seconds, err
}

// peerTable writes the rates, and how much faster Pawl is.
func peerTable(report *strings.Builder, all []*contender, s peerSizes) {
	fmt.Fprintf(report, "\n## Beside peers, PostgreSQL\n\n"+
		"Workflows of three durable steps that do nothing, per second; the median of %d rounds, each in a new database. "+
		"[What is unfair](README.md#workflows-beside-peers), and to whom.\n\n"+
		"| | one by one | Pawl is | %d workflows, many at once | Pawl is |\n|---|--:|--:|--:|--:|\n", s.rounds, s.many)
	for _, c := range all {
		fmt.Fprintf(report, "| %s |", strings.TrimSpace(c.name+" "+c.version))
		for _, oneByOne := range []bool{true, false} {
			rate, pawl := median(c.rates[oneByOne], s.rounds), median(all[0].rates[oneByOne], s.rounds)
			cell, ratio := "failed", ""
			if rate > 0 {
				cell = fmt.Sprintf("%.0f", rate)
			}
			if rate > 0 && pawl > 0 && c != all[0] {
				ratio = fmt.Sprintf("%.1fx", pawl/rate)
			}
			fmt.Fprintf(report, " %s | %s |", cell, ratio)
		}
		report.WriteString("\n")
	}
	report.WriteString("\n")
	for _, c := range all {
		fmt.Fprintf(report, "* %s: %s.\n", c.name, c.about)
		if c.failed != nil {
			fmt.Fprintf(report, "  **It failed:** %s\n", reason(c.failed.Error()))
		}
	}
}

// median is zero if not all rounds were measured.
func median(list []float64, rounds int) float64 {
	if len(list) < rounds {
		return 0
	}
	return slices.Sorted(slices.Values(list))[rounds/2]
}

// reason is the end of a long text, on one line: that is where the reason is.
func reason(text string) string {
	words := []rune(strings.Join(strings.Fields(text), " "))
	if over := len(words) - 500; over > 0 {
		return "... " + string(words[over:])
	}
	return string(words)
}
