package when

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// mostListed is how many times or days a sentence may list before it is harder
// to read than the expression.
const mostListed = 4

// describe returns the expression as a sentence, or "" when it would be too
// long to help.
func (e *cronExpr) describe(zone *time.Location) string {
	clock := e.clockWords()
	days, ok := e.dayWords()
	if !ok || clock.form == clockUnsaid {
		return ""
	}
	where, months := zoneWords(zone), e.monthWords()
	if clock.form == clockTimes {
		if days == "" {
			days = "daily"
		}
		return capital(joinWords(days, months, clock.text, where))
	}
	if days == "" && months == "" {
		same := clock.form == clockRate || clock.form == clockMinute && hasWholeHours(zone)
		if same {
			where = "" // all zones say it the same way
		}
		return capital(joinWords(clock.text, where))
	}
	if days != "" && !strings.HasPrefix(days, "on ") {
		days = "on " + days
	}
	if clock.form == clockRate {
		return capital(joinWords(clock.text, days, months)) + ", " + where
	}
	return capital(joinWords(clock.text, where, days, months))
}

// clockPhrase is the part of a sentence that says when in a day.
type clockPhrase struct {
	form clockForm
	text string
}

// clockForm says what a clockPhrase names, which decides where the days and
// the zone go in the sentence. The set is closed.
type clockForm int

const (
	clockUnsaid clockForm = iota // there is no short way to say it
	clockRate                    // every 5 minutes
	clockMinute                  // hourly at :15
	clockSpan                    // every 15 minutes from 09:00 to 17:45
	clockTimes                   // at 09:00 and 17:00
)

// clockWords describes the minute and hour fields.
func (e *cronExpr) clockWords() clockPhrase {
	step, stepped := minuteStep(e.minute)
	oneMinute := bits.OnesCount64(e.minute) == 1
	minute := bits.TrailingZeros64(e.minute)
	firstHour, lastHour := bits.TrailingZeros32(e.hour), bits.Len32(e.hour)-1
	unbroken := bits.OnesCount32(e.hour) == lastHour-firstHour+1
	allHours := unbroken && firstHour == 0 && lastHour == 23

	switch times := bits.OnesCount64(e.minute) * bits.OnesCount32(e.hour); {
	case allHours && stepped:
		return clockPhrase{clockRate, everyMinutes(step)}
	case allHours && oneMinute:
		return clockPhrase{clockMinute, fmt.Sprintf("hourly at :%02d", minute)}
	case times <= mostListed:
		return clockPhrase{clockTimes, "at " + listWords(e.times())}
	case unbroken && stepped:
		return clockPhrase{clockSpan, fmt.Sprintf("%s from %s to %s", everyMinutes(step),
			clockText(firstHour, 0), clockText(lastHour, minutesPerHour-step))}
	case unbroken && oneMinute:
		return clockPhrase{clockSpan, fmt.Sprintf("hourly from %s to %s",
			clockText(firstHour, minute), clockText(lastHour, minute))}
	case oneMinute:
		for _, n := range []int{2, 3, 4} {
			if e.hour == uint32(stepSet(24, n)) {
				return clockPhrase{clockSpan, fmt.Sprintf("every %d hours from %s", n, clockText(0, minute))}
			}
		}
	}
	return clockPhrase{}
}

// times lists the times of day, in order.
func (e *cronExpr) times() []string {
	var list []string
	for from, ok := e.clockFrom(0); ok; from, ok = e.clockFrom(from) {
		list = append(list, clockText(from/minutesPerHour, from%minutesPerHour))
		if from++; from == minutesPerDay {
			break
		}
	}
	return list
}

// dayWords describes the day fields without the months: "" for every day,
// "Mondays to Fridays", "on the last day of the month".
func (e *cronExpr) dayWords() (string, bool) {
	everyDom := e.domStar && e.dom == 1<<32-2
	everyDow := e.dowStar && e.dow == 1<<7-1
	switch {
	case everyDom && everyDow:
		return "", true
	case everyDom:
		return e.weekdayWords()
	case everyDow:
		return e.datesOfMonth()
	}
	return "", false
}

// weekdayWords describes the day of week: "Mondays to Fridays", "on the 2nd
// Friday of the month".
func (e *cronExpr) weekdayWords() (string, bool) {
	var list []string
	for n, set := range e.nthDow {
		for _, d := range weekdaysOf(set) {
			list = append(list, ordinal(n+1)+" "+d.String())
		}
	}
	for _, d := range weekdaysOf(e.lastDow) {
		list = append(list, "last "+d.String())
	}
	if len(list) > 0 {
		ok := e.dow == 0 && len(list) <= mostListed
		return "on the " + listWords(list) + " of " + e.monthOwner(), ok
	}
	days := weekdaysOf(e.dow)
	for _, d := range days {
		list = append(list, d.String()+"s")
	}
	if len(days) >= 3 && int(days[len(days)-1]-days[0]) == len(days)-1 {
		list = []string{list[0] + " to " + list[len(list)-1]}
	}
	return listWords(list), true
}

// weekdaysOf lists a set from Monday to Sunday. Sunday is 7, so that a run of
// days can be seen as one.
func weekdaysOf(set uint8) []isoWeekday {
	var list []isoWeekday
	for d := isoWeekday(1); d <= 7; d++ {
		if set>>(d%7)&1 == 1 {
			list = append(list, d)
		}
	}
	return list
}

// isoWeekday is a weekday from 1 for Monday to 7 for Sunday.
type isoWeekday int

func (d isoWeekday) String() string { return time.Weekday(d % 7).String() }

// datesOfMonth describes the day of month: "on the 1st and last day of the
// month".
func (e *cronExpr) datesOfMonth() (string, bool) {
	var list []string
	for d := 1; d <= 31; d++ {
		if e.dom>>d&1 == 1 {
			list = append(list, ordinal(d))
		}
	}
	if first := bits.TrailingZeros32(e.dom); len(list) >= 3 && bits.Len32(e.dom)-first == len(list) {
		list = []string{list[0] + " to " + list[len(list)-1]}
	}
	for n := 30; n >= 0; n-- {
		switch {
		case e.fromLast>>n&1 == 0:
		case n == 0:
			list = append(list, "last day")
		default:
			list = append(list, ordinal(n+1)+" to last day")
		}
	}
	return "on the " + listWords(list) + " of " + e.monthOwner(), len(list) <= mostListed
}

// monthOwner is whose days they are: the month, or the named months.
func (e *cronExpr) monthOwner() string {
	if list := e.months(); len(list) < 12 {
		return monthList(list)
	}
	return "the month"
}

// monthWords is "in March" where the days do not already say so, and "" for
// all months.
func (e *cronExpr) monthWords() string {
	list := e.months()
	days, _ := e.dayWords()
	if len(list) == 12 || strings.HasPrefix(days, "on the ") {
		return ""
	}
	return "in " + monthList(list)
}

func (e *cronExpr) months() []time.Month {
	var list []time.Month
	for m := time.January; m <= time.December; m++ {
		if e.month>>m&1 == 1 {
			list = append(list, m)
		}
	}
	return list
}
