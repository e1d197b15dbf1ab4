package schedulestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Slot is one instant of a schedule and what became of it. It is the authority
// for whether that instant ran.
type Slot struct {
	ID           string
	ScheduleID   string
	RunID        string // of the first attempt; empty until it starts
	ScheduledFor time.Time
	StartedAt    time.Time
	CompletedAt  time.Time
	Status       string // pending, running, success, error, skipped
	Disposition  string // empty until it is closed
	Attempts     int
	TraceID      string
	ErrorCode    string
	ErrorMessage string
	Cost         int64 // 10^-7 USD
	Trigger      string
	BackfillID   string
	GrantID      string    // that it began under; empty until it starts, unless a backfill named one
	Revision     int64     // of the schedule when the slot was made
	Into         time.Time // coalesced: the slot that stands for it
	Doubt        bool      // nobody knows whether it ran, and no person has said
	Through      time.Time // the last of the instants that the row covers; zero: it is one slot
	Count        int64     // how many it covers; zero: one
	WaitsSince   time.Time // it waits for a source since then; zero: it does not
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

const slotColumns = `id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id,
	error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, doubt, created_at, updated_at, through_at, instants, waits_since`

func scanSlot(row store.Scanner) (Slot, error) {
	var s Slot
	var at, created, updated int64
	var started, completed, into, doubt, through, count, waits *int64
	var disposition, trace, code, message, backfill, grant *string
	err := row.Scan(&s.ID, &s.ScheduleID, &s.RunID, &at, &started, &completed, &s.Status, &disposition, &s.Attempts, &trace,
		&code, &message, &s.Cost, &s.Trigger, &backfill, &grant, &s.Revision, &into, &doubt, &created, &updated, &through, &count, &waits)
	if err != nil {
		return Slot{}, err
	}
	s.Doubt, s.Through, s.Count = doubt != nil, store.FromNullMillis(through), fromNull(count)
	s.ScheduledFor, s.StartedAt, s.CompletedAt, s.Into = store.FromMillis(at), store.FromNullMillis(started), store.FromNullMillis(completed), store.FromNullMillis(into)
	s.Disposition, s.TraceID, s.ErrorCode, s.ErrorMessage = store.FromNullText(disposition), store.FromNullText(trace), store.FromNullText(code), store.FromNullText(message)
	s.BackfillID, s.GrantID = store.FromNullText(backfill), store.FromNullText(grant)
	s.WaitsSince = store.FromNullMillis(waits)
	s.CreatedAt, s.UpdatedAt = store.FromMillis(created), store.FromMillis(updated)
	return s, nil
}

func noSlot(err error, scheduleID string, at time.Time) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read slot", Msg: fmt.Sprintf("schedule %s has no slot at %s", scheduleID, pawl.FormatTime(at))}
	}
	return fmt.Errorf("read slot: %w", err)
}

// NewSlot asks for a slot.
type NewSlot struct {
	ScheduleID   string
	ScheduledFor time.Time
	Revision     int64
	Trigger      string
	BackfillID   string

	// A slot that is closed as it is made: it never was to run.
	Status      string // empty is pending
	Disposition string
	Into        time.Time
	Message     string
	Through     time.Time // the last of many instants that the row covers; zero: it is one
	Count       int64     // how many
}

// InsertSlots adds slots; those that are there already stay as they are. It
// returns how many were new.
func (tx Tx) InsertSlots(ctx context.Context, list ...NewSlot) (int64, error) {
	if len(list) == 0 {
		return 0, nil
	}
	rows := make([][]any, len(list))
	for i, s := range list {
		status, completed := s.Status, time.Time{}
		if status == "" {
			status = "pending"
		} else {
			completed = tx.Now
		}
		rows[i] = []any{
			store.NewID(), s.ScheduleID, store.Millis(s.ScheduledFor), status, store.NullText(s.Disposition), store.NullMillis(completed), store.NullText(s.Message), s.Trigger,
			store.NullText(s.BackfillID), s.Revision, store.NullMillis(s.Into), store.NullMillis(s.Through), nullNumber(s.Count),
		}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "id text, schedule text, at bigint, status text, disposition text, completed bigint, message text, trigger_ text, "+
		"backfill text, revision bigint, into_ bigint, through_ bigint, instants_ bigint", rows)
	made, err := tx.Exec(ctx, `insert into schedule_runs (id, schedule_id, scheduled_for, status, disposition, completed_at, error_message, trigger,
		backfill_id, revision, into_slot, through_at, instants, created_at, updated_at)
		select v.id, v.schedule, v.at, v.status, v.disposition, v.completed, v.message, v.trigger_, v.backfill, v.revision, v.into_, v.through_, v.instants_, $1, $1
		from `+table+` where true on conflict (schedule_id, scheduled_for) do nothing`, args...)
	if err != nil {
		return 0, fmt.Errorf("insert slots: %w", err)
	}
	return made, nil
}

