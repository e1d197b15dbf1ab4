package when

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

// C-26: a zone is an IANA name, and nothing that depends on the machine.
func TestLoadZoneRefusesWhatIsNoIANAName(t *testing.T) {
	for name, hint := range map[string]string{
		"Local":                   "not allowed",
		"localtime":               "not allowed",
		"../etc/passwd":           "IANA",
		"/etc/passwd":             "IANA",
		"Europe/../../etc/passwd": "IANA",
		"Europe/":                 "IANA",
		"/":                       "IANA",
		"America/Argentina":       "IANA",
		"posix/Europe/Berlin":     "did you mean Europe/Berlin?",
		"right/Europe/Berlin":     "did you mean Europe/Berlin?",
		"Europe\\Berlin":          "did you mean Europe/Berlin?",
		"Europe/Berlin\x00":       "did you mean Europe/Berlin?",
		"zone.tab":                "IANA",
		"posixrules":              "IANA",
		"europe/berlin":           "did you mean Europe/Berlin?",
		"Europe/BERLIN":           "did you mean Europe/Berlin?",
		"utc":                     "did you mean UTC?",
		"Berlin":                  "did you mean Europe/Berlin?",
		"new york":                "did you mean America/New_York?",
		"Europe/Berlni":           "did you mean Europe/Berlin?",
		"Europe/Breiln":           "did you mean Europe/Berlin?",
		"Europe/Zürich":           "did you mean Europe/Zurich?",
		"PST":                     "did you mean America/Los_Angeles?",
		"CEST":                    "did you mean Europe/Berlin?",
		"Mars/Olympus_Mons":       "IANA",
		"+02:00":                  "IANA",
		" ":                       "IANA",
		strings.Repeat("A", 9999): "IANA",
	} {
		zone, err := LoadZone(name)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || !strings.HasPrefix(e.Msg, "unknown time zone ") {
			t.Errorf("LoadZone(%.80q) = %v, %v; want an unknown time zone", name, zone, err)
			continue
		}
		if !strings.Contains(e.Hint, hint) || len(e.Msg) > 120 {
			t.Errorf("LoadZone(%.80q): message %q, hint %q; want %q", name, e.Msg, e.Hint, hint)
		}
	}
}

// Only such a name may reach time.LoadLocation, which opens files.
func TestIsZoneNameIsStrict(t *testing.T) {
	for name, want := range map[string]bool{
		"Europe/Berlin":                  true,
		"Etc/GMT+5":                      true,
		"Asia/Younger_Than_This_Program": true,
		"Asia/tokyo":                     false,
		"Asia/TOKYO":                     false,
		"Asia":                           false,
		"Africa/Abidjan\nAfrica/Accra":   false,
		"Asia/A/../../../../etc/passwd":  false,
		"Asia/A.b":                       false,
		"etc/passwd":                     false,
		"right/UTC":                      false,
	} {
		if got := isZoneName(name); got != want {
			t.Errorf("isZoneName(%q) = %v", name, got)
		}
	}
}

// the default is UTC.
func TestLoadZoneTakesEmptyForUTC(t *testing.T) {
	for _, name := range []string{"", "UTC"} {
		if zone, err := LoadZone(name); err != nil || zone != time.UTC {
			t.Errorf("LoadZone(%q) = %v, %v", name, zone, err)
		}
	}
}

func TestZoneNamesAreSortedAndLoad(t *testing.T) {
	names := strings.Fields(zoneNames)
	if !slices.IsSorted(names) || len(names) < 590 {
		t.Fatalf("%d names, sorted: %v", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if zone, err := LoadZone(name); err != nil || zone.String() != name {
			t.Errorf("LoadZone(%q) = %v, %v", name, zone, err)
		}
	}
}

// C-74, X-47: in every zone of the database, Next strictly increases around
// every clock change of 2020-2040 and from month to month between them, and
// agrees with the oracle about each change.
func TestNextIncreasesInEveryZoneFrom2020To2040(t *testing.T) {
	names := make(chan string)
	var seen sync.Map // of clockWindow: many zones change alike, and one look at each is enough
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for name := range names {
				checkZone(t, name, &seen)
			}
		})
	}
	for name := range strings.FieldsSeq(zoneNames) {
		names <- name
	}
	close(names)
	workers.Wait()
}

