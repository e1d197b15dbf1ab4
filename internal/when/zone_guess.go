package when

import (
	"strings"

	"github.com/pawlrun/pawl"
)

// similarZone returns the name that was probably meant, or "".
func similarZone(name string) string {
	if len(name) > maxZoneName {
		return ""
	}
	name = strings.ReplaceAll(strings.TrimSpace(name), " ", "_")
	if guess := sameButCase(name); guess != "" {
		return guess
	}
	if guess := zoneOfAbbreviation(strings.ToUpper(name)); guess != "" {
		return guess
	}
	if guess := zoneOfCity(name); guess != "" {
		return guess
	}
	return zoneWithTypingError(name)
}

// sameButCase finds a name that differs in upper and lower case at most.
func sameButCase(name string) string {
	for known := range strings.Lines(zoneNames) {
		known = strings.TrimSuffix(known, "\n")
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

// zoneOfCity finds Europe/Berlin for Berlin, and also for DE/Berlin.
func zoneOfCity(name string) string {
	city := name[strings.LastIndexByte(name, '/')+1:]
	for known := range strings.Lines(zoneNames) {
		known = strings.TrimSuffix(known, "\n")
		if i := strings.LastIndexByte(known, '/'); i >= 0 && strings.EqualFold(known[i+1:], city) {
			return known
		}
	}
	return ""
}

// zoneOfAbbreviation knows abbreviations that people use for a zone and that
// are not names of one.
func zoneOfAbbreviation(upper string) string {
	switch upper {
	case "Z", "GMT+00:00", "+00:00":
		return "UTC"
	case "CEST", "MEZ", "MESZ":
		return "Europe/Berlin"
	case "BST":
		return "Europe/London"
	case "EDT", "ET":
		return "America/New_York"
	case "CST", "CDT", "CT":
		return "America/Chicago"
	case "MDT", "MT":
		return "America/Denver"
	case "PST", "PDT", "PT":
		return "America/Los_Angeles"
	case "IST":
		return "Asia/Kolkata"
	case "JST":
		return "Asia/Tokyo"
	case "AEST", "AEDT":
		return "Australia/Sydney"
	}
	return ""
}

// zoneWithTypingError finds the name that is at most two edits away.
func zoneWithTypingError(name string) string {
	best, fewest := "", 3
	for known := range strings.Lines(zoneNames) {
		known = strings.TrimSuffix(known, "\n")
		if len(known) < 5 || len(known)-len(name) > 2 || len(name)-len(known) > 2 {
			continue
		}
		if n := pawl.EditDistance(strings.ToLower(known), strings.ToLower(name)); n < fewest {
			best, fewest = known, n
		}
	}
	return best
}
