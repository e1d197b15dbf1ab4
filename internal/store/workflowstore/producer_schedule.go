package workflowstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// ProducerSchedule is when a producer runs. NextRunAt moves only when a run of
// the producer commits, so an overdue one is seen from the row.
type ProducerSchedule struct {
	WorkflowID  string
	Producer    string
	Type        string // interval or cron
	Value       string
	Timezone    string
	Timing      string    // JSON: what limits it; empty: nothing
	Plan        string    // JSON: what its instants depend on besides; empty: nothing
	NextRunAt   time.Time // zero: the schedule has ended
	LastRunAt   time.Time // zero before the first
	RequestedAt time.Time // when somebody asked for a run now; zero if nobody does
}

const scheduleColumns = `workflow_id, producer_name, schedule_type, schedule_value, timezone, timing, plan, next_run_at, last_run_at, requested_at`

// never is next_run_at of a schedule that has ended: the end of the year 9999, so
// that whoever looks for what is due does not find it.
const never = 253402300799999

func nextMillis(at time.Time) int64 {
	if at.IsZero() {
		return never
	}
	return store.Millis(at)
}

func scanSchedule(row store.Scanner) (ProducerSchedule, error) {
	var s ProducerSchedule
	var zone, timing, plan *string
	var next int64
	var last, requested *int64
	if err := row.Scan(&s.WorkflowID, &s.Producer, &s.Type, &s.Value, &zone, &timing, &plan, &next, &last, &requested); err != nil {
		return ProducerSchedule{}, err
	}
	s.Timezone, s.Timing, s.Plan = store.FromNullText(zone), store.FromNullText(timing), store.FromNullText(plan)
	s.LastRunAt, s.RequestedAt = store.FromNullMillis(last), store.FromNullMillis(requested)
	if next != never {
		s.NextRunAt = store.FromMillis(next)
	}
	return s, nil
}

// SameAs reports whether two schedules say the same.
func (s ProducerSchedule) SameAs(o ProducerSchedule) bool {
	return s.Type == o.Type && s.Value == o.Value && s.Timezone == o.Timezone && s.Timing == o.Timing
}

// ProducerSchedules reads the schedules of a workflow, the next one first.
func (tx Tx) ProducerSchedules(ctx context.Context, workflowID string) (list []ProducerSchedule, err error) {
	err = tx.AskProducerSchedules(ctx, workflowID, &list)
	if err == nil {
		err = tx.Flush(ctx)
	}
	return list, err
}

// AskProducerSchedules is ProducerSchedules for who needs the answer later.
func (tx Tx) AskProducerSchedules(ctx context.Context, workflowID string, out *[]ProducerSchedule) error {
	return store.AskAll(ctx, tx.Tx, out, "read producer schedules", scanSchedule,
		`select `+scheduleColumns+` from producer_schedules where workflow_id = $1 order by next_run_at, producer_name`, workflowID)
}

// ProducerSchedule reads the schedule of a producer, or fails with
// pawl.ErrNotFound.
func (tx Tx) ProducerSchedule(ctx context.Context, workflowID, producer string) (ProducerSchedule, error) {
	s, err := scanSchedule(tx.QueryRow(ctx, `select `+scheduleColumns+` from producer_schedules where workflow_id = $1 and producer_name = $2`, workflowID, producer))
	if errors.Is(err, store.ErrNoRow) {
		return s, &pawl.Error{Code: pawl.CodeNotFound, Op: "read producer schedule", Msg: "the producer has no schedule"}
	}
	return s, err
}

// SchedulesNaming reads the schedules of producers whose limits have a text in
// them, by workflow; perhaps others as well.
func (tx Tx) SchedulesNaming(ctx context.Context, text string) ([]ProducerSchedule, error) {
	rows, err := tx.Query(ctx, `select `+scheduleColumns+` from producer_schedules where timing like $1
		and exists (select 1 from workflows w where w.id = workflow_id and w.deleted_at is null) order by workflow_id, producer_name`, "%"+text+"%")
	return store.ScanAll(rows, err, "find producer schedules", scanSchedule)
}

