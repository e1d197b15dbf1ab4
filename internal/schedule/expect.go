package schedule

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

// Subject tells what a schedule did, for whoever judges that.
func (s *Service) Subject(ctx context.Context, tx *store.Tx, l runstore.Lane) (lane.Subject, error) {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, l.ID)
	if err != nil {
		return lane.Subject{}, err
	}
	out := lane.Subject{Ref: refOf(sch.ID, sch.Name), Rests: !sch.Enabled}
	times, err := s.comingTimes(ctx, tx, sch, lane.Schedules{})
	if err != nil {
		return out, err
	}
	out.Repeats, out.Zone = []lane.Due{{Ref: out.Ref, Schedule: times}}, zoneOf(sch)
	out.Success, err = runstore.In(tx).LatestSuccess(ctx, pawl.KindSchedule, sch.ID)
	return out, err
}

func zoneOf(sch schedulestore.Schedule) *time.Location {
	zone, err := when.LoadZone(sch.Timezone)
	if err != nil { // it was lost since it was checked
		return time.UTC
	}
	return zone
}

// StoodWell reports whether a slot of a time in [from, to) succeeded.
func (s *Service) StoodWell(ctx context.Context, tx *store.Tx, _ lane.Subject, l runstore.Lane, from, to time.Time) (bool, error) {
	return schedulestore.In(tx).SlotSucceeded(ctx, l.ID, from, to)
}

// CountStarts counts the last slots that began, and the late ones.
func (s *Service) CountStarts(ctx context.Context, tx *store.Tx, of lane.Subject, l runstore.Lane, since time.Time, limit int) (starts, late int, err error) {
	return schedulestore.CountStarts(ctx, tx, l.ID, since, limit, terms.Punctual+of.Repeats[0].Schedule.Jitter())
}

// Fetches reads how many rows the last slots told of that succeeded and were for a time
// before an instant. Those of backfills stand for the past, and are left out.
func (s *Service) Fetches(ctx context.Context, tx *store.Tx, l runstore.Lane, _ string, before time.Time, limit int) ([]lane.Fetch, error) {
	list, err := schedulestore.LatestBrought(ctx, tx, l.ID, before, limit)
	out := make([]lane.Fetch, len(list))
	for i, b := range list {
		out[i] = lane.Fetch{EndedAt: b.EndedAt, Rows: b.Rows, Untold: !b.Told}
	}
	return out, err
}
