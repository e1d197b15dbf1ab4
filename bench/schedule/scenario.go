package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// create makes schedules, a transaction for each hundred. Each gets a grant of
// its own, as one does that is created without.
func (h *house) create(ctx context.Context, prefix, cron string, n int) error {
	for from := 0; from < n; from += 100 {
		err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			for i := from; i < min(from+100, n); i++ {
				_, err := h.graphs.Create(ctx, tx, h.owner, client.ScheduleRequest{
					Name: fmt.Sprintf("%s-%06d", prefix, i), GraphID: "bench:noop", Input: json.RawMessage(`{}`), Cron: client.Cron(cron), Timezone: "UTC",
				}, "bench")
				if err != nil {
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

type idleCost struct {
	processor    time.Duration
	transactions int64
	memory       int64
}

func (h *house) whileIdle(ctx context.Context, length time.Duration) (c idleCost, err error) {
	runtime.GC()
	h.place.Rest()
	before, err := h.place.Transactions(ctx, h.at)
	if err != nil {
		return c, err
	}
	used := measure.ProcessorTime()
	time.Sleep(length)
	c.processor = measure.ProcessorTime() - used
	after, err := h.place.Transactions(ctx, h.at)
	if err != nil {
		return c, err
	}
	c.transactions = after - before
	c.memory, err = measure.ResidentSize()
	return c, err
}

// lose makes the first schedules lose what the reconciler gives back.
func (h *house) lose(ctx context.Context, n int) error {
	return h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		const which = `(select id from schedules where name < $1)`
		limit := fmt.Sprintf("idle-%06d", n)
		for _, sql := range []string{
			`delete from jobs where lane in ` + which,
			`delete from schedule_runs where schedule_id in ` + which,
			`update schedules set next_run_at = null where name < $1`,
		} {
			if _, err := tx.Exec(ctx, sql, limit); err != nil {
				return err
			}
		}
		return nil
	})
}

// paced gives idle schedules one more slot each, one after the other, and
// returns how late they started.
func (h *house) paced(ctx context.Context, n int, every time.Duration) ([]time.Duration, error) {
	h.noop.take()
	// Slots are made a second before the first of them is due, at the latest.
	at, before := time.Now().Add(time.Second+time.Duration(n)*5*time.Millisecond).UTC().Truncate(time.Millisecond), h.closed.Load()
	for made, after := 0, ""; made < n; {
		err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			page, err := schedulestore.In(tx).ListSchedules(ctx, h.owner, after, min(100, n-made))
			if err != nil {
				return err
			}
			if len(page) == 0 {
				return fmt.Errorf("there are only %d schedules", made)
			}
			for i, sch := range page {
				if err := h.addSlot(ctx, tx, sch, at.Add(time.Duration(made+i)*every)); err != nil {
					return err
				}
			}
			made, after = made+len(page), page[len(page)-1].Name
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if time.Now().After(at) {
		return nil, fmt.Errorf("making the slots took longer than there was time")
	}
	err := h.await(ctx, before+int64(n))
	return h.noop.take(), err
}

// addSlot makes one more slot of a schedule with its job, as the schedule
// itself does.
func (h *house) addSlot(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, at time.Time) error {
	if _, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: sch.ID, ScheduledFor: at, Revision: sch.Revision, Trigger: "schedule"}); err != nil {
		return err
	}
	payload := fmt.Appendf(nil, `{"scheduleId":%q,"scheduledFor":%q}`, sch.ID, pawl.FormatTime(at))
	_, err := h.queue.EnqueueTx(ctx, tx, store.JobSpec{
		Task: schedule.TaskName, Payload: payload, RunAt: at, Key: pawl.SlotKey(sch.ID, at), KeyMode: store.Earliest, Lane: sch.ID,
	})
	return err
}

// atOnce makes schedules of one instant, and returns how late their slots
// started and when the last one was closed.
func (h *house) atOnce(ctx context.Context, at time.Time, n int) (late []time.Duration, closed time.Duration, err error) {
	h.noop.take()
	before := h.closed.Load()
	cron := fmt.Sprintf("%d %d %d %d *", at.Minute(), at.Hour(), at.Day(), int(at.Month()))
	if err := h.create(ctx, "burst", cron, n); err != nil {
		return nil, 0, err
	}
	if left := time.Until(at); left < 0 {
		return nil, 0, fmt.Errorf("making the schedules took %s longer than there was time", -left)
	}
	time.Sleep(time.Until(at))
	if err := h.await(ctx, before+int64(n)); err != nil {
		return nil, 0, err
	}
	return h.noop.take(), time.Since(at), nil
}

// await waits until that many slots were closed.
func (h *house) await(ctx context.Context, n int64) error {
	limit := time.Now().Add(10 * time.Minute)
	for h.closed.Load() < n {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case h.failed.Load() > 0:
			return fmt.Errorf("%d slots did not succeed", h.failed.Load())
		case time.Now().After(limit):
			return fmt.Errorf("only %d of %d slots were closed in ten minutes", h.closed.Load(), n)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
