package when

import (
	"fmt"
	"strings"
)

// fieldRule is what one field of an expression allows.
type fieldRule struct {
	id        fieldID
	name      string
	low, high int      // allowed values
	last      int      // the last value of * and of a step without an end
	names     []string // names of the values from low on, in upper case
	hint      string
}

// fieldID tells the fields apart. The set is closed.
type fieldID int

const (
	fieldMinute fieldID = iota
	fieldHour
	fieldDayOfMonth
	fieldMonth
	fieldDayOfWeek
)

const listHint = "; lists (1,3), ranges (1-5) and steps (*/2) are allowed"

// cronFields returns the rules of the five fields in their order.
func cronFields() [5]fieldRule {
	return [5]fieldRule{
		{id: fieldMinute, name: "minute", low: 0, high: 59, last: 59, hint: "minute is 0-59" + listHint},
		{id: fieldHour, name: "hour", low: 0, high: 23, last: 23, hint: "hour is 0-23" + listHint},
		{id: fieldDayOfMonth, name: "day of month", low: 1, high: 31, last: 31,
			hint: "day of month is 1-31, L for the last day or L-3 for three days before it" + listHint},
		{id: fieldMonth, name: "month", low: 1, high: 12, last: 12, names: monthNames(),
			hint: "month is 1-12 or JAN-DEC" + listHint},
		{id: fieldDayOfWeek, name: "day of week", low: 0, high: 7, last: 6, names: dayNames(),
			hint: "day of week is 0-7 or SUN-SAT (0 and 7 are Sunday), 5L for the last Friday, 5#2 for the second Friday" + listHint},
	}
}

func monthNames() []string {
	return []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
}

func dayNames() []string {
	return []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
}

// fieldParser reads one field into out.
type fieldParser struct {
	expression string
	rule       fieldRule
	out        *cronExpr
	bits       uint64 // plain values, one bit each
}

func (p *fieldParser) parse(field token) error {
	for _, item := range splitList(field) {
		if err := p.parseItem(item); err != nil {
			return err
		}
	}
	switch p.rule.id {
	case fieldMinute:
		p.out.minute = p.bits
	case fieldHour:
		p.out.hour = uint32(p.bits)
	case fieldDayOfMonth:
		p.out.dom = uint32(p.bits)
	case fieldMonth:
		p.out.month = uint16(p.bits)
	case fieldDayOfWeek:
		p.out.dow = uint8(p.bits&0x7f | p.bits>>7) // 7 is Sunday, too
	}
	return nil
}

// parseItem reads one item of a list.
func (p *fieldParser) parseItem(item token) error {
	if item.text == "" {
		return p.fault(item, "is an empty list item")
	}
	upper := strings.ToUpper(item.text)
	switch {
	case p.rule.id == fieldDayOfMonth && upper[0] == 'L':
		return p.parseFromLast(item)
	case p.rule.id == fieldDayOfWeek && strings.Contains(upper, "#"):
		return p.parseNth(item)
	case p.rule.id == fieldDayOfWeek && len(upper) > 1 && strings.HasSuffix(upper, "L"):
		return p.parseLastWeekday(item)
	}
	return p.parseRange(item)
}

// parseRange reads *, a value or a range, each with an optional step.
func (p *fieldParser) parseRange(item token) error {
	base, step, hasStep := cutToken(item, "/")
	low, high := p.rule.low, p.rule.last
	if base.text != "*" {
		from, to, isRange := cutToken(base, "-")
		var err error
		if low, err = p.value(from); err != nil {
			return err
		}
		switch {
		case isRange:
			if high, err = p.value(to); err != nil {
				return err
			}
		case !hasStep || low > high: // low > high: 7 as a day of week
			high = low
		}
		if low > high {
			return p.reversed(base, to)
		}
	}
	by := 1
	if hasStep {
		var err error
		if by, err = p.step(step); err != nil {
			return err
		}
	}
	for v := low; v <= high; v += by {
		p.bits |= 1 << v
	}
	return nil
}

