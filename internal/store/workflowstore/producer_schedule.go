package workflowstore

import (
	"context"
	"fmt"
	"time"

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
	NextRunAt   time.Time
	LastRunAt   time.Time // zero before the first
	RequestedAt time.Time // when somebody asked for a run now; zero if nobody does
}

const scheduleColumns = `workflow_id, producer_name, schedule_type, schedule_value, timezone, next_run_at, last_run_at, requested_at`

func scanSchedule(row store.Scanner) (ProducerSchedule, error) {
	var s ProducerSchedule
	var zone *string
	var next int64
	var last, requested *int64
	if err := row.Scan(&s.WorkflowID, &s.Producer, &s.Type, &s.Value, &zone, &next, &last, &requested); err != nil {
		return ProducerSchedule{}, err
	}
	s.Timezone, s.NextRunAt, s.LastRunAt, s.RequestedAt = store.FromNullText(zone), store.FromMillis(next), store.FromNullMillis(last), store.FromNullMillis(requested)
	return s, nil
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

// PutProducerSchedule adds the schedule of a new producer, due now, or changes
// one: with another type, value or zone it is due now, else its time stays
//
func (tx Tx) PutProducerSchedule(ctx context.Context, s ProducerSchedule) error {
	_, err := tx.Exec(ctx, `insert into producer_schedules as p (id, workflow_id, producer_name, schedule_type, schedule_value, timezone, next_run_at, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $7, $7)
		on conflict (workflow_id, producer_name) do update set updated_at = excluded.updated_at,
			next_run_at = case when p.schedule_type = excluded.schedule_type and p.schedule_value = excluded.schedule_value
				and coalesce(p.timezone, '') = coalesce(excluded.timezone, '') then p.next_run_at else excluded.next_run_at end,
			schedule_type = excluded.schedule_type, schedule_value = excluded.schedule_value, timezone = excluded.timezone`,
		store.NewID(), s.WorkflowID, s.Producer, s.Type, s.Value, store.NullText(s.Timezone), store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("put producer schedule: %w", err)
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
// Without a row there is nothing to do.
func (tx Tx) ProducerRan(ctx context.Context, ran ProducerSchedule, began time.Time) error {
	err := tx.Post(ctx, `update producer_schedules set last_run_at = $4, updated_at = $4, requested_at = case when requested_at > $8 then requested_at else null end,
			next_run_at = case when schedule_type = $5 and schedule_value = $6 and coalesce(timezone, '') = $7 then $3 else next_run_at end
		where workflow_id = $1 and producer_name = $2`, ran.WorkflowID, ran.Producer, store.Millis(ran.NextRunAt), store.Millis(tx.Now), ran.Type, ran.Value, ran.Timezone, store.Millis(began))
	if err != nil {
		return fmt.Errorf("move producer schedule: %w", err)
	}
	return nil
}
