package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// facts says what the numbers were measured on, and nothing that would name
// the machine.
type facts struct {
	Cores      int    `json:"cores"`
	Memory     string `json:"memory,omitempty"`
	Platform   string `json:"platform"`
	PostgreSQL string `json:"postgresql"`
	Durability string `json:"durability"`
	Go         string `json:"go"`
	Node       string `json:"node,omitempty"`
	River      string `json:"river"`
	Date       string `json:"date"`
	Load       string `json:"load,omitempty"` // of the machine, before anything was started
}

func gatherFacts(ctx context.Context, c *cluster, now time.Time) (facts, error) {
	f := facts{
		Cores: runtime.NumCPU(), Memory: memory(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), River: moduleVersion("github.com/riverqueue/river"), Date: now.UTC().Format(time.DateOnly),
		Load: load(),
	}
	var err error
	if f.PostgreSQL, err = c.setting(ctx, "server_version"); err != nil {
		return f, fmt.Errorf("read PostgreSQL's version: %w", err)
	}
	f.PostgreSQL, _, _ = strings.Cut(f.PostgreSQL, " ") // without the packager's name
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		value, err := c.setting(ctx, name)
		if err != nil {
			return f, fmt.Errorf("read PostgreSQL's settings: %w", err)
		}
		if value == "off" {
			return f, fmt.Errorf("check PostgreSQL's settings: %s is off, and a commit must wait for the disk", name)
		}
		f.Durability = strings.TrimPrefix(f.Durability+", "+name+"="+value, ", ")
	}
	if out, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
		f.Node = strings.TrimSpace(string(out))
	}
	return f, nil
}

func (f facts) markdown(w *strings.Builder) {
	node := f.Node
	if node == "" {
		node = "none, so its queues were left out"
	}
	fmt.Fprintf(w, "Measured on %s: %d cores, %s, %s; PostgreSQL %s (%s); SQLite with WAL and synchronous=FULL; %s; "+
		"River %s; Node %s.\n\n", f.Date, f.Cores, f.Memory, f.Platform, f.PostgreSQL, f.Durability, f.Go, f.River, node)
	if f.Load != "" {
		fmt.Fprintf(w, "Load of the machine before it, over 1, 5 and 15 minutes: %s.\n\n", f.Load)
	}
}

// load reads how busy the machine is where the system tells it in a file.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return ""
	}
	return strings.Join(fields[:3], ", ")
}

// memory reads how much there is where the system tells it in a file.
func memory() string {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "memory unknown"
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return "memory unknown"
	}
	kib, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
}

func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "of unknown version"
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "of unknown version"
}
