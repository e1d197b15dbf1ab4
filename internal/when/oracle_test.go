package when

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// The oracle is a second implementation of cron that shares no code with the
// first: it walks through time minute by minute with the state that Debian
// cron keeps, and asks each field about each minute.

// minuteOfWall is one minute of real time and what a clock on the wall shows.
type minuteOfWall struct {
	utc  time.Time
	wall time.Time // the local date and time, as if it were UTC
}

// wallMinutes lists the minutes of [from, to) in a zone.
func wallMinutes(from, to time.Time, zone *time.Location) []minuteOfWall {
	var list []minuteOfWall
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		l := t.In(zone)
		wall := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
		list = append(list, minuteOfWall{t, wall})
	}
	return list
}

// oracleField is one field, as text and as a question about a wall minute.
type oracleField struct {
	text    string
	matches func(wall time.Time) bool
}

// oracleExpr is an expression of five fields.
type oracleExpr struct {
	minute, hour, dom, month, dow oracleField
}

func (e oracleExpr) String() string {
	return strings.Join([]string{e.minute.text, e.hour.text, e.dom.text, e.month.text, e.dow.text}, " ")
}

func (e oracleExpr) matches(wall time.Time) bool {
	if !e.minute.matches(wall) || !e.hour.matches(wall) || !e.month.matches(wall) {
		return false
	}
	dom, dow := e.dom.matches(wall), e.dow.matches(wall)
	if strings.HasPrefix(e.dom.text, "*") || strings.HasPrefix(e.dow.text, "*") {
		return dom && dow
	}
	return dom || dow
}

// fires walks through the minutes as Debian cron does. Its state is the last
// wall minute that it has dealt with: ahead of the clock after clocks went
// back, behind it after they went forward.
func (e oracleExpr) fires(minutes []minuteOfWall) []time.Time {
	const correction = 3 * time.Hour
	wildcard := strings.HasPrefix(e.minute.text, "*") || strings.HasPrefix(e.hour.text, "*")
	dealtWith := minutes[0].wall.Add(-time.Minute)
	var list []time.Time
	for _, m := range minutes {
		jump := m.wall.Sub(dealtWith) - time.Minute // not zero after a change
		fire := false
		switch {
		case wildcard, jump <= -correction, jump >= correction:
			fire = e.matches(m.wall)
			dealtWith = m.wall
		case jump < 0: // it has been this late before
		default:
			for dealtWith.Before(m.wall) {
				dealtWith = dealtWith.Add(time.Minute)
				fire = fire || e.matches(dealtWith)
			}
		}
		if fire {
			list = append(list, m.utc)
		}
	}
	return list
}

// drawExpr draws an expression. Months and days are often open, and minutes
// and hours often many, so that a window of a few days has something in it.
func drawExpr(t *rapid.T) oracleExpr {
	return oracleExpr{
		minute: drawField(t, "minute", 0, 59, nil, time.Time.Minute),
		hour:   drawField(t, "hour", 0, 23, nil, time.Time.Hour),
		dom:    drawField(t, "dom", 1, 31, drawFromLast, time.Time.Day),
		month: drawField(t, "month", 1, 12, drawNamed("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1,
			func(w time.Time) int { return int(w.Month()) }), func(w time.Time) int { return int(w.Month()) }),
		dow: drawField(t, "dow", 0, 7, drawWeekday, func(w time.Time) int { return int(w.Weekday()) }),
	}
}

// drawField draws a list of one to three items, or just a star.
func drawField(t *rapid.T, name string, low, high int, special func(*rapid.T) oracleField, of func(time.Time) int) oracleField {
	if rapid.IntRange(0, 9).Draw(t, name+" star") < 4 {
		return oracleField{"*", func(time.Time) bool { return true }}
	}
	var items []oracleField
	var texts []string
	for range rapid.IntRange(1, 3).Draw(t, name+" items") {
		item := drawItem(t, low, high, special, of)
		items = append(items, item)
		texts = append(texts, item.text)
	}
	return oracleField{strings.Join(texts, ","), func(wall time.Time) bool {
		for _, item := range items {
			if item.matches(wall) {
				return true
			}
		}
		return false
	}}
}

