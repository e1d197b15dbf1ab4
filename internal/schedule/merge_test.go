package schedule

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// An expectation that says nothing is none: stored as one, it would make a change
// of every schedule that is applied again.
func TestAnEmptyExpectationIsNone(t *testing.T) {
	terms := Terms{Expect: &client.Expect{}}
	mergeTerms(&terms, client.SchedulePatch{Expect: &client.Expect{}})
	if terms.Expect != nil {
		t.Errorf("kept as %+v", terms.Expect)
	}
}

// The slot that uses up the number of runs has none after it; the one before has.
func TestTheLastOfSoManyRunsHasNoNext(t *testing.T) {
	times, err := when.Every(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_900_000_000, 0)
	for begun, last := range map[int64]bool{1: false, 2: true, 3: true} {
		if next := nextOwn(schedulestore.Schedule{MaxRuns: 3, Begun: begun}, times, at); next.IsZero() != last {
			t.Errorf("after %d of 3 have begun the next is %v", begun+1, next)
		}
	}
}