// PlanSlot makes sure that an instant has a slot of this revision that waits. One
// that was taken back before it began, because the schedule was changed or
// switched off, waits again, unless a person skipped it. It reports false if the
// instant is over: something else became of its slot, or a row that covers many
// has it.
func (tx Tx) PlanSlot(ctx context.Context, scheduleID string, at time.Time, revision int64) (bool, error) {
	n, err := tx.Exec(ctx, `insert into schedule_runs as s (id, schedule_id, scheduled_for, trigger, revision, created_at, updated_at)
		select $1, $2, cast($3 as bigint), 'schedule', cast($4 as bigint), cast($5 as bigint), cast($5 as bigint)
		where coalesce((select p.through_at from schedule_runs p where p.schedule_id = $2 and p.scheduled_for <= $3 order by p.scheduled_for desc limit 1), 0) < $3
		on conflict (schedule_id, scheduled_for) do update set status = 'pending', disposition = null,
		completed_at = null, error_code = null, error_message = null, into_slot = null, waits_since = null, revision = excluded.revision, updated_at = excluded.updated_at
		where s.started_at is null and s.by_person is null and s.trigger = 'schedule' and (s.status = 'pending' or s.disposition in ('superseded', 'skipped_disabled', 'excluded'))`,
		store.NewID(), scheduleID, store.Millis(at), revision, store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("plan slot: %w", err)
	}
	return n > 0, nil
}

// SkippedByPerson notes that a person skipped a slot: no change of its schedule
// brings it back.
func (tx Tx) SkippedByPerson(ctx context.Context, id string) error {
	return tx.Expect(ctx, 1, pawl.ErrNotFound, `update schedule_runs set by_person = 1 where id = $1`, id)
}

// GetSlot reads a slot, or fails with pawl.ErrNotFound.
func (tx Tx) GetSlot(ctx context.Context, scheduleID string, at time.Time) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and scheduled_for = $2`, scheduleID, store.Millis(at)))
	return s, noSlot(err, scheduleID, at)
}

// HoldSlot reads a slot and keeps others from changing it until the transaction
// ends.
func (tx Tx) HoldSlot(ctx context.Context, scheduleID string, at time.Time) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and scheduled_for = $2`+tx.ForUpdate(), scheduleID, store.Millis(at)))
	return s, noSlot(err, scheduleID, at)
}

// SlotStart is how an attempt of a slot begins.
type SlotStart struct {
	RunID   string // of the first attempt
	GrantID string // that the slot runs under
	// Again: it goes on with the attempt before it, of which nobody knows the
	// outcome yet.
	Again bool
}

// StartSlot makes a pending slot running, or begins another attempt of one that
// runs. The run and the grant are set once and stay. It fails with
// pawl.ErrConflict if the slot is closed.
func (tx Tx) StartSlot(ctx context.Context, id string, start SlotStart) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `update schedule_runs set status = 'running', started_at = coalesce(started_at, $2), attempt_count = attempt_count + $4,
		run_id = case when run_id = '' then $3 else run_id end, grant_id = coalesce(grant_id, $5), disposition = null, error_message = null, waits_since = null, updated_at = $2
		where id = $1 and status in ('pending', 'running') returning `+slotColumns, id, store.Millis(tx.Now), start.RunID, flag(!start.Again), store.NullText(start.GrantID)))
	return s, slotClosed(err, "start slot")
}

// StartSlots makes pending slots running, with the runs and grants that they have
// here. If one is not pending any more the transaction fails with
// store.ErrSetRefused.
func (tx Tx) StartSlots(ctx context.Context, list []Slot) error {
	rows := make([][]any, len(list))
	for i, s := range list {
		rows[i] = []any{s.ID, s.RunID, store.NullText(s.GrantID)}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "slot text, run text, grant_ text", rows)
	return tx.ChangeAll(ctx, len(list), "start slots", `update schedule_runs set status = 'running', started_at = $1, attempt_count = attempt_count + 1,
		run_id = v.run, grant_id = coalesce(grant_id, v.grant_), updated_at = $1 from `+table+` where id = v.slot and status = 'pending'`, args...)
}

