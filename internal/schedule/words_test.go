package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// A schedule whose zone was lost says what was written; another one says its times, and
// how often.
func TestTimesInWords(t *testing.T) {
	hourly, err := when.Every(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range []struct {
		times when.Schedule
		most  int64
		want  string
	}{
		{when.Schedule{}, 0, "0 * * * *"},
		{hourly, 0, hourly.Describe()},
		{hourly, 1, hourly.Describe() + ", once"},
		{hourly, 3, hourly.Describe() + ", 3 times"},
	} {
		if got := wordsOf(schedulestore.Schedule{Cron: "0 * * * *", MaxRuns: c.most}, c.times); got != c.want {
			t.Errorf("%d: %q, want %q", n, got, c.want)
		}
	}
}

// What is next is what has not begun, and not what should have begun by now.
func TestNextIsNotInThePast(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	slot := func(status run.SlotStatus, in time.Duration) schedulestore.Slot {
		return schedulestore.Slot{Status: string(status), ScheduledFor: now.Add(in), Trigger: "person"}
	}
	row := schedulestore.Schedule{Enabled: true, NextRunAt: now.Add(time.Hour)}
	for n, c := range []struct {
		open []schedulestore.Slot
		row  schedulestore.Schedule
		want time.Time
	}{
		{nil, row, now.Add(time.Hour)},
		{nil, schedulestore.Schedule{NextRunAt: now.Add(time.Hour)}, time.Time{}},
		{[]schedulestore.Slot{slot(run.SlotPending, -time.Minute)}, row, now.Add(time.Hour)},
		{[]schedulestore.Slot{slot(run.SlotPending, time.Minute)}, row, now.Add(time.Minute)},
		{[]schedulestore.Slot{slot(run.SlotRunning, time.Minute)}, row, now.Add(time.Hour)},
		{[]schedulestore.Slot{slot(run.SlotPending, -time.Minute)}, schedulestore.Schedule{Enabled: true, NextRunAt: now.Add(-time.Hour)}, time.Time{}},
	} {
		if got := (Details{Row: c.row, Open: c.open}).nextAt(now); !got.Equal(c.want) {
			t.Errorf("%d: %v, want %v", n, got, c.want)
		}
	}
}

// The bounds of attempts hold from both sides.
func TestAttemptsOfARetryAreBounded(t *testing.T) {
	for attempts, good := range map[int]bool{-1: false, 0: false, 1: true, 100: true, 101: false} {
		var faults []string
		var r Rules
		if err := json.Unmarshal(fmt.Appendf(nil, `{"retry":{"attempts":%d}}`, attempts), &r); err != nil {
			t.Fatal(err)
		}
		r.check(func(pointer, _ string, _ ...any) { faults = append(faults, pointer) })
		if slices.Contains(faults, "/retry/attempts") == good {
			t.Errorf("%d: %v", attempts, faults)
		}
	}
}
