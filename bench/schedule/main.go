// Command schedule measures schedules on SQLite and PostgreSQL with full
// durability and an executor that does nothing: what many that wait cost, and
// how late slots start.
//
// usage: go run ./schedule [-quick] [-slots N] [-commands N] [-pg URL] [-only SQLite|PostgreSQL] [-dir DIR] [-out FILE] [-cpuprofile FILE]
//
// Without -pg (or PAWL_TEST_POSTGRES) only SQLite is measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
)

// sizes are how much is measured.
type sizes struct {
	enabled int           // schedules that are not due
	lost    int           // of them, those that the reconciler has to mend
	burst   int           // slots of one instant
	lead    time.Duration // from making their schedules to that instant, at least
	steady  int           // slots, 100 a second
	idle    time.Duration
}

const note = "Lateness is from the instant of a slot to the call of its executor. Every slot is a whole run: claimed, its grant checked, its cost " +
	"reserved, executed, settled and closed, with the next slot in place. All schedules belong to one person and one billing account."

func main() {
	slots := flag.Int("slots", 0, "measure only `N` slots of one instant and what they cost")
	commands := flag.Int("commands", 0, "measure only `N` slots of commands beside those of graphs, the start of commands and the import of crontabs")
	measure.Main("Schedules", "bench-schedule", func(ctx context.Context, r *measure.Report, p measure.Place, quick bool) error {
		if *slots > 0 {
			return slotsOnly(ctx, r, p, *slots)
		}
		if *commands > 0 {
			return commandsOnly(ctx, r, p, *commands)
		}
		return all(ctx, r, p, quick)
	}, note)
}

func all(ctx context.Context, r *measure.Report, p measure.Place, quick bool) error {
	s := sizes{enabled: 100_000, lost: 1000, burst: 10_000, lead: 2 * time.Minute, steady: 3000, idle: 10 * time.Second}
	if quick {
		s = sizes{enabled: 2000, lost: 100, burst: 300, lead: 5 * time.Second, steady: 300, idle: 2 * time.Second}
	}
	h, err := open(ctx, p)
	if err != nil {
		return err
	}
	defer h.close()
	for _, step := range []func(context.Context, *measure.Report, *house, sizes) error{waiting, startUp, reconciling, steady, burst} {
		if err := step(ctx, r, h, s); err != nil {
			return err
		}
	}
	return commandsOnly(ctx, r, p, s.burst)
}

// waiting reports what schedules cost that are not due.
func waiting(ctx context.Context, r *measure.Report, h *house, s sizes) error {
	r.Say("%d schedules that are not due", s.enabled)
	begun := time.Now()
	if err := h.create(ctx, "idle", "0 0 1 1 *", s.enabled); err != nil {
		return err
	}
	r.Line("making a schedule", "%.2f ms", measure.MS(time.Since(begun)/time.Duration(s.enabled)))
	return nil
}

// startUp reports how long a process needs until it works, and what it costs
// while nothing is due.
func startUp(ctx context.Context, r *measure.Report, h *house, s sizes) error {
	if err := h.shut(); err != nil {
		return err
	}
	r.Say("start beside %d schedules", s.enabled)
	begun := time.Now()
	if err := h.start(ctx); err != nil {
		return err
	}
	if err := h.probe(ctx); err != nil {
		return err
	}
	r.Line(fmt.Sprintf("start until the first job runs, %d enabled schedules", s.enabled), "%.0f ms", measure.MS(time.Since(begun)))
	time.Sleep(2 * time.Second)
	got, err := h.whileIdle(ctx, s.idle)
	if err != nil {
		return err
	}
	r.Line(fmt.Sprintf("memory of the process, %d enabled schedules", s.enabled), "%.0f MB", float64(got.memory)/1e6)
	r.Line(fmt.Sprintf("processor time in %s of idling", s.idle), "%.0f ms", measure.MS(got.processor))
	if h.place.Postgres != "" {
		r.Line(fmt.Sprintf("transactions in %s of idling", s.idle), "%d", got.transactions)
	}
	return nil
}

// reconciling reports what the reconciler costs.
func reconciling(ctx context.Context, r *measure.Report, h *house, s sizes) error {
	r.Say("reconciler")
	begun, used := time.Now(), measure.ProcessorTime()
	if n, err := h.graphs.Reconcile(ctx); err != nil || n != 0 {
		return fmt.Errorf("reconcile: %d were mended, %w", n, err)
	}
	r.Line(fmt.Sprintf("a look of the reconciler, %d enabled schedules, none of them ill", s.enabled), "%.1f ms (%.1f ms of the processor)",
		measure.MS(time.Since(begun)), measure.MS(measure.ProcessorTime()-used))
	if err := h.lose(ctx, s.lost); err != nil {
		return err
	}
	begun = time.Now()
	n, err := h.graphs.Reconcile(ctx)
	if err != nil || n != s.lost {
		return fmt.Errorf("reconcile: %d of %d were mended, %w", n, s.lost, err)
	}
	r.Line("mending a schedule that lost its slot and its job", "%.2f ms", measure.MS(time.Since(begun)/time.Duration(n)))
	return nil
}

// steady reports lateness at 100 slots a second.
func steady(ctx context.Context, r *measure.Report, h *house, s sizes) error {
	r.Say("%d slots, 100 a second", s.steady)
	late, err := h.paced(ctx, s.steady, 10*time.Millisecond)
	if err != nil {
		return err
	}
	r.Line(fmt.Sprintf("lateness at 100 slots a second, %d slots, p50 / p99 / last", s.steady), "%.1f / %.1f / %.1f ms",
		measure.MS(measure.At(late, 0.5)), measure.MS(measure.At(late, 0.99)), measure.MS(measure.At(late, 1)))
	return nil
}

// burst reports lateness of many slots of one instant.
func burst(ctx context.Context, r *measure.Report, h *house, s sizes) error {
	at := time.Now().Add(s.lead + time.Minute).UTC().Truncate(time.Minute)
	r.Say("%d slots at %s", s.burst, at.Format(time.TimeOnly))
	late, closed, err := h.atOnce(ctx, at, s.burst)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d slots of one instant: ", s.burst)
	r.Line(what+"lateness p50 / p99", "%.0f / %.0f ms", measure.MS(measure.At(late, 0.5)), measure.MS(measure.At(late, 0.99)))
	r.Line(what+"the last one started after", "%.0f ms", measure.MS(measure.At(late, 1)))
	r.Line(what+"slots per second until the last one was closed", "%.0f", float64(s.burst)/closed.Seconds())
	return nil
}
