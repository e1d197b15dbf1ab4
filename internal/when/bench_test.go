package when

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	after := time.Date(2026, 5, 14, 4, 53, 7, 0, time.UTC)
	for _, bm := range []struct{ name, expression, zone string }{
		{"every minute UTC", "* * * * *", ""},
		{"weekdays Berlin", "0 9 * * 1-5", "Europe/Berlin"},
		{"last day Berlin", "30 2 L * *", "Europe/Berlin"},
		{"yearly New York", "0 0 1 1 *", "America/New_York"},
		{"leap Sunday Berlin", "0 0 29 2 */7", "Europe/Berlin"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := mustCron(b, bm.expression, bm.zone)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(after)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCron(b, "0 9 * * 1-5", "Europe/Berlin")
	}
}

func BenchmarkCron(b *testing.B) {
	zone, err := LoadZone("Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Cron("0 9 * * 1-5", zone); err != nil {
			b.Fatal(err)
		}
	}
}
