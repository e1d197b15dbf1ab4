package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
)

// slotsOnly reports what slots of one instant cost, three minutes in a row. The
// statements are those of the process, without the batches of its queue.
func slotsOnly(ctx context.Context, r *measure.Report, p measure.Place, n int) error {
	h, err := open(ctx, p)
	if err != nil {
		return err
	}
	defer h.close()
	server := measure.Postmaster(ctx, p.Postgres)
	if err := h.create(ctx, "slots", "* * * * *", n); err != nil {
		return err
	}
	for range 3 {
		for closed := int64(-1); closed != h.closed.Load(); time.Sleep(2 * time.Second) { // those of the minute before
			closed = h.closed.Load()
		}
		h.noop.take()
		before, at := h.closed.Load(), time.Now().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(at.Add(-time.Second)))
		said, used, served := h.statements.Load(), measure.ProcessorTime(), measure.ProcessorTimeOf(server)
		if err := h.await(ctx, before+int64(n)); err != nil {
			return err
		}
		took, late := time.Since(at), h.noop.take()
		each := func(d time.Duration) float64 { return measure.MS(d) / float64(n) }
		cost := fmt.Sprintf("server %.3f ms", each(measure.ProcessorTime()-used))
		if server > 0 {
			cost += fmt.Sprintf(" + PostgreSQL %.3f ms", each(measure.ProcessorTimeOf(server)-served))
		}
		r.Line(fmt.Sprintf("%d slots of one instant: the last one started / closed after; p50", n), "%.0f / %.0f; %.0f ms",
			measure.MS(measure.At(late, 1)), measure.MS(took), measure.MS(measure.At(late, 0.5)))
		r.Line("a slot: statements; processor time", "%.1f; %s", float64(h.statements.Load()-said)/float64(n), cost)
	}
	return nil
}
