package pawl_test

import (
	"testing"

	"github.com/pawlrun/pawl"
)

func TestSlipsCountsWhatAPersonMistypes(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     int
	}{
		{"", "", 0}, {"jobs", "jobs", 0}, {"", "jobs", 4},
		{"job", "jobs", 1}, {"jobss", "jobs", 1}, {"jabs", "jobs", 1},
		{"ojbs", "jobs", 1}, // swapped
		{"zürich", "zurich", 1}, {"workfows", "workflows", 1}, {"abc", "xyz", 3},
	} {
		if got := pawl.EditDistance(test.from, test.to); got != test.want || pawl.EditDistance(test.to, test.from) != test.want {
			t.Errorf("from %q to %q: %d, not %d", test.from, test.to, got, test.want)
		}
	}
}
