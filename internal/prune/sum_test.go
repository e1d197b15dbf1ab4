package prune

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/retention"
)

// What was removed of a lane is summed up, with the age of the oldest.
func TestTheSumNamesTheOldest(t *testing.T) {
	p := &pass{sums: map[sumKey]*Removed{}}
	p.o.Dry = true
	now := time.Unix(1_900_000_000, 0)
	for _, age := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
		p.count(Removed{Kind: retention.Runs, Rows: 1, Bytes: 5, Oldest: now.Add(-age)})
	}
	if list := p.total(); len(list) != 1 || list[0].Rows != 3 || list[0].Bytes != 15 || !list[0].Oldest.Equal(now.Add(-3*time.Hour)) {
		t.Errorf("the sum is %+v", list)
	}
}
