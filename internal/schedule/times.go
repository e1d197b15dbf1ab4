package schedule

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// Next lists the next instants of a schedule, with clock changes marked, and its
// times in words.
func (s *Service) Next(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, after time.Time, count int) ([]when.Instant, string, error) {
	times, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return nil, "", err
	}
	if sch.MaxRuns > 0 {
		count = int(min(int64(count), max(0, sch.MaxRuns-sch.Begun)))
	}
	return times.Preview(after, count), wordsOf(sch, times), nil
}

// wordsOf are when a schedule is due, in words.
func wordsOf(sch schedulestore.Schedule, times when.Schedule) string {
	switch {
	case times.Kind() == "": // its zone was lost since it was checked
		return sch.Cron
	case sch.MaxRuns == 1:
		return times.Describe() + ", once"
	case sch.MaxRuns > 0:
		return times.Describe() + ", " + fmt.Sprintf("%d times", sch.MaxRuns)
	}
	return times.Describe()
}

func (d Details) timesInWords() string { return wordsOf(d.Row, d.times) }

// knownTimes is timesOf, and zero if a zone was lost since it was checked.
func (s *Service) knownTimes(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (when.Schedule, error) {
	times, err := s.timesOf(ctx, tx, sch)
	if pawl.ErrorCode(err) == pawl.CodeInvalid {
		return when.Schedule{}, nil
	}
	return times, err
}

// mostCounted is how many slots of a schedule that ends after some are looked at
// for its end.
const mostCounted = 100

// comingTimes is knownTimes without the instants that maxRuns leaves out.
func (s *Service) comingTimes(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, parse lane.Schedules) (when.Schedule, error) {
	if sch.Timing == "" && sch.MaxRuns == 0 {
		if times, err := parse.Parse(when.KindCron, sch.Cron, sch.Timezone); err == nil { // most are of one zone
			return times, nil
		}
	}
	times, err := s.knownTimes(ctx, tx, sch)
	if left := sch.MaxRuns - sch.Begun; err == nil && sch.MaxRuns > 0 && left <= mostCounted {
		last := tx.Now
		for _, at := range times.NextN(tx.Now, int(max(0, left))) {
			last = at
		}
		times = times.Before(last.Add(time.Millisecond))
	}
	return times, err
}

// endWords says why a schedule has no further slot.
func (d Details) endWords(now time.Time) string {
	switch _, more := d.times.Next(now); {
	case more || d.times.Kind() == "":
		return ""
	case d.times.Kind() == when.KindOnce:
		return ": it was to run once"
	}
	return ": it has ended"
}
