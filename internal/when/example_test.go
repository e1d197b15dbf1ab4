package when_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/when"
)

func ExampleNew() {
	s, err := when.New(when.Spec{Cron: "0 9 * * 1-5", Timezone: "Europe/Berlin"})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 5, 15, 8, 0, 0, 0, time.UTC) // a Friday
	next, _ := s.Next(now)
	fmt.Println(s.Describe())
	fmt.Println(next.Format(time.RFC3339))
	fmt.Println(when.Until(now, next))
	// Output:
	// Mondays to Fridays at 09:00 Berlin time
	// 2026-05-18T07:00:00Z
	// Next in 2 d 23 h
}

// The hour from 02:00 to 03:00 is repeated: a wildcard runs in both passes, a
// fixed time in the first only.
func ExampleSchedule_Preview() {
	halfPastOne := time.Date(2026, 10, 24, 23, 30, 0, 0, time.UTC) // 01:30 in Berlin
	for _, expression := range []string{"*/30 * * * *", "30 2 * * *"} {
		s, err := when.New(when.Spec{Cron: expression, Timezone: "Europe/Berlin"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s)
		for _, i := range s.Preview(halfPastOne, 5) {
			fmt.Println(strings.TrimSpace(i.Local + " " + i.ClockChange))
		}
	}
	// Output:
	// cron "*/30 * * * *" in Europe/Berlin
	// 2026-10-25T02:00:00+02:00 clocks go back 1 h at 03:00
	// 2026-10-25T02:30:00+02:00 clocks go back 1 h at 03:00
	// 2026-10-25T02:00:00+01:00 clocks go back 1 h at 03:00
	// 2026-10-25T02:30:00+01:00 clocks go back 1 h at 03:00
	// 2026-10-25T03:00:00+01:00 clocks go back 1 h at 03:00
	// cron "30 2 * * *" in Europe/Berlin
	// 2026-10-25T02:30:00+02:00 clocks go back 1 h at 03:00
	// 2026-10-26T02:30:00+01:00
	// 2026-10-27T02:30:00+01:00
	// 2026-10-28T02:30:00+01:00
	// 2026-10-29T02:30:00+01:00
}