// clockWindow is all that decides what happens around a change.
type clockWindow struct {
	at            int64 // seconds since 1970
	before, after int   // offsets in seconds
}

func checkZone(t *testing.T, name string, seen *sync.Map) {
	from, to := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2041, 1, 3, 0, 0, 0, 0, time.UTC)
	zone, err := LoadZone(name)
	if err != nil {
		t.Error(err)
		return
	}
	for _, expression := range []string{"@monthly", "30 2 L * *", "0 */5 29 2 *", "59 23 31 12 *"} {
		checkIncreases(t, expression, zone, from, to)
	}
	changes := offsetChanges(from, to, zone)
	changes = append(changes, time.Date(2040, 12, 31, 12, 0, 0, 0, time.UTC)) // where ZoneBounds errs
	for _, e := range zoneShapes() {
		for _, at := range changes {
			checkIncreases(t, e.String(), zone, at.Add(-3*time.Hour), at.Add(2*time.Hour))
		}
	}
	for _, at := range changes {
		_, before := at.Add(-time.Second).In(zone).Zone()
		_, after := at.In(zone).Zone()
		if _, known := seen.LoadOrStore(clockWindow{at.Unix(), before, after}, true); !known {
			checkChange(t, at, zone)
		}
	}
}

// checkIncreases walks from one instant to another.
func checkIncreases(t *testing.T, expression string, zone *time.Location, from, to time.Time) {
	s, err := Cron(expression, zone)
	if err != nil {
		t.Error(err)
		return
	}
	for at := from; at.Before(to); {
		next, ok := s.Next(at)
		if !ok || !next.After(at) || next.Sub(at) > 5*366*24*time.Hour {
			t.Errorf("%s: %v, %v after %v", s, next, ok, at)
			return
		}
		at = next
	}
}

// checkChange compares the hours around a change with the oracle.
func checkChange(t *testing.T, at time.Time, zone *time.Location) {
	minutes := wallMinutes(at.Add(-9*time.Hour), at.Add(4*time.Hour), zone)
	for _, e := range zoneShapes() {
		s, err := Cron(e.String(), zone)
		if err != nil {
			t.Error(err)
			return
		}
		compareWithOracle(goroutineT{t}, s, e, minutes)
	}
}

// goroutineT reports an error where compareWithOracle would end the test,
// which only the goroutine that runs it may do.
type goroutineT struct{ *testing.T }

func (t goroutineT) Fatalf(format string, args ...any) { t.Errorf(format, args...) }

// zoneShapes are fixed and wildcard expressions in and around the hours in
// which clocks change.
func zoneShapes() []oracleExpr {
	every := oracleField{"*", func(time.Time) bool { return true }}
	in := func(text string, of func(time.Time) int, values ...int) oracleField {
		return oracleField{text, func(wall time.Time) bool { return slices.Contains(values, of(wall)) }}
	}
	days := oracleExpr{dom: every, month: every, dow: every}
	with := func(minute, hour oracleField) oracleExpr {
		e := days
		e.minute, e.hour = minute, hour
		return e
	}
	minute, hour := time.Time.Minute, time.Time.Hour
	return []oracleExpr{
		with(in("30", minute, 30), in("2", hour, 2)),
		with(in("0", minute, 0), in("0", hour, 0)),
		with(in("5,45", minute, 5, 45), in("0-4,22,23", hour, 0, 1, 2, 3, 4, 22, 23)),
		with(in("*/15", minute, 0, 15, 30, 45), in("1-3", hour, 1, 2, 3)),
		with(in("0", minute, 0), every),
		with(in("*/5", minute, 0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55), every),
	}
}