func drawItem(t *rapid.T, low, high int, special func(*rapid.T) oracleField, of func(time.Time) int) oracleField {
	is := func(wall time.Time, v int) bool { return of(wall) == v || v == 7 && high == 7 && of(wall) == 0 }
	a := rapid.IntRange(low, high).Draw(t, "a")
	b := rapid.IntRange(a, high).Draw(t, "b")
	step := rapid.IntRange(1, 7).Draw(t, "step")
	between := func(from, to, by int) func(time.Time) bool {
		return func(wall time.Time) bool {
			for v := from; v <= to; v += by {
				if is(wall, v) {
					return true
				}
			}
			return false
		}
	}
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0 && special != nil:
		return special(t)
	case kind == 1:
		return oracleField{fmt.Sprintf("%d-%d", a, b), between(a, b, 1)}
	case kind == 2:
		return oracleField{fmt.Sprintf("%d-%d/%d", a, b, step), between(a, b, step)}
	case kind == 3:
		return oracleField{fmt.Sprintf("*/%d", step), between(low, high, step)}
	case kind == 4 && high != 7:
		return oracleField{fmt.Sprintf("%d/%d", a, step), between(a, high, step)}
	}
	return oracleField{fmt.Sprintf("%d", a), between(a, a, 1)}
}

// drawFromLast draws L or L-n.
func drawFromLast(t *rapid.T) oracleField {
	n := rapid.IntRange(0, 30).Draw(t, "from last")
	text := fmt.Sprintf("L-%d", n)
	if n == 0 {
		text = "L"
	}
	return oracleField{text, func(wall time.Time) bool {
		later := wall.AddDate(0, 0, n)
		return later.Month() == wall.Month() && later.AddDate(0, 0, 1).Month() != wall.Month()
	}}
}

// drawWeekday draws a name, the nth weekday or the last one.
func drawWeekday(t *rapid.T) oracleField {
	d := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
	name := d.String()[:3]
	if rapid.Bool().Draw(t, "as digit") {
		name = fmt.Sprint(int(d))
	}
	n := rapid.IntRange(1, 7).Draw(t, "nth")
	switch {
	case n == 6:
		return oracleField{name + "L", func(wall time.Time) bool {
			return wall.Weekday() == d && wall.AddDate(0, 0, 7).Month() != wall.Month()
		}}
	case n == 7:
		return oracleField{name, func(wall time.Time) bool { return wall.Weekday() == d }}
	}
	return oracleField{fmt.Sprintf("%s#%d", name, n), func(wall time.Time) bool {
		return wall.Weekday() == d && (wall.Day()-1)/7+1 == n
	}}
}

func drawNamed(names string, low int, of func(time.Time) int) func(*rapid.T) oracleField {
	list := strings.Fields(names)
	return func(t *rapid.T) oracleField {
		i := rapid.IntRange(0, len(list)-1).Draw(t, "name")
		return oracleField{list[i], func(wall time.Time) bool { return of(wall) == low+i }}
	}
}

// offsetChanges lists the first minutes after changes of a zone's offset in
// [from, to). It looks at noon of every day and then halves the day.
func offsetChanges(from, to time.Time, zone *time.Location) []time.Time {
	offset := func(t time.Time) int {
		_, o := t.In(zone).Zone()
		return o
	}
	var list []time.Time
	for a := from; a.Before(to); a = a.Add(24 * time.Hour) {
		before, after := a, a.Add(24*time.Hour)
		if offset(before) == offset(after) {
			continue
		}
		for after.Sub(before) > time.Minute {
			middle := before.Add(after.Sub(before) / 2).Truncate(time.Minute)
			if offset(middle) == offset(before) {
				before = middle
			} else {
				after = middle
			}
		}
		list = append(list, after)
	}
	return list
}
