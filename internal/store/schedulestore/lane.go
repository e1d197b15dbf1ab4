package schedulestore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// scheduleLanes are those of one owner, whose id is the parameter $1; empty is
// everybody's.
func scheduleLanes() runstore.LaneTable {
	noted := runstore.NeedsAttention("schedule", "l.id")
	runs := `exists (select 1 from schedule_runs s where s.schedule_id = l.id and s.completed_at is null and s.status = 'running')` // as in schedule_runs_open
	asks := `exists (select 1 from attention a where a.kind = 'schedule' and a.lane = l.id and a.issue = 'approval')`
	return runstore.LaneTable{
		From: "schedules l", There: `l.deleted_at is null and (l.owner_user_id = $1 or $1 = '')`, Wanted: `l.enabled = 1`,
		Noted: `(` + noted + ` or l.enabled = 0 and l.issue is not null)`,
		Word: `case when ` + runs + ` then case when ` + asks + ` then 'Needs attention' else 'Running' end
			when l.enabled = 0 and l.issue is not null then 'Needs attention' when l.enabled = 0 then 'Stopped'
			when ` + noted + ` then 'Needs attention' else 'Idle' end`,
	}
}

// FindSchedules reads up to limit schedules of an owner that fit, by name and
// id, those after the given one. An empty owner is everybody.
func (tx Tx) FindSchedules(ctx context.Context, ownerID string, f runstore.LaneFilter, afterName, afterID string, limit int) ([]Schedule, error) {
	t := scheduleLanes()
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from `+t.From+` where `+t.There+` and (l.name, l.id) > ($2, $3)
		and lower(l.name) like $4 escape '\' and `+t.Fits(f.State, 5)+` order by l.name, l.id limit $6`, ownerID, afterName, afterID, f.Like(), f.State, limit)
	return store.ScanAll(rows, err, "find schedules", scanGraphSchedule)
}

// CountSchedules counts the schedules of an owner by their word; an empty owner
// is everybody.
func (tx Tx) CountSchedules(ctx context.Context, ownerID string) (map[string]int, error) {
	return runstore.In(tx.Tx).CountLanes(ctx, scheduleLanes(), ownerID)
}

// DueSchedules reads up to limit schedules of an owner that are switched on and
// come due before an instant, the soonest first. An empty owner is everybody.
func (tx Tx) DueSchedules(ctx context.Context, ownerID string, before time.Time, limit int) ([]Schedule, error) {
	c := store.Where{}
	c.Add("enabled = 1 and deleted_at is null and next_run_at < ?", store.Millis(before))
	if ownerID != "" {
		c.Add("owner_user_id = ?", ownerID)
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from schedules where `+text+` order by next_run_at, id`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "find schedules that are due", scanGraphSchedule)
}
