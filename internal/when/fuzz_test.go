package when

import (
	"strings"
	"testing"
	"time"
)

// FuzzParseInterval: what is read is at least a second long, and is read the same
// when it is written.
func FuzzParseInterval(f *testing.F) {
	for _, text := range []string{"90s", "1h30m", "7d12h", "0s", "1m1h", "99999999999999999999d", "5", "-1s", "1.5h", "106751d23h47m16s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseInterval(text)
		if err != nil {
			return
		}
		again, err := ParseInterval(FormatInterval(d))
		if d < time.Second || err != nil || again != d {
			t.Fatalf("%q is %v, written %s, read %v, %v", text, d, FormatInterval(d), again, err)
		}
	})
}

// FuzzNewCalendar: a calendar that is read has every day that it names.
func FuzzNewCalendar(f *testing.F) {
	for _, text := range []string{"2026-12-25", "2026-12-24/2027-01-01", "2026-02-30", "2027-01-01/2026-12-24", "0000-00-00", "2026-12-24/", "9999-12-31/9999-12-31"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := NewCalendar(strings.Split(text, "\n"))
		if err != nil {
			return
		}
		if n := c.Days(); n < 1 || n > 4_000_000 {
			t.Fatalf("%q has %d days", text, n)
		}
	})
}

// FuzzLoadZone: a zone is one of the list of the world or refused, whatever the
// name looks like as a path.
func FuzzLoadZone(f *testing.F) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Local", "", "../../etc/passwd", "/etc/localtime", "europe/berlin", "Etc/GMT+5", "EST\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := LoadZone(name)
		if err != nil {
			return
		}
		if strings.Contains(name, "..") || strings.HasPrefix(name, "/") || name == "Local" || zone == nil {
			t.Fatalf("%q is the zone %v", name, zone)
		}
	})
}
