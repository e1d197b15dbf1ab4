package when

import (
	"math/bits"
	"time"
)

const (
	minutesPerHour = 60
	minutesPerDay  = 24 * minutesPerHour
)

// cronExpr is a parsed expression. It is not changed after parsing.
//
// Sets are bits: bit 9 of hour is 09:00, bit 5 of dow is Friday.
type cronExpr struct {
	text     string // as written, without blanks at the ends
	minute   uint64
	hour     uint32
	dom      uint32   // days of the month, bits 1 to 31
	fromLast uint32   // bit n: n days before the last day of the month
	month    uint16   // bits 1 to 12
	dow      uint8    // days of the week, bit 0 is Sunday
	lastDow  uint8    // the last such weekday of the month
	nthDow   [5]uint8 // index n-1: the nth such weekday of the month

	domStar, dowStar bool // the field begins with *
	wildcard         bool // minute or hour begins with *: follows the wall clock
}

// nextWall returns the first matching wall minute in [from, end). A wall
// minute is local time counted as if it were UTC: minutes since 1 January 1970,
// 00:00, without any clock change.
func (e *cronExpr) nextWall(from, end int64) (int64, bool) {
	today := floorDiv(from, minutesPerDay)
	year, month, dayOfMonth := time.Unix(today*86400, 0).UTC().Date()
	first := today - int64(dayOfMonth-1) // the first of the month, in days
	length := daysIn(year, month)
	set := e.daySet(month, length, weekday(first)) >> dayOfMonth << dayOfMonth
	if set>>dayOfMonth&1 == 1 {
		if clock, ok := e.clockFrom(int(from - today*minutesPerDay)); ok {
			return before(today*minutesPerDay+int64(clock), end)
		}
		set &^= 1 << dayOfMonth
	}
	for set == 0 {
		first += int64(length)
		if first*minutesPerDay >= end {
			return 0, false
		}
		if month++; month > time.December {
			month, year = time.January, year+1
		}
		length = daysIn(year, month)
		set = e.daySet(month, length, weekday(first))
	}
	clock, _ := e.clockFrom(0)
	date := first + int64(bits.TrailingZeros32(set)) - 1
	return before(date*minutesPerDay+int64(clock), end)
}

func before(m, end int64) (int64, bool) { return m, m < end }

// clockFrom returns the first matching minute of the day that is not before
// the given one.
func (e *cronExpr) clockFrom(minute int) (int, bool) {
	h, m := minute/minutesPerHour, minute%minutesPerHour
	if e.hour>>h&1 == 1 {
		if rest := e.minute >> m; rest != 0 {
			return minute + bits.TrailingZeros64(rest), true
		}
	}
	later := e.hour >> (h + 1) << (h + 1)
	if later == 0 {
		return 0, false
	}
	return bits.TrailingZeros32(later)*minutesPerHour + bits.TrailingZeros64(e.minute), true
}

// daySet returns the matching days, bits 1 to 31, of a month with the given
// length that begins on the given weekday.
func (e *cronExpr) daySet(month time.Month, length, firstWeekday int) uint32 {
	if e.month>>month&1 == 0 {
		return 0
	}
	all := ^uint32(0) >> (31 - length) &^ 1 // bits 1 to length
	dom := e.dom
	if e.fromLast != 0 {
		dom |= bits.Reverse32(e.fromLast) >> (31 - length) // bit n becomes bit length-n
	}
	dow := weekly(e.dow, firstWeekday)
	if e.lastDow != 0 {
		lastWeek := all &^ (all >> 7)
		dow |= weekly(e.lastDow, firstWeekday) & lastWeek
	}
	for i, set := range e.nthDow {
		if set != 0 {
			dow |= weekly(set, firstWeekday) & (0x7f << (7*i + 1))
		}
	}
	if e.domStar || e.dowStar {
		return dom & dow & all
	}
	return (dom | dow) & all
}

// weekly spreads a set of weekdays over the days of a month that begins on the
// given weekday.
func weekly(set uint8, firstWeekday int) uint32 {
	const everyWeek = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	w := uint64(set)
	w = (w>>firstWeekday | w<<(7-firstWeekday)) & 0x7f // bit 0 is the first of the month
	return uint32(w * everyWeek << 1)
}

// hasDay reports whether any year has a matching day. Within the 400 years
// after which the calendar repeats, every month begins on every weekday, and
// so does February of a leap year.
func (e *cronExpr) hasDay() bool {
	for month := time.January; month <= time.December; month++ {
		for firstWeekday := range 7 {
			if e.daySet(month, daysIn(2000, month), firstWeekday) != 0 {
				return true
			}
			if e.daySet(month, daysIn(2001, month), firstWeekday) != 0 {
				return true
			}
		}
	}
	return false
}

func daysIn(year int, month time.Month) int {
	switch {
	case month == time.February && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case month == time.February:
		return 28
	case month == time.April, month == time.June, month == time.September, month == time.November:
		return 30
	}
	return 31
}

// weekday returns the day of the week, 0 for Sunday, of a day counted from
// 1 January 1970, which was a Thursday.
func weekday(days int64) int {
	w := int((days + 4) % 7)
	if w < 0 {
		w += 7
	}
	return w
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
