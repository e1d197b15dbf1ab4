package when

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known on machines without a zone database

	"github.com/pawlrun/pawl"
)

// zoneNames are the names of the embedded zone database, sorted, one a line.
//
//go:embed zones.txt
var zoneNames string

// maxZoneName bounds the name that is looked at. The longest in the database
// has 32 characters.
const maxZoneName = 64

const zoneHint = "use a name of the IANA database, such as Europe/Berlin or UTC"

// LoadZone returns the zone with an IANA name, exactly as the database spells
// it. An empty name is UTC. What depends on the machine (Local, paths, zones
// that count leap seconds) is refused.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if !isZoneName(name) {
		return nil, unknownZone(name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknownZone(name)
	}
	return zone, nil
}

// isZoneName reports whether name may be given to time.LoadLocation, which
// would otherwise open a file of that name.
func isZoneName(name string) bool {
	if len(name) > maxZoneName || strings.ContainsFunc(name, notInZoneName) {
		return false
	}
	if strings.Contains("\n"+zoneNames, "\n"+name+"\n") {
		return true
	}
	// The machine may know zones that are younger than this program. Some
	// file systems ignore case, so a name that differs in case only is none.
	area, city, _ := strings.Cut(name, "/")
	return isZoneArea(area) && city != "" && 'A' <= city[0] && city[0] <= 'Z' && sameButCase(name) == ""
}

func notInZoneName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_+-/", r)
}

// isZoneArea reports whether area is one of those that the database sorts
// cities into. Other folders next to them (posix, right) are not zones.
func isZoneArea(area string) bool {
	switch area {
	case "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific":
		return true
	}
	return false
}

// zoneWords names a zone in a sentence: Berlin time, New York time, UTC.
func zoneWords(zone *time.Location) string {
	name := zone.String()
	if name == "Etc/UTC" {
		return "UTC"
	}
	area, _, _ := strings.Cut(name, "/")
	if !isZoneArea(area) {
		return name
	}
	city := name[strings.LastIndexByte(name, '/')+1:]
	return strings.ReplaceAll(city, "_", " ") + " time"
}

// hasWholeHours reports whether the zone is whole hours away from UTC in winter
// and in summer, so that minutes of the hour are the same in both.
func hasWholeHours(zone *time.Location) bool {
	for _, month := range []time.Month{time.January, time.July} {
		if _, offset := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).In(zone).Zone(); offset%3600 != 0 {
			return false
		}
	}
	return true
}

func unknownZone(name string) error {
	hint := zoneHint
	if name == "Local" || name == "localtime" {
		hint = "the zone of the machine is not allowed, because it differs between machines; " + zoneHint
	} else if guess := similarZone(name); guess != "" {
		hint = fmt.Sprintf("did you mean %s?", guess)
	}
	if len(name) > maxZoneName {
		name = name[:maxZoneName] + "..."
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "load time zone", Msg: fmt.Sprintf("unknown time zone %q", name), Hint: hint}
}
