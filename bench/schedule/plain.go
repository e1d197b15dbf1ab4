package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/plain"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/moving"
	"github.com/pawlrun/pawl/internal/store"
)

// commandsOnly reports what the slots of commands cost beside those of graphs, how long a
// command takes from being asked for to its exec, and how long a crontab takes to move in.
func commandsOnly(ctx context.Context, r *measure.Report, p measure.Place, n int) error {
	r.Say("%d slots of graphs, then of commands", n)
	graph, err := slotCost(ctx, p, n, func(name, cron string) client.ScheduleRequest {
		return client.ScheduleRequest{Name: name, GraphID: "bench:noop", Input: json.RawMessage(`{}`), Cron: client.Cron(cron), Timezone: "UTC"}
	})
	if err != nil {
		return err
	}
	command, err := slotCost(ctx, p, n, func(name, cron string) client.ScheduleRequest {
		return client.ScheduleRequest{Name: name, Run: &client.PlainRun{Command: []string{"/bin/true"}}, Cron: client.Cron(cron), Timezone: "UTC"}
	})
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		cost
	}{{"graphs", graph}, {"commands", command}} {
		each := float64(n)
		r.Line(fmt.Sprintf("%d slots of %s of one instant: slots per second until the last was closed; processor time, statements of a slot", n, of.name), "%.0f; %.3f ms, %.1f",
			each/of.took.Seconds(), measure.MS(of.processor)/each, float64(of.statements)/each)
	}
	took, err := toExec(ctx, p, min(n, 1000))
	if err != nil {
		return err
	}
	r.Line(fmt.Sprintf("a command at 50 slots a second, from being asked for to its exec, %d slots, p50 / p99", len(took)), "%.1f / %.1f ms", measure.MS(measure.At(took, 0.5)), measure.MS(measure.At(took, 0.99)))
	return crontab(r)
}

// cost is what slots took together.
type cost struct {
	took, processor time.Duration
	statements      int64
}

// slotCost makes schedules on a database of their own, and measures their slots of one
// instant. Nothing is executed: it is the books that are compared.
func slotCost(ctx context.Context, p measure.Place, n int, ask func(name, cron string) client.ScheduleRequest) (c cost, err error) {
	h, err := open(ctx, p)
	if err != nil {
		return c, err
	}
	defer h.close()
	at := time.Now().UTC().Add(65*time.Second + time.Duration(n)*8*time.Millisecond).Truncate(time.Minute)
	if err := h.createAs(ctx, n, fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), ask); err != nil {
		return c, err
	}
	if time.Now().After(at) {
		return c, fmt.Errorf("making the schedules took longer than there was time")
	}
	time.Sleep(time.Until(at.Add(-time.Second)))
	said, used := h.statements.Load(), measure.ProcessorTime()
	if err := h.await(ctx, int64(n)); err != nil {
		return c, err
	}
	return cost{time.Since(at), measure.ProcessorTime() - used, h.statements.Load() - said}, nil
}

func (h *house) createAs(ctx context.Context, n int, cron string, ask func(name, cron string) client.ScheduleRequest) error {
	for from := 0; from < n; from += 100 {
		err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			for i := from; i < min(from+100, n); i++ {
				if _, err := h.graphs.Create(ctx, tx, h.owner, ask(fmt.Sprintf("s-%06d", i), cron), "bench"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("create schedules: %w", err)
		}
	}
	return nil
}

// toExec runs commands at a steady pace, each of which tells when it began.
func toExec(ctx context.Context, p measure.Place, n int) ([]time.Duration, error) {
	h, err := open(ctx, p)
	if err != nil {
		return nil, err
	}
	defer h.close()
	h.noop.commands = &stamped{Provider: plain.New(plain.Env{Getenv: os.Getenv})}
	err = h.createAs(ctx, n, "0 0 1 1 *", func(name, cron string) client.ScheduleRequest {
		return client.ScheduleRequest{Name: name, Run: &client.PlainRun{Command: []string{"/bin/date", "+%s%N"}}, Cron: client.Cron(cron), Timezone: "UTC"}
	})
	if err != nil {
		return nil, err
	}
	if _, err := h.paced(ctx, n, 20*time.Millisecond); err != nil {
		return nil, err
	}
	return h.noop.commands.took, nil
}

// stamped runs commands, and notes how long each took to its exec by the time that it
// writes.
type stamped struct {
	*plain.Provider
	mu   sync.Mutex
	took []time.Duration // guarded by mu
}

func (s *stamped) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	begun := time.Now()
	result, err := s.Provider.Run(ctx, r, emit)
	if err != nil {
		return result, err
	}
	var out client.PlainOutput
	if err := json.Unmarshal(result.Output, &out); err != nil {
		return result, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(out.Stdout), 10, 64)
	if err != nil {
		return result, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, time.Unix(0, ns).Sub(begun))
	return result, nil
}

// isCommand reports whether a graph is a command, and there is something to run it.
func (n *noop) isCommand(graphID string) bool { return n.commands != nil && graphID == work.Command }

// crontab reports how long ten thousand lines take to become definitions.
func crontab(r *measure.Report) error {
	const lines = 10_000
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "%d %d * * * /usr/bin/job --number %d\n", i%60, i%24, i)
	}
	begun := time.Now()
	got := moving.Crontab(text.String(), moving.Options{Now: begun, Zone: "Europe/Berlin"})
	if len(got.Schedules) != lines {
		return fmt.Errorf("%d of %d lines became schedules", len(got.Schedules), lines)
	}
	r.Line(fmt.Sprintf("a crontab of %d lines to definitions", lines), "%.0f ms", measure.MS(time.Since(begun)))
	return nil
}
