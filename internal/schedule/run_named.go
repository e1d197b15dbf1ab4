package schedule

import (
	"context"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// RunNamed is RunNow for the schedule of an owner that has the name.
func (s *Service) RunNamed(ctx context.Context, tx *store.Tx, ownerID, name, by string) (schedulestore.Slot, error) {
	sch, err := schedulestore.In(tx).ScheduleByName(ctx, ownerID, name)
	if err != nil {
		return schedulestore.Slot{}, err
	}
	return s.RunNow(ctx, tx, ownerID, sch.ID, by)
}