func slotClosed(err error, op string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeConflict, Reason: "slot_closed", Op: op, Msg: "the slot is closed already"}
	}
	return fmt.Errorf("%s: %w", op, err)
}

// SlotEnd is how a slot ends.
type SlotEnd struct {
	Status       string
	Disposition  string
	TraceID      string
	ErrorCode    string
	ErrorMessage string
	Cost         int64 // of all attempts together
	Into         time.Time
	Doubt        bool   // nobody knows whether it ran
	Brought      *int64 // how many rows the execution told of; nil: none
}

// CloseSlot ends an open slot for good. It fails with pawl.ErrConflict if it
// was closed already.
func (tx Tx) CloseSlot(ctx context.Context, id string, e SlotEnd) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `update schedule_runs set status = $2, disposition = $3, completed_at = $4, updated_at = $4,
		langfuse_trace_id = coalesce($5, langfuse_trace_id), error_code = $6, error_message = $7, cost = case when $8 > cost then $8 else cost end, into_slot = $9, doubt = $10, brought = $11, waits_since = null
		where id = $1 and status in ('pending', 'running') returning `+slotColumns,
		id, e.Status, e.Disposition, store.Millis(tx.Now), store.NullText(e.TraceID), store.NullText(e.ErrorCode), store.NullText(e.ErrorMessage), e.Cost, store.NullMillis(e.Into), oneOrNull(e.Doubt), e.Brought))
	return s, slotClosed(err, "close slot")
}

func oneOrNull(b bool) *int64 {
	if !b {
		return nil
	}
	one := int64(1)
	return &one
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
		ends[i] = []any{e.Slot.ID, e.Status, e.Disposition, store.NullText(e.TraceID), e.Cost, e.Brought}
		next[i] = NewSlot{ScheduleID: e.Slot.ScheduleID, ScheduledFor: e.Next, Revision: e.Slot.Revision, Trigger: e.Slot.Trigger}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "slot text, end_status text, end_disposition text, trace text, end_cost bigint, end_brought bigint", ends)
	if err := tx.ChangeAll(ctx, len(list), "close slots", `update schedule_runs set status = v.end_status, disposition = v.end_disposition, completed_at = $1, updated_at = $1,
		langfuse_trace_id = coalesce(v.trace, langfuse_trace_id), error_code = null, error_message = null, brought = v.end_brought, cost = case when v.end_cost > cost then v.end_cost else cost end
		from `+table+` where id = v.slot and status = 'running'`, args...); err != nil {
		return err
	}
	made, err := tx.InsertSlots(ctx, next...)
	if err == nil && made != int64(len(list)) {
		err = store.ErrSetRefused
	}
	return err
}

// SetSlotCost notes what a slot that has not ended cost so far, all attempts
// together.
func (tx Tx) SetSlotCost(ctx context.Context, id string, cost int64) error {
	if _, err := tx.Exec(ctx, `update schedule_runs set cost = case when $2 > cost then $2 else cost end, updated_at = $3 where id = $1`, id, cost, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("set slot cost: %w", err)
	}
	return nil
}

// ReopenSlot makes a slot that never started pending again, for a backfill that
// a person asked for. It reports whether there was such a slot.
func (tx Tx) ReopenSlot(ctx context.Context, scheduleID string, at time.Time, backfillID string, revision int64) (bool, error) {
	n, err := tx.Exec(ctx, `update schedule_runs set status = 'pending', disposition = null, completed_at = null, error_code = null, error_message = null,
		into_slot = null, waits_since = null, trigger = 'backfill', backfill_id = $3, revision = $4, updated_at = $5
		where schedule_id = $1 and scheduled_for = $2 and status = 'skipped' and started_at is null and through_at is null`, scheduleID, store.Millis(at), backfillID, revision, store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("reopen slot: %w", err)
	}
	return n > 0, nil
}

// SetBackfillGrant names the grant that a slot of a backfill is to begin under;
// empty is that of its schedule.
func (tx Tx) SetBackfillGrant(ctx context.Context, id, scheduleID string, at time.Time, grantID string) error {
	_, err := tx.Exec(ctx, `update schedule_runs set grant_id = $4 where schedule_id = $1 and scheduled_for = $2 and backfill_id = $3 and started_at is null`,
		scheduleID, store.Millis(at), id, store.NullText(grantID))
	if err != nil {
		return fmt.Errorf("set grant of a slot: %w", err)
	}
	return nil
}

