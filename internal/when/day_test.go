package when

import (
	"testing"
	"time"
)

func TestDayIn(t *testing.T) {
	for _, c := range []struct{ zone, at, first, next string }{
		{"UTC", "2030-01-02T00:00:00Z", "2030-01-02T00:00:00Z", "2030-01-03T00:00:00Z"},
		{"UTC", "1969-12-31T23:59:59Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"Europe/Berlin", "2030-01-01T22:59:59Z", "2029-12-31T23:00:00Z", "2030-01-01T23:00:00Z"},
		{"Europe/Berlin", "2030-10-27T12:00:00Z", "2030-10-26T22:00:00Z", "2030-10-27T23:00:00Z"},
		{"America/Santiago", "2030-09-08T03:59:59Z", "2030-09-07T04:00:00Z", "2030-09-08T04:00:00Z"},
		{"America/Havana", "2029-11-04T04:30:00Z", "2029-11-04T04:00:00Z", "2029-11-05T05:00:00Z"}, // the first of two half past twelves
		{"America/Havana", "2029-11-04T05:30:00Z", "2029-11-04T04:00:00Z", "2029-11-05T05:00:00Z"},
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},     // the day after it was left out
		{"America/St_Johns", "2010-11-07T02:31:30Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"}, // a minute after midnight clocks went back over it
		{"America/St_Johns", "2010-11-07T02:45:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"}, // the clock shows the day before once more
	} {
		zone, err := LoadZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		first, next := DayIn(at, zone)
		if first.Format(time.RFC3339) != c.first || next.Format(time.RFC3339) != c.next || first.After(at) || !next.After(at) {
			t.Errorf("%s in %s: %s to %s, not %s to %s", c.at, c.zone, first.Format(time.RFC3339), next.Format(time.RFC3339), c.first, c.next)
		}
	}
}