// parseFromLast reads L and L-3 in the day of month.
func (p *fieldParser) parseFromLast(item token) error {
	if len(item.text) == 1 {
		p.out.fromLast |= 1
		return nil
	}
	_, count, found := cutToken(item, "-")
	n, ok := number(count.text)
	if !found || item.text[1] != '-' || !ok || n < 1 || n > 30 {
		return p.fault(item, "is not L or L-1 to L-30")
	}
	p.out.fromLast |= 1 << n
	return nil
}

// parseNth reads 5#2 and FRI#2 in the day of week.
func (p *fieldParser) parseNth(item token) error {
	weekday, nth, _ := cutToken(item, "#")
	v, err := p.value(weekday)
	if err != nil {
		return err
	}
	n, ok := number(nth.text)
	if !ok || n < 1 || n > 5 {
		return p.fault(nth, "is not 1 to 5, which is what may follow #")
	}
	p.out.nthDow[n-1] |= 1 << (v % 7)
	return nil
}

// parseLastWeekday reads 5L and FRIL in the day of week.
func (p *fieldParser) parseLastWeekday(item token) error {
	v, err := p.value(token{item.text[:len(item.text)-1], item.at})
	if err != nil {
		return err
	}
	p.out.lastDow |= 1 << (v % 7)
	return nil
}

// value reads a number or a name that the field allows.
func (p *fieldParser) value(t token) (int, error) {
	for i, name := range p.rule.names {
		if strings.EqualFold(t.text, name) {
			return p.rule.low + i, nil
		}
	}
	n, ok := number(t.text)
	if !ok {
		return 0, p.notAValue(t)
	}
	if n < p.rule.low || n > p.rule.high {
		return 0, p.fault(t, fmt.Sprintf("is out of range %d-%d", p.rule.low, p.rule.high))
	}
	return n, nil
}

func (p *fieldParser) step(t token) (int, error) {
	most := p.rule.last - p.rule.low + 1
	n, ok := number(t.text)
	if !ok || n < 1 || n > most {
		return 0, p.fault(t, fmt.Sprintf("is not a step of 1 to %d", most))
	}
	return n, nil
}

// notAValue explains text that is neither a number nor a name, with more to
// say about what other cron dialects allow.
func (p *fieldParser) notAValue(t token) error {
	switch {
	case t.text == "":
		return p.fault(t, "lacks a value")
	case strings.Contains(t.text, "?"):
		return p.faultHint(t, "is not a value", "? is not supported; write * instead")
	case p.rule.id == fieldDayOfMonth && strings.HasSuffix(strings.ToUpper(t.text), "W"):
		return p.faultHint(t, "is not a value", "W (the nearest weekday) is not supported; "+p.rule.hint)
	case p.rule.id == fieldDayOfWeek && strings.EqualFold(t.text, "L"):
		return p.faultHint(t, "lacks a weekday", "write 5L or FRIL for the last Friday of the month")
	}
	return p.fault(t, "is not a value")
}

// reversed explains a range that runs backwards. A week that ends on Sunday is
// the usual reason, because the name SUN is 0.
func (p *fieldParser) reversed(span, to token) error {
	if p.rule.id == fieldDayOfWeek && (strings.EqualFold(to.text, "SUN") || to.text == "0") {
		return p.faultHint(span, "runs backwards", "SUN is 0; write 7 for the Sunday that ends a range, such as 5-7 for Friday to Sunday")
	}
	return p.faultHint(span, "runs backwards", "put the smaller value first, or write two ranges; "+p.rule.hint)
}

func (p *fieldParser) fault(t token, problem string) error {
	return p.faultHint(t, problem, p.rule.hint)
}

func (p *fieldParser) faultHint(t token, problem, hint string) error {
	return cronError(fmt.Sprintf("%s %q at column %d %s", p.rule.name, t.text, column(p.expression, t.at), problem), hint)
}

// cutToken is strings.Cut that keeps the places of both parts.
func cutToken(t token, sep string) (before, after token, found bool) {
	b, a, found := strings.Cut(t.text, sep)
	return token{b, t.at}, token{a, t.at + len(b) + len(sep)}, found
}

// number reads a few digits. More than four cannot be in any field's range.
func number(text string) (int, bool) {
	if text == "" {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, false
		}
		n = min(n*10+int(text[i]-'0'), 9999)
	}
	return n, true
}
