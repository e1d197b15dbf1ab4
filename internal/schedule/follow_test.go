package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

func at(minute int) time.Time { return time.Date(2000, 1, 1, 0, minute, 0, 0, time.UTC) }

func spans(list []time.Time) (out []span) {
	for _, at := range list {
		out = append(out, single(at))
	}
	return out
}

func firsts(list []span) (out []time.Time) {
	for _, d := range list {
		out = append(out, d.first)
	}
	return out
}

func minutes(list ...int) (out []time.Time) {
	for _, m := range list {
		out = append(out, at(m))
	}
	return out
}

// X-62, C-11: what becomes of the instants that came due while a slot ran, by
// policy.
func TestFollowDecidesByPolicy(t *testing.T) {
	for _, c := range []struct {
		policy pawl.ConcurrencyPolicy
		due    []time.Time
		passed []time.Time
		why    run.Disposition
		next   time.Time
	}{
		{pawl.PolicyQueue, nil, nil, "", at(9)},
		{pawl.PolicyQueue, minutes(1), minutes(), run.DispositionCoalesced, at(1)},
		{pawl.PolicyQueue, minutes(1, 2, 3), minutes(2, 3), run.DispositionCoalesced, at(1)},
		{pawl.PolicyForbid, minutes(1, 2), minutes(1, 2), run.DispositionSkippedOverlap, at(9)},
		{pawl.PolicyAllow, minutes(1, 2), nil, "", at(1)},
		{pawl.PolicyReplace, minutes(1, 2), minutes(1), run.DispositionCoalesced, at(2)},
	} {
		f := follow(c.policy, spans(c.due), at(9))
		got, want := fmt.Sprint(firsts(f.passed), f.disposition, f.next), fmt.Sprint(c.passed, c.why, c.next)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.policy, c.due, diff)
		}
	}
}

// what came due while nobody was there is lost unless the definition says
// otherwise, and never what came due a moment ago.
func TestCatchUpSortsByPolicy(t *testing.T) {
	now := at(10).Add(10 * time.Second)
	fresh := func(at time.Time) bool { return now.Sub(at) <= grace }
	half := at(9).Add(30 * time.Second)
	for _, c := range []struct {
		name, policy       string
		from               time.Time
		due                []time.Time
		lost, later, fresh []time.Time
	}{
		{"nothing", timing.All, time.Time{}, nil, nil, nil, nil},
		{"skip", timing.Skip, time.Time{}, minutes(1, 2), minutes(1, 2), nil, nil},
		{"skip keeps what is fresh", timing.Skip, time.Time{}, minutes(1, 10), minutes(1), nil, minutes(10)},
		{"last", timing.Last, time.Time{}, minutes(1, 2, 3), minutes(1, 2), minutes(3), nil},
		{"last, which is fresh", timing.Last, time.Time{}, minutes(1, 2, 10), minutes(1, 2), nil, minutes(10)},
		{"last of several that are fresh", timing.Last, time.Time{}, []time.Time{at(1), half, at(10)}, []time.Time{at(1), half}, nil, minutes(10)},
		{"last, too old", timing.Last, at(5), minutes(1, 2), minutes(1, 2), nil, nil},
		{"last of those within", timing.Last, at(2), minutes(1, 2, 3), minutes(1, 2), minutes(3), nil},
		{"all", timing.All, time.Time{}, minutes(1, 2, 10), nil, minutes(1, 2), minutes(10)},
		{"all of several that are fresh", timing.All, time.Time{}, []time.Time{at(1), half, at(10)}, nil, []time.Time{at(1), half}, minutes(10)},
		{"skip keeps all that are fresh", timing.Skip, time.Time{}, []time.Time{at(1), half, at(10)}, minutes(1), nil, []time.Time{half, at(10)}},
		{"all within", timing.All, at(2), minutes(1, 2, 3), minutes(1), minutes(2, 3), nil},
	} {
		got := catchUp(c.policy, c.from, spans(c.due), fresh, maxRecorded)
		if diff := cmp.Diff(fmt.Sprint(c.lost, c.later, c.fresh), fmt.Sprint(firsts(got.lost), firsts(got.later), firsts(got.fresh))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	many := make([]time.Time, maxRecorded+3)
	for i := range many {
		many[i] = at(-len(many) + i)
	}
	if got := catchUp(timing.All, time.Time{}, spans(many), fresh, maxRecorded); len(got.later) != maxRecorded || len(got.lost) != 3 || !got.later[maxRecorded-1].first.Equal(at(-1)) {
		t.Errorf("of %d %d are lost and %d run later", len(many), len(got.lost), len(got.later))
	}
}

// what starts late by its jitter came due when it was to start.
func TestJitterMakesNothingMissed(t *testing.T) {
	times, err := when.Rule{Cron: []string{"0 * * * *"}, Jitter: "50m"}.Schedule(when.Context{Seed: "s"})
	if err != nil {
		t.Fatal(err)
	}
	due := at(60)
	for times.Start(due).Sub(due) < 5*time.Minute {
		due = due.Add(time.Hour)
	}
	s := &Service{cfg: Options{record: maxRecorded}}
	if got := s.sortMissed(schedulestore.Schedule{}, times, spans([]time.Time{due}), times.Start(due).Add(grace), nil); len(got.fresh) != 1 {
		t.Errorf("a minute after its start: %+v", got)
	}
	if got := s.sortMissed(schedulestore.Schedule{}, times, spans([]time.Time{due}), times.Start(due).Add(grace+time.Second), nil); len(got.lost) != 1 {
		t.Errorf("later: %+v", got)
	}
}
