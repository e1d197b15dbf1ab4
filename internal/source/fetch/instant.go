package fetch

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// Numbers up to this are seconds since 1970, greater ones are milliseconds.
// As seconds it is the year 5138, as milliseconds it is the year 1973.
const mostSeconds = 100_000_000_000

// appendInstant appends text as a timestamp or as a date.
func appendInstant(b []byte, t spec.Type, text []byte) ([]byte, string) {
	if len(text) > 8 && looksNumeric(text) && !isDashed(text) {
		return appendUnix(b, t, text)
	}
	at, ok := parseInstant(text)
	if !ok || !storableYear(at) {
		return b, unfit(text, t)
	}
	if t == spec.Date {
		at = dateOf(at) // the date as written, in the zone as written
	}
	return appendTime(b, at), ""
}

// appendUnix appends a number of seconds or milliseconds since 1970.
func appendUnix(b []byte, t spec.Type, num []byte) ([]byte, string) {
	at, ok := parseUnix(num)
	if !ok || !storableYear(at) {
		return b, unfit(num, t)
	}
	if t == spec.Date {
		at = dateOf(at)
	}
	return appendTime(b, at), ""
}

// storableYear keeps to what both databases and their texts can hold: the
// years 1 to 9999, in seconds since 1970.
func storableYear(at time.Time) bool {
	const begin, end = -62135596800, 253402300800
	return at.Unix() >= begin && at.Unix() < end
}

func dateOf(at time.Time) time.Time {
	year, month, day := at.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func isDashed(text []byte) bool { return len(text) > 4 && text[4] == '-' }

// parseUnix reads seconds, with or without a fraction, or milliseconds.
func parseUnix(num []byte) (time.Time, bool) {
	if v, ok := shortInteger(num); ok && len(num) <= 18 {
		if v > mostSeconds || v < -mostSeconds {
			return time.UnixMilli(v).UTC(), true
		}
		return time.Unix(v, 0).UTC(), true
	}
	v, err := strconv.ParseFloat(string(num), 64)
	if err != nil || math.Abs(v) > 1e15 {
		return time.Time{}, false
	}
	if math.Abs(v) > mostSeconds {
		return time.UnixMicro(int64(math.Round(v * 1e3))).UTC(), true
	}
	return time.UnixMicro(int64(math.Round(v * 1e6))).UTC(), true
}

// parseInstant reads a date, or a date and a time with or without a zone;
// without one it is UTC. It brings the many ways of writing these into the
// one of RFC 3339 and reads that.
func parseInstant(text []byte) (time.Time, bool) {
	var room [48]byte
	full, ok := normalInstant(room[:0], text)
	if !ok {
		return time.Time{}, false
	}
	var at time.Time
	if err := at.UnmarshalText(full); err != nil {
		return time.Time{}, false
	}
	return at, true
}

// normalInstant writes text as RFC 3339 to b, which has room for it.
func normalInstant(b, text []byte) ([]byte, bool) {
	switch n := len(text); {
	case n == 8 && looksNumeric(text): // 20060102
		b = append(append(append(append(append(b, text[:4]...), '-'), text[4:6]...), '-'), text[6:]...)
		return append(b, "T00:00:00Z"...), true
	case n == 10:
		return append(append(b, text...), "T00:00:00Z"...), true
	case n < 16 || n > 40 || (text[10] != 'T' && text[10] != ' ' && text[10] != 't'):
		return nil, false
	}
	b = append(append(append(b, text[:10]...), 'T'), text[11:16]...)
	rest := text[16:]
	if len(rest) > 0 && rest[0] == ':' {
		clock := 1
		for clock < len(rest) && (rest[clock] == '.' || rest[clock] >= '0' && rest[clock] <= '9') {
			clock++
		}
		b, rest = append(b, rest[:clock]...), rest[clock:]
	} else {
		b = append(b, ":00"...)
	}
	return appendZone(b, rest)
}

// appendZone appends what stands for the zone, as Z or as +02:00.
func appendZone(b, zone []byte) ([]byte, bool) {
	zone = bytes.TrimPrefix(zone, []byte(" "))
	switch n := len(zone); {
	case n == 0 || string(zone) == "Z" || string(zone) == "z" || string(zone) == "UTC":
		return append(b, 'Z'), true
	case zone[0] != '+' && zone[0] != '-':
		return nil, false
	case n == 3: // +02
		return append(append(b, zone...), ":00"...), true
	case n == 5: // +0200
		return append(append(append(b, zone[:3]...), ':'), zone[3:]...), true
	default:
		return append(b, zone...), true
	}
}
