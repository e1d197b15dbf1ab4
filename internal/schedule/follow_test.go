package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/when"
)

func at(minute int) time.Time { return time.Date(2000, 1, 1, 0, minute, 0, 0, time.UTC) }

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
		f := follow(c.policy, c.due, at(9))
		got, want := fmt.Sprint(f.passed, f.disposition, f.next), fmt.Sprint(c.passed, c.why, c.next)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.policy, c.due, diff)
		}
	}
}

// what came due while nobody was there is lost unless the definition says
// otherwise, and never what came due a moment ago.
func TestCatchUpSortsByPolicy(t *testing.T) {
	now := at(10).Add(10 * time.Second)
	for _, c := range []struct {
		name, policy       string
		from               time.Time
		due                []time.Time
		lost, later, fresh []time.Time
	}{
		{"nothing", missedAll, time.Time{}, nil, nil, nil, nil},
		{"skip", missedSkip, time.Time{}, minutes(1, 2), minutes(1, 2), nil, nil},
		{"skip keeps what is fresh", missedSkip, time.Time{}, minutes(1, 10), minutes(1), nil, minutes(10)},
		{"last", missedLast, time.Time{}, minutes(1, 2, 3), minutes(1, 2), minutes(3), nil},
		{"last, which is fresh", missedLast, time.Time{}, minutes(1, 2, 10), minutes(1, 2), nil, minutes(10)},
		{"last, too old", missedLast, at(5), minutes(1, 2), minutes(1, 2), nil, nil},
		{"last of those within", missedLast, at(2), minutes(1, 2, 3), minutes(1, 2), minutes(3), nil},
		{"all", missedAll, time.Time{}, minutes(1, 2, 10), nil, minutes(1, 2), minutes(10)},
		{"all within", missedAll, at(2), minutes(1, 2, 3), minutes(1), minutes(2, 3), nil},
	} {
		got := catchUp(c.policy, c.from, c.due, now)
		if diff := cmp.Diff(fmt.Sprint(c.lost, c.later, c.fresh), fmt.Sprint(got.lost, got.later, got.fresh)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	many := make([]time.Time, maxRecorded+3)
	for i := range many {
		many[i] = at(-len(many) + i)
	}
	if got := catchUp(missedAll, time.Time{}, many, now); len(got.later) != maxRecorded || len(got.lost) != 3 || !got.later[maxRecorded-1].Equal(at(-1)) {
		t.Errorf("of %d %d are lost and %d run later", len(many), len(got.lost), len(got.later))
	}
}

// C-74: the next instant is in the future, and of very many that passed the
// latest are told one by one.
func TestDueBetweenIsBounded(t *testing.T) {
	schedule, err := when.Parse(when.KindCron, "* * * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	due, next := dueBetween(schedule, at(0), at(3))
	if diff := cmp.Diff(minutes(1, 2, 3), due); diff != "" || !next.Equal(at(4)) {
		t.Errorf("next %s, due (-want +got):\n%s", next, diff)
	}
	due, next = dueBetween(schedule, at(0), at(100_000))
	if n := len(due); n < maxRecorded || n > 2*maxRecorded || !due[n-1].Equal(at(100_000)) || !next.Equal(at(100_001)) {
		t.Errorf("%d are due until %s, next %s", n, due[n-1], next)
	}
}
