package when

import (
	"testing"
	"time"
)

// a person sees which instants are on a day on which clocks change.
func TestPreviewMarksDaysOnWhichClocksChange(t *testing.T) {
	tests := []struct {
		expression, zone, after string
		want                    []Instant
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", []Instant{
			{Local: "2026-03-28T02:30:00+01:00"},
			{Local: "2026-03-29T03:00:00+02:00", ClockChange: "clocks go forward 1 h at 02:00"},
			{Local: "2026-03-30T02:30:00+02:00"},
		}},
		{"0 0,23 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []Instant{
			{Local: "2026-10-24T23:00:00+02:00"},
			{Local: "2026-10-25T00:00:00+02:00", ClockChange: "clocks go back 1 h at 03:00"},
			{Local: "2026-10-25T23:00:00+01:00", ClockChange: "clocks go back 1 h at 03:00"},
			{Local: "2026-10-26T00:00:00+01:00"},
		}},
		{"0 12 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", []Instant{
			{Local: "2026-10-04T12:00:00+11:00", ClockChange: "clocks go forward 30 min at 02:00"},
		}},
		{"0 12 * * *", "Antarctica/Troll", "2026-03-28T13:00:00Z", []Instant{
			{Local: "2026-03-29T12:00:00+02:00", ClockChange: "clocks go forward 2 h at 01:00"},
		}},
		// Midnight back to 23:00: the day with 25 hours is the one that ends.
		{"0 12 * * *", "America/Santiago", "2026-04-04T00:00:00Z", []Instant{
			{Local: "2026-04-04T12:00:00-03:00", ClockChange: "clocks go back 1 h at 24:00"},
			{Local: "2026-04-05T12:00:00-04:00"},
		}},
		// Midnight on to 01:00: the day with 23 hours is the one that begins.
		{"0 12 * * *", "America/Havana", "2026-03-07T12:00:00Z", []Instant{
			{Local: "2026-03-07T12:00:00-05:00"},
			{Local: "2026-03-08T12:00:00-04:00", ClockChange: "clocks go forward 1 h at 00:00"},
		}},
		{"0 12 * * *", "", "2026-03-28T12:00:00Z", []Instant{
			{Local: "2026-03-29T12:00:00Z"},
		}},
		{"0 12 31 12 *", "Europe/Berlin", "2040-01-01T00:00:00Z", []Instant{
			{Local: "2040-12-31T12:00:00+01:00"},
		}},
	}
	for _, tt := range tests {
		s := mustCron(t, tt.expression, tt.zone)
		got := s.Preview(mustTime(t, tt.after), len(tt.want))
		if len(got) != len(tt.want) {
			t.Fatalf("%s: %d instants, want %d", s, len(got), len(tt.want))
		}
		for i, want := range tt.want {
			want.Time = mustTime(t, want.Local).UTC()
			if got[i] != want {
				t.Errorf("%s:\n got %+v\nwant %+v", s, got[i], want)
			}
		}
	}
}

func TestPreviewOfAnIntervalIsInUTC(t *testing.T) {
	s, err := Every(90 * time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Preview(time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), 2)
	if len(got) != 2 || got[1].Local != "2026-03-29T03:00:00Z" || got[1].ClockChange != "" {
		t.Errorf("got %+v", got)
	}
}