// WaitFresh notes that a slot which has not begun waits for a source since an
// instant, with a sentence. It fails with pawl.ErrConflict if the slot is closed.
func WaitFresh(ctx context.Context, tx *store.Tx, id, disposition string, since time.Time, message string) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `update schedule_runs set disposition = $2, waits_since = $3, error_message = $4, updated_at = $5
		where id = $1 and status = 'pending' returning `+slotColumns, id, disposition, store.Millis(since), message, store.Millis(tx.Now)))
	return s, slotClosed(err, "let a slot wait")
}

// OpenSlots reads the slots of a schedule that are not closed, the oldest first.
func (tx Tx) OpenSlots(ctx context.Context, scheduleID string, limit int) ([]Slot, error) {
	rows, err := tx.Query(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and completed_at is null order by scheduled_for limit $2`, scheduleID, limit)
	return store.ScanAll(rows, err, "read open slots", scanSlot)
}

// RunningSlots reads the slots of a schedule that have begun and are not
// closed, the oldest first.
func (tx Tx) RunningSlots(ctx context.Context, scheduleID string, limit int) ([]Slot, error) {
	// Both conditions, so that the index of open slots serves it.
	rows, err := tx.Query(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and completed_at is null and status = 'running'
		order by scheduled_for limit $2`, scheduleID, limit)
	return store.ScanAll(rows, err, "read running slots", scanSlot)
}

// LatestSlot reads the slot of the latest instant that a revision of a schedule
// made for itself, or fails with pawl.ErrNotFound.
func (tx Tx) LatestSlot(ctx context.Context, scheduleID string, revision int64) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and trigger = 'schedule' and revision = $2
		order by scheduled_for desc limit 1`, scheduleID, revision))
	return s, noSlot(err, scheduleID, time.Time{})
}

// SlotFilter picks slots; empty fields pick all.
type SlotFilter struct {
	ScheduleID string
	BackfillID string
	Status     string
	Trigger    string
	Open       bool // only those that are not closed
	Ran        bool // only those that started
}

// Where are those that an index answers, and the rest.
func (f SlotFilter) conditions() (base, rest store.Where) {
	base.Texts = []string{"true"}
	if f.ScheduleID != "" {
		base.Add("schedule_id = ?", f.ScheduleID)
	}
	if f.BackfillID != "" {
		base.Add("backfill_id = ?", f.BackfillID)
	}
	if f.Open {
		base.Add("completed_at is null")
	}
	if f.Status != "" {
		rest.Add("status = ?", f.Status)
	}
	if f.Trigger != "" {
		rest.Add("trigger = ?", f.Trigger)
	}
	if f.Ran {
		rest.Add("started_at is not null")
	}
	return base, rest
}

// ListSlots reads up to limit slots, those of the latest instants first; before
// is the instant and id of the last one that was read already, or zero.
func (tx Tx) ListSlots(ctx context.Context, f SlotFilter, before time.Time, beforeID string, limit int) ([]Slot, error) {
	c, rest := f.conditions()
	c.Join(&rest)
	if !before.IsZero() {
		c.Add("(scheduled_for, id) < (?, ?)", store.Millis(before), beforeID)
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+slotColumns+` from schedule_runs where `+text+` order by scheduled_for desc, id desc`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "list slots", scanSlot)
}

// SlotsOf reads up to limit slots of one schedule, those of the latest instants
// before the given one first, and the instant with which to go on, zero at the
// end. A page may end early; see PageThrough.
func (tx Tx) SlotsOf(ctx context.Context, f SlotFilter, before time.Time, limit int) (page []Slot, next time.Time, err error) {
	place := func(s Slot) time.Time { return s.ScheduledFor }
	page, next, more, err := store.PageThrough(before, limit, place, func(before time.Time, want int) (l store.Window[Slot, time.Time], err error) {
		c, rest := f.conditions()
		if !before.IsZero() { // a schedule has one slot for an instant
			c.Add("scheduled_for < ?", store.Millis(before))
		}
		if len(rest.Texts) > 0 {
			if l.Floor, l.Cut, err = store.WindowEnd(ctx, tx.Tx, "scheduled_for", "schedule_runs", "scheduled_for desc", &c, scanInstant); err != nil {
				return l, err
			}
		}
		c.Join(&rest)
		if l.Cut {
			c.Add("scheduled_for >= ?", store.Millis(l.Floor))
		}
		text := c.String()
		rows, err := tx.Query(ctx, `select `+slotColumns+` from schedule_runs where `+text+` order by scheduled_for desc`+c.Limit(want), c.Args...)
		l.Rows, err = store.ScanAll(rows, err, "list slots", scanSlot)
		return l, err
	})
	if !more {
		next = time.Time{}
	}
	return page, next, err
}

func scanInstant(row store.Scanner) (time.Time, error) {
	var at int64
	err := row.Scan(&at)
	return store.FromMillis(at), err
}

// SlotsBetween reads the slots of a schedule with instants in [from, to), the
// oldest first.
func (tx Tx) SlotsBetween(ctx context.Context, scheduleID string, from, to time.Time, limit int) ([]Slot, error) {
	rows, err := tx.Query(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and scheduled_for >= $2 and scheduled_for < $3
		order by scheduled_for limit $4`, scheduleID, store.Millis(from), store.Millis(to), limit)
	return store.ScanAll(rows, err, "read slots", scanSlot)
}

