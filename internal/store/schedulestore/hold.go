package schedulestore

import (
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// What many schedules do at the same instant is a statement for all of them.

// Place is where a slot is.
type Place struct {
	ScheduleID   string
	ScheduledFor time.Time
}

// Held is a slot with its schedule, and what speaks against beginning or ending it
// together with others.
type Held struct {
	Schedule Schedule
	Slot     Slot
	Running  bool      // another slot of the schedule runs
	Open     bool      // another one runs or waits
	Failures bool      // its lane has failures to forget
	LastEnd  time.Time // when the newest run of the schedule ended; zero: there is none, or it has not
}

// HoldSlots reads slots with their schedules, and keeps others from changing the
// schedules until the transaction ends. What somebody else holds, is deleted or is
// not there is left out. Of slots that are ending, whoever began them knows most:
// only what may have changed since is read, and what tells when the next one is.
func (tx Tx) HoldSlots(ctx context.Context, places []Place, ending bool) ([]Held, error) {
	if ending {
		return tx.hold(ctx, places, store.Prefixed("s", endColumns)+`, r.scheduled_for, r.status, r.run_id, r.revision, `+besides, scanEnd)
	}
	return tx.hold(ctx, places, store.Prefixed("s", graphScheduleColumns)+`, `+store.Prefixed("r", slotColumns)+`, `+besides+`,
		(select n.ended_at from runs n where n.kind = 'schedule' and n.lane = s.id order by n.created_at desc, n.id desc limit 1)`, scanHeld)
}

// besides is what is beside a slot r and its schedule s: whether the lane is calm,
// other slots that are open, and failures.
const besides = `case when (select l.state || ' ' || l.cause from lanes l where l.kind = 'schedule' and l.lane = s.id) = 'Idle ' then 1 else 0 end,
		(select min(case when o.status = 'running' then 0 else 1 end) from schedule_runs o where o.schedule_id = s.id and o.completed_at is null and o.id <> r.id),
		case when exists (select 1 from retries f where f.kind = 'schedule' and f.lane = s.id
			and (f.retry_count <> 0 or f.crash_count <> 0 or f.next_retry_at is not null)) then 1 else 0 end`

// hold keeps others from changing schedules, and reads columns of theirs and their slots.
func (tx Tx) hold(ctx context.Context, places []Place, columns string, scan func(store.Scanner) (Held, error)) ([]Held, error) {
	list := make([][]any, len(places))
	for i, p := range places {
		list[i] = []any{p.ScheduleID, store.Millis(p.ScheduledFor)}
	}
	table, args := tx.Rowset(nil, "schedule text, at bigint", list)
	// The rest is read by a statement of its own, so that it sees what is there
	// after the schedules were held. Conditions that say little are written so that
	// a planner without statistics does not take them for telling ones.
	free := map[string]bool{}
	if lock := tx.SkipLocked(); lock != "" {
		ids := `select s.id from ` + table + ` cross join schedules s where s.id = v.schedule` + lock
		if err := tx.Ask(ctx, func(rows store.Rows, err error) error {
			found, err := store.ScanAll(rows, err, "hold schedules", store.ScanText)
			for _, id := range found {
				free[id] = true
			}
			return err
		}, ids, args...); err != nil {
			return nil, err
		}
	}
	rows, err := tx.Query(ctx, `select `+columns+` from `+table+` cross join schedules s cross join schedule_runs r
		where s.id = v.schedule and coalesce(s.deleted_at, 0) < 1 and r.schedule_id = v.schedule and r.scheduled_for = v.at`, args...)
	held, err := store.ScanAll(rows, err, "hold slots", scan)
	if tx.SkipLocked() != "" {
		held = slices.DeleteFunc(held, func(h Held) bool { return !free[h.Schedule.ID] })
	}
	return held, err
}

func scanHeld(row store.Scanner) (h Held, err error) {
	var beside aside
	var ended *int64
	h.Slot, err = scanSlot(store.ScanFunc(func(dest ...any) (err error) {
		h.Schedule, err = scanGraphSchedule(store.Also(row, append(dest, &beside.calm, &beside.others, &beside.failures, &ended)...))
		return err
	}))
	beside.tell(&h)
	h.LastEnd = store.FromNullMillis(ended)
	return h, err
}

const endColumns = `id, cron, timezone, timing, concurrency_policy, enabled, revision, max_runs, begun, next_run_at`

func scanEnd(row store.Scanner) (h Held, err error) {
	var beside aside
	var enabled, at int64
	var timing *string
	var most, next *int64
	s, r := &h.Schedule, &h.Slot
	err = row.Scan(&s.ID, &s.Cron, &s.Timezone, &timing, &s.Policy, &enabled, &s.Revision, &most, &s.Begun, &next,
		&at, &r.Status, &r.RunID, &r.Revision, &beside.calm, &beside.others, &beside.failures)
	s.Timing, s.Enabled, s.MaxRuns, s.NextRunAt = store.FromNullText(timing), enabled != 0, fromNull(most), store.FromNullMillis(next)
	r.ScheduleID, r.ScheduledFor = s.ID, store.FromMillis(at)
	beside.tell(&h)
	return h, err
}

// aside is what besides reads.
type aside struct {
	calm, failures int64
	others         *int64
}

func (a aside) tell(h *Held) {
	h.Schedule.Calm, h.Open, h.Running, h.Failures = a.calm != 0, a.others != nil, a.others != nil && *a.others == 0, a.failures != 0
}