// PutProducerSchedule adds the schedule of a new producer, or changes one: if it
// says something else, it is next when NextRunAt says, else its time stays.
func (tx Tx) PutProducerSchedule(ctx context.Context, s ProducerSchedule) error {
	const same = `p.schedule_type = excluded.schedule_type and p.schedule_value = excluded.schedule_value
				and coalesce(p.timezone, '') = coalesce(excluded.timezone, '') and coalesce(p.timing, '') = coalesce(excluded.timing, '')`
	_, err := tx.Exec(ctx, `insert into producer_schedules as p (id, workflow_id, producer_name, schedule_type, schedule_value, timezone, timing, plan, next_run_at, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $8, $9, $10, $7, $7)
		on conflict (workflow_id, producer_name) do update set updated_at = excluded.updated_at,
			next_run_at = case when `+same+` then p.next_run_at else excluded.next_run_at end,
			plan = case when `+same+` then p.plan else excluded.plan end,
			schedule_type = excluded.schedule_type, schedule_value = excluded.schedule_value, timezone = excluded.timezone, timing = excluded.timing`,
		store.NewID(), s.WorkflowID, s.Producer, s.Type, s.Value, store.NullText(s.Timezone), store.Millis(tx.Now), store.NullText(s.Timing), store.NullText(s.Plan), nextMillis(s.NextRunAt))
	if err != nil {
		return fmt.Errorf("put producer schedule: %w", err)
	}
	return nil
}

// SetProducerNext makes a schedule go on at another instant, by another plan.
func (tx Tx) SetProducerNext(ctx context.Context, s ProducerSchedule) error {
	_, err := tx.Exec(ctx, `update producer_schedules set next_run_at = $3, plan = $4, updated_at = $5 where workflow_id = $1 and producer_name = $2`,
		s.WorkflowID, s.Producer, nextMillis(s.NextRunAt), store.NullText(s.Plan), store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("change producer schedule: %w", err)
	}
	return nil
}

// DeleteProducerSchedule removes the schedule of a producer that is gone, and
// with it the request for a run.
func (tx Tx) DeleteProducerSchedule(ctx context.Context, workflowID, producer string) error {
	if _, err := tx.Exec(ctx, `delete from producer_schedules where workflow_id = $1 and producer_name = $2`, workflowID, producer); err != nil {
		return fmt.Errorf("delete producer schedule: %w", err)
	}
	return nil
}

// RequestProducers asks for a run of every producer of a workflow, and tells
// of how many.
func (tx Tx) RequestProducers(ctx context.Context, workflowID string) (int, error) {
	n, err := tx.Exec(ctx, `update producer_schedules set requested_at = $2, updated_at = $2 where workflow_id = $1`, workflowID, store.Millis(tx.Now))
	if err != nil {
		return 0, fmt.Errorf("request producers: %w", err)
	}
	return int(n), nil
}

// ProducerRan moves the schedule on after a committed run, and fulfils the
// request for one that was there when it began. ran is the schedule that the run
// was for and the instant that follows by it: if there is another one by now, that
// one's time stays.
// A request that came later stays, and is of this instant at most: one that a wrong
// clock dated ahead would make run after run, until that time has come.
// Without a row there is nothing to do.
func (tx Tx) ProducerRan(ctx context.Context, ran ProducerSchedule, began time.Time) error {
	err := tx.Post(ctx, `update producer_schedules set last_run_at = $4, updated_at = $4, requested_at = case when requested_at <= $8 then null when requested_at > $4 then $4 else requested_at end,
			next_run_at = case when schedule_type = $5 and schedule_value = $6 and coalesce(timezone, '') = $7 and coalesce(timing, '') = $9 then $3 else next_run_at end
		where workflow_id = $1 and producer_name = $2`, ran.WorkflowID, ran.Producer, nextMillis(ran.NextRunAt), store.Millis(tx.Now), ran.Type, ran.Value, ran.Timezone, store.Millis(began), ran.Timing)
	if err != nil {
		return fmt.Errorf("move producer schedule: %w", err)
	}
	return nil
}
