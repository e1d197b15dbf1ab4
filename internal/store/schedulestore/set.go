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
// not there is left out.
func (tx Tx) HoldSlots(ctx context.Context, places []Place) ([]Held, error) {
	list := make([][]any, len(places))
	for i, p := range places {
		list[i] = []any{p.ScheduleID, store.Millis(p.ScheduledFor)}
	}
	table, args := tx.Rowset(nil, "schedule text, at bigint", list)
	// The rest is read by a statement of its own, so that it sees what is there
	// after the schedules were held.
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
	rows, err := tx.Query(ctx, `select `+store.Prefixed("s", graphScheduleColumns)+`, `+store.Prefixed("r", slotColumns)+`,
		case when exists (select 1 from lanes l where l.kind = 'schedule' and l.lane = s.id and l.state = 'Idle' and l.cause = '') then 1 else 0 end,
		(select min(case when o.status = 'running' then 0 else 1 end) from schedule_runs o where o.schedule_id = s.id and o.completed_at is null and o.id <> r.id),
		case when exists (select 1 from retries f where f.kind = 'schedule' and f.lane = s.id
			and (f.retry_count <> 0 or f.crash_count <> 0 or f.next_retry_at is not null)) then 1 else 0 end,
		(select n.ended_at from runs n where n.kind = 'schedule' and n.lane = s.id order by n.created_at desc, n.id desc limit 1)
		from `+table+` cross join schedules s cross join schedule_runs r
		where s.id = v.schedule and s.deleted_at is null and r.schedule_id = v.schedule and r.scheduled_for = v.at`, args...)
	held, err := store.ScanAll(rows, err, "hold slots", scanHeld)
	if tx.SkipLocked() != "" {
		held = slices.DeleteFunc(held, func(h Held) bool { return !free[h.Schedule.ID] })
	}
	return held, err
}

func scanHeld(row store.Scanner) (h Held, err error) {
	var calm, failures int64
	var others, ended *int64
	h.Slot, err = scanSlot(store.ScanFunc(func(dest ...any) (err error) {
		h.Schedule, err = scanGraphSchedule(store.Also(row, append(dest, &calm, &others, &failures, &ended)...))
		return err
	}))
	h.Schedule.Calm, h.Open, h.Running, h.Failures = calm != 0, others != nil, others != nil && *others == 0, failures != 0
	h.LastEnd = store.FromNullMillis(ended)
	return h, err
}

// Started is a slot whose first attempt begins, and the next instant of its
// schedule.
type Started struct {
	Slot Slot
	Next time.Time
}

// StartSlots makes pending slots running, and notes in their schedules that they
// run now and when they do so next. If one is not pending any more the transaction
// fails with store.ErrSetRefused.
func (tx Tx) StartSlots(ctx context.Context, list []Started) error {
	slots, schedules := make([][]any, len(list)), make([][]any, len(list))
	for i, s := range list {
		slots[i] = []any{s.Slot.ID, s.Slot.RunID, s.Slot.GrantID}
		schedules[i] = []any{s.Slot.ScheduleID, store.NullMillis(s.Next)}
	}
	now := []any{store.Millis(tx.Now)}
	table, args := tx.Rowset(now, "slot text, run text, grant_ text", slots)
	if err := tx.ChangeAll(ctx, len(list), "start slots", `update schedule_runs set status = 'running', started_at = $1, attempt_count = attempt_count + 1,
		run_id = v.run, grant_id = coalesce(grant_id, v.grant_), updated_at = $1 from `+table+` where id = v.slot and status = 'pending'`, args...); err != nil {
		return err
	}
	table, args = tx.Rowset(now, "schedule text, next bigint", schedules)
	return tx.ChangeAll(ctx, len(list), "change schedule times", `update schedules set next_run_at = v.next, last_run_at = $1 from `+table+` where id = v.schedule`, args...)
}

// Ended is the end of a slot and the instant of the next one.
type Ended struct {
	Slot Slot
	SlotEnd
	Next time.Time
}

// CloseSlots ends slots that run, for good, and makes the next ones. If one does
// not run any more, or the next instant of one has a slot, the transaction fails
// with store.ErrSetRefused.
func (tx Tx) CloseSlots(ctx context.Context, list []Ended) error {
	ends, next := make([][]any, len(list)), make([]NewSlot, len(list))
	for i, e := range list {
		ends[i] = []any{e.Slot.ID, e.Status, e.Disposition, store.NullText(e.TraceID), e.Cost}
		next[i] = NewSlot{ScheduleID: e.Slot.ScheduleID, ScheduledFor: e.Next, Revision: e.Slot.Revision, Trigger: e.Slot.Trigger}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "slot text, end_status text, end_disposition text, trace text, end_cost bigint", ends)
	if err := tx.ChangeAll(ctx, len(list), "close slots", `update schedule_runs set status = v.end_status, disposition = v.end_disposition, completed_at = $1, updated_at = $1,
		langfuse_trace_id = coalesce(v.trace, langfuse_trace_id), error_code = null, error_message = null, cost = case when v.end_cost > cost then v.end_cost else cost end
		from `+table+` where id = v.slot and status = 'running'`, args...); err != nil {
		return err
	}
	made, err := tx.InsertSlots(ctx, next...)
	if err == nil && made != int64(len(list)) {
		err = store.ErrSetRefused
	}
	return err
}
