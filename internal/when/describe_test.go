package when

import (
	"testing"
	"time"
)

// frequency and daily time in plain words.
func TestDescribeSaysItInWords(t *testing.T) {
	tests := []struct{ expression, zone, want string }{
		{"0 9 * * *", "Europe/Berlin", "Daily at 09:00 Berlin time"},
		{"0 9 * * *", "", "Daily at 09:00 UTC"},
		{"0 9 * * *", "Etc/UTC", "Daily at 09:00 UTC"},
		{"0 9 * * *", "Etc/GMT+5", "Daily at 09:00 Etc/GMT+5"},
		{"0 9 * * *", "EST5EDT", "Daily at 09:00 EST5EDT"},
		{"0 9 * * *", "America/Argentina/Buenos_Aires", "Daily at 09:00 Buenos Aires time"},
		{"@daily", "", "Daily at 00:00 UTC"},
		{"0 9,17 * * *", "", "Daily at 09:00 and 17:00 UTC"},
		{"0 */6 * * *", "", "Daily at 00:00, 06:00, 12:00 and 18:00 UTC"},
		{"59 23 * * *", "", "Daily at 23:59 UTC"},
		{"0 9 * * 1-5", "Europe/Berlin", "Mondays to Fridays at 09:00 Berlin time"},
		{"0 9 * * MON,WED,FRI", "Europe/Berlin", "Mondays, Wednesdays and Fridays at 09:00 Berlin time"},
		{"0 9 * * 0,6", "Europe/Berlin", "Saturdays and Sundays at 09:00 Berlin time"},
		{"0 9 * * 5-7", "Europe/Berlin", "Fridays to Sundays at 09:00 Berlin time"},
		{"@weekly", "", "Sundays at 00:00 UTC"},
		{"0 9 * 3 1-5", "", "Mondays to Fridays in March at 09:00 UTC"},
		{"0 9 * 3-5,12 *", "", "Daily in March, April, May and December at 09:00 UTC"},
		{"0 9 * 3-5 *", "", "Daily in March to May at 09:00 UTC"},
		{"15 * * * *", "", "Hourly at :15"},
		{"15 * * * *", "Europe/Berlin", "Hourly at :15"},
		{"15 * * * *", "Asia/Kathmandu", "Hourly at :15 Kathmandu time"},
		{"15 * * * *", "Australia/Lord_Howe", "Hourly at :15 Lord Howe time"},
		{"15 * * * 1", "Europe/Berlin", "Hourly at :15 Berlin time on Mondays"},
		{"@hourly", "", "Hourly at :00"},
		{"* * * * *", "", "Every minute"},
		{"*/5 * * * *", "Europe/Berlin", "Every 5 minutes"},
		{"0,30 * * * *", "", "Every 30 minutes"},
		{"*/5 * * * MON-FRI", "Europe/Berlin", "Every 5 minutes on Mondays to Fridays, Berlin time"},
		{"*/5 * L * *", "", "Every 5 minutes on the last day of the month, UTC"},
		{"*/15 9-17 * * 1-5", "Europe/Berlin", "Every 15 minutes from 09:00 to 17:45 Berlin time on Mondays to Fridays"},
		{"* 2 * * *", "", "Every minute from 02:00 to 02:59 UTC"},
		{"30 9-17 * * *", "", "Hourly from 09:30 to 17:30 UTC"},
		{"15 */2 * * *", "Europe/Berlin", "Every 2 hours from 00:15 Berlin time"},
		{"0 0 L * *", "", "On the last day of the month at 00:00 UTC"},
		{"0 0 L-3 * *", "", "On the 4th to last day of the month at 00:00 UTC"},
		{"0 0 1,15,L * *", "", "On the 1st, 15th and last day of the month at 00:00 UTC"},
		{"0 0 1-7 * *", "", "On the 1st to 7th of the month at 00:00 UTC"},
		{"0 0 2,3,11,22 * *", "", "On the 2nd, 3rd, 11th and 22nd of the month at 00:00 UTC"},
		{"@monthly", "", "On the 1st of the month at 00:00 UTC"},
		{"@yearly", "", "On the 1st of January at 00:00 UTC"},
		{"0 0 L 2,8 *", "", "On the last day of February and August at 00:00 UTC"},
		{"0 0 * * 5#2", "", "On the 2nd Friday of the month at 00:00 UTC"},
		{"0 0 * * 5L,1#1", "", "On the 1st Monday and last Friday of the month at 00:00 UTC"},
		{"0 0 1 * 1", "Europe/Berlin", `Cron "0 0 1 * 1" in Europe/Berlin`},
		{"*/7 * * * *", "", `Cron "*/7 * * * *" in UTC`},
		{"1,2,3,4,5 0 * * *", "", `Cron "1,2,3,4,5 0 * * *" in UTC`},
		{"0 0 1,3,5,7,9 * *", "", `Cron "0 0 1,3,5,7,9 * *" in UTC`},
		{"0 0 */2 * *", "", `Cron "0 0 */2 * *" in UTC`},
		{"0 0 * * 1,5L", "", `Cron "0 0 * * 1,5L" in UTC`},
		{"0 */5 * * *", "", `Cron "0 */5 * * *" in UTC`},
	}
	for _, tt := range tests {
		if got := mustCron(t, tt.expression, tt.zone).Describe(); got != tt.want {
			t.Errorf("%q in %q: %q, want %q", tt.expression, tt.zone, got, tt.want)
		}
	}
}

// frequency of intervals.
func TestDescribeSaysIntervalsInWords(t *testing.T) {
	for text, want := range map[string]string{
		"1s":      "Every second",
		"90s":     "Every 90 seconds",
		"60s":     "Every minute",
		"5m":      "Every 5 minutes",
		"90m":     "Every 90 minutes",
		"1h":      "Every hour",
		"36h":     "Every 36 hours",
		"24h":     "Every day",
		"7d":      "Every 7 days",
		"365d":    "Every 365 days",
		"7d12h":   "Every 7 days 12 hours",
		"1h1s":    "Every 1 hour 1 second",
		"101m":    "Every 1 hour 41 minutes",
		"1d0h30s": "Every 1 day 30 seconds",
	} {
		s, err := Parse(KindInterval, text, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Describe(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := (Schedule{}).Describe(); got != "Not scheduled" {
		t.Errorf("zero: %q", got)
	}
}

// countdown to the next check.
func TestUntilCountsDown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		-time.Hour:                  "due now",
		0:                           "due now",
		time.Nanosecond:             "Next in 1 s",
		30 * time.Second:            "Next in 30 s",
		58*time.Second + 1:          "Next in 59 s",
		59*time.Second + 1:          "Next in 1 min",
		time.Minute:                 "Next in 1 min",
		89 * time.Second:            "Next in 1 min",
		3*time.Minute - 1:           "Next in 3 min",
		time.Hour - time.Second:     "Next in 1 h",
		2*time.Hour + 5*time.Minute: "Next in 2 h 5 min",
		day - 31*time.Second:        "Next in 23 h 59 min",
		day - 30*time.Second:        "Next in 1 d",
		day + 2*time.Hour:           "Next in 1 d 2 h",
		400*day + 59*time.Minute:    "Next in 400 d 1 h",
		2*day - 20*time.Minute:      "Next in 2 d",
	} {
		if got := Until(now, now.Add(left)); got != want {
			t.Errorf("Until %v: %q, want %q", left, got, want)
		}
	}
	if got := Until(now, time.Time{}); got != "not scheduled" {
		t.Errorf("no next: %q", got)
	}
}
