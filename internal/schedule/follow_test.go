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
// policy, and while nobody was there, whatever the policy.
func TestFollowDecidesByPolicy(t *testing.T) {
	for _, c := range []struct {
		policy pawl.ConcurrencyPolicy
		due    []time.Time
		late   bool
		passed []time.Time
		why    run.Disposition
		next   time.Time
	}{
		{pawl.PolicyQueue, nil, false, nil, "", at(9)},
		{pawl.PolicyQueue, minutes(1), false, minutes(), run.DispositionCoalesced, at(1)},
		{pawl.PolicyQueue, minutes(1, 2, 3), false, minutes(2, 3), run.DispositionCoalesced, at(1)},
		{pawl.PolicyForbid, minutes(1, 2), false, minutes(1, 2), run.DispositionSkippedOverlap, at(9)},
		{pawl.PolicyAllow, minutes(1, 2), false, nil, "", at(1)},
		{pawl.PolicyReplace, minutes(1, 2), false, minutes(1), run.DispositionCoalesced, at(2)},
		{pawl.PolicyQueue, minutes(1, 2), true, minutes(1, 2), run.DispositionSkippedMissed, at(9)},
		{pawl.PolicyAllow, minutes(1), true, minutes(1), run.DispositionSkippedMissed, at(9)},
		{pawl.PolicyReplace, nil, true, nil, "", at(9)},
	} {
		f := follow(c.policy, c.due, at(9), c.late)
		got, want := fmt.Sprint(f.passed, f.disposition, f.next), fmt.Sprint(c.passed, c.why, c.next)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %v late %v (-want +got):\n%s", c.policy, c.due, c.late, diff)
		}
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
