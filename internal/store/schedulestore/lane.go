package schedulestore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// FindSchedules reads up to limit schedules that fit, by name and id, those after
// the given one.
func (tx Tx) FindSchedules(ctx context.Context, f runstore.LaneFilter, afterName, afterID string, limit int) ([]Schedule, error) {
	rows, err := runstore.In(tx.Tx).FindLanes(ctx, pawl.KindSchedule, "schedules", store.Prefixed("t", graphScheduleColumns), f, afterName, afterID, limit)
	return store.ScanAll(rows, err, "find schedules", scanGraphSchedule)
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