// Again is as what a slot is run again.
type Again struct {
	Trigger    string
	BackfillID string // empty: of none
	Revision   int64
}

// RetrySlot makes a slot that failed or was passed over pending again, for a
// person who asked for it, under the grant that its schedule has now. Its attempts go on counting, and its run is another one. It fails with pawl.ErrConflict if the slot is
// open or succeeded.
func (tx Tx) RetrySlot(ctx context.Context, id string, as Again) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `update schedule_runs set status = 'pending', disposition = null, completed_at = null, error_code = null, error_message = null,
		into_slot = null, waits_since = null, doubt = null, grant_id = null, run_id = '', started_at = null, trigger = $2, backfill_id = $3, revision = $4, updated_at = $5
		where id = $1 and status in ('error', 'skipped') and through_at is null returning `+slotColumns, id, as.Trigger, store.NullText(as.BackfillID), as.Revision, store.Millis(tx.Now)))
	return s, slotClosed(err, "retry slot")
}

// SettleDoubt notes that a person has said what became of a slot, or that it does
// not matter. With a status that is how it ended.
func (tx Tx) SettleDoubt(ctx context.Context, id, status, message string) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `update schedule_runs set doubt = null, status = case when $2 = '' then status else $2 end,
		error_code = case when $2 = 'success' then null else error_code end, error_message = coalesce($3, error_message), updated_at = $4
		where id = $1 and completed_at is not null returning `+slotColumns, id, status, store.NullText(message), store.Millis(tx.Now)))
	return s, slotClosed(err, "resolve slot")
}

// DoubtfulSlot reads the oldest slot of a schedule of which nobody knows whether it
// ran, or fails with pawl.ErrNotFound.
func (tx Tx) DoubtfulSlot(ctx context.Context, scheduleID string) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and doubt is not null order by scheduled_for limit 1`, scheduleID))
	return s, noSlot(err, scheduleID, time.Time{})
}

// SplitSlot makes several rows of one that covers many instants: it becomes the
// first of the parts, and those that follow are as it was. The caller holds the
// schedule.
func (tx Tx) SplitSlot(ctx context.Context, id string, parts []Stretch) error {
	if len(parts) == 0 {
		return errors.New("split slot: into no parts")
	}
	var through, count *int64
	reach := func(p Stretch) {
		if through, count = nil, nil; p.Count > 1 {
			through, count = store.NullMillis(p.Last), nullNumber(p.Count)
		}
	}
	reach(parts[0])
	if err := tx.Expect(ctx, 1, pawl.ErrConflict, `update schedule_runs set scheduled_for = $2, through_at = $3, instants = $4, updated_at = $5 where id = $1 and through_at is not null`,
		id, store.Millis(parts[0].First), through, count, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("split slot: %w", err)
	}
	for _, p := range parts[1:] {
		reach(p)
		if _, err := tx.Exec(ctx, `insert into schedule_runs (id, schedule_id, scheduled_for, completed_at, status, disposition, error_code, error_message, trigger, revision,
			into_slot, by_person, through_at, instants, created_at, updated_at)
			select $2, schedule_id, cast($3 as bigint), completed_at, status, disposition, error_code, error_message, trigger, revision,
			into_slot, by_person, cast($4 as bigint), cast($5 as bigint), created_at, cast($6 as bigint) from schedule_runs where id = $1`,
			id, store.NewID(), store.Millis(p.First), through, count, store.Millis(tx.Now)); err != nil {
			return fmt.Errorf("split slot: %w", err)
		}
	}
	return nil
}
