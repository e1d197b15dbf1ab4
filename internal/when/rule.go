package when

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// The limits of a rule.
const (
	mostCrons  = 20
	mostExcept = 100
	maxJitter  = 24 * time.Hour

	// CalendarPrefix begins an exception that names a calendar.
	CalendarPrefix = "calendar:"
)

// Rule is when something runs, as a person writes it: one of Cron, Interval and
// At, and what limits it. Empty fields are absent.
type Rule struct {
	Cron     []string
	Interval string
	At       string // one instant
	Timezone string // in which expressions, dates and times without an offset are read; empty is UTC
	From     string // a date or an instant: nothing runs before it
	Until    string // a date or an instant, which is the last
	Except   []string
	Jitter   string // each start is later by less than this
}

// Context is what a rule depends on besides what is written.
type Context struct {
	// Anchor is where an interval counts from unless the rule has a From.
	Anchor time.Time
	// Seed tells the jitter of one thing from that of another.
	Seed string
	// Calendar finds a calendar. Where it is nil, exceptions that name one are
	// checked for their form and exclude nothing.
	Calendar func(name string) (Calendar, error)
	// MinInterval is as in Spec.
	MinInterval time.Duration
	// Zone is that of the rule where it is loaded already; nil: it is loaded.
	Zone *time.Location
}

// Plain reports whether the rule is one expression without limits.
func (r Rule) Plain() bool {
	return len(r.Cron) == 1 && r.Interval == "" && r.At == "" && r.From == "" && r.Until == "" && len(r.Except) == 0 && r.Jitter == ""
}

// Calendars are the names of the calendars that the rule excepts.
func (r Rule) Calendars() []string {
	var names []string
	for _, e := range r.Except {
		if name, ok := strings.CutPrefix(strings.TrimSpace(e), CalendarPrefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// Schedule makes the schedule of the rule. The error is a *pawl.Error of
// CodeInvalid with a field for each fault.
func (r Rule) Schedule(c Context) (Schedule, error) {
	p := ruleParser{rule: r, context: c}
	p.zone = p.readZone()
	s := p.times()
	s.limits = p.limits()
	s.jitter, s.seed = p.jitter(), c.Seed
	if len(p.faults) > 0 {
		return Schedule{}, &pawl.Error{Code: pawl.CodeInvalid, Op: "parse schedule", Msg: "schedule: " + p.faults[0].Message, Hint: p.faults[0].Hint, Fields: p.faults}
	}
	if !s.from.IsZero() && s.interval > 0 {
		s.anchor = s.from
	}
	return s, nil
}

// ruleParser reads a rule and notes what is wrong with it.
type ruleParser struct {
	rule    Rule
	context Context
	zone    *time.Location // nil: it is unknown
	faults  []pawl.Field
}

func (p *ruleParser) refuse(pointer, format string, values ...any) {
	p.faults = append(p.faults, pawl.Field{Pointer: pointer, Message: fmt.Sprintf(format, values...)})
}

// pass on notes an error of a part of the rule.
func (p *ruleParser) pass(pointer string, err error) {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		p.refuse(pointer, "%s", err)
		return
	}
	p.faults = append(p.faults, pawl.Field{Pointer: pointer, Message: e.Msg, Hint: e.Hint})
}

func (p *ruleParser) readZone() *time.Location {
	if p.context.Zone != nil {
		return p.context.Zone
	}
	zone, err := LoadZone(p.rule.Timezone)
	if err != nil {
		p.pass("/timezone", err)
		return nil
	}
	return zone
}

// times reads which of the three forms the rule has.
func (p *ruleParser) times() Schedule {
	r := p.rule
	given := 0
	for _, is := range []bool{len(r.Cron) > 0, r.Interval != "", r.At != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		p.refuse("/cron", "one of cron, interval and at is needed, such as cron: \"0 9 * * 1-5\", interval: 90m or at: \"2026-12-24T18:00:00+01:00\"")
	case given > 1:
		pointer := "/cron"
		if len(r.Cron) == 0 {
			pointer = "/interval"
		}
		p.refuse(pointer, "cron, interval and at exclude each other: keep one of them")
	case r.Interval != "":
		return p.interval()
	case r.At != "":
		return p.once()
	default:
		return p.crons()
	}
	return Schedule{}
}

func (p *ruleParser) interval() Schedule {
	d, err := ParseInterval(p.rule.Interval)
	if err != nil {
		p.pass("/interval", err)
		return Schedule{}
	}
	if d < p.context.MinInterval {
		p.refuse("/interval", "the interval %s is too short: the shortest is %s", p.rule.Interval, FormatInterval(p.context.MinInterval))
	}
	return Schedule{value: p.rule.Interval, interval: d, zone: p.zone, anchor: p.context.Anchor}
}

func (p *ruleParser) once() Schedule {
	if p.zone == nil {
		return Schedule{}
	}
	at, err := parseInstant(p.rule.At, p.zone)
	if err != nil {
		p.refuse("/at", "%s", err)
		return Schedule{}
	}
	return Schedule{value: p.rule.At, once: at, zone: p.zone}
}

func (p *ruleParser) crons() Schedule {
	s := Schedule{zone: p.zone}
	if len(p.rule.Cron) > mostCrons {
		p.refuse("/cron", "there are %d expressions; at most %d are allowed", len(p.rule.Cron), mostCrons)
		return s
	}
	var texts []string
	for i, text := range p.rule.Cron {
		one, err := Cron(text, p.zone)
		if err != nil {
			pointer := "/cron"
			if len(p.rule.Cron) > 1 {
				pointer = fmt.Sprintf("/cron/%d", i)
			}
			p.pass(pointer, err)
			continue
		}
		texts = append(texts, one.value)
		if s.cron == nil {
			s.cron = one.cron
		} else {
			s.more = append(s.more, one.cron)
		}
	}
	s.value = strings.Join(texts, "; ")
	return s
}

func (p *ruleParser) jitter() time.Duration {
	if p.rule.Jitter == "" {
		return 0
	}
	d, err := ParseInterval(p.rule.Jitter)
	switch {
	case err != nil:
		p.pass("/jitter", err)
	case d > maxJitter:
		p.refuse("/jitter", "the jitter %s is too long: the longest is %s", p.rule.Jitter, FormatInterval(maxJitter))
	}
	return d
}

// limits reads from, until and except.
func (p *ruleParser) limits() limits {
	if p.zone == nil {
		return limits{}
	}
	l := limits{}
	if text := p.rule.From; text != "" {
		from, err := parseBound(text, p.zone)
		if err != nil {
			p.refuse("/from", "%s", err)
		}
		l.from = from.first
	}
	if text := p.rule.Until; text != "" {
		until, err := parseBound(text, p.zone)
		if err != nil {
			p.refuse("/until", "%s", err)
		}
		l.end = until.end
		if err == nil && !l.from.IsZero() && !l.from.Before(l.end) {
			p.refuse("/until", "%s lies before %s, where it begins", text, p.rule.From)
		}
	}
	if len(p.rule.Except) > mostExcept {
		p.refuse("/except", "there are %d exceptions; at most %d are allowed", len(p.rule.Except), mostExcept)
		return l
	}
	var days []daySpan
	for i, text := range p.rule.Except {
		span, err := p.exception(strings.TrimSpace(text), &l)
		if err != nil {
			p.pass(fmt.Sprintf("/except/%d", i), err)
		}
		days = append(days, span...)
	}
	l.days = newDaySet(days)
	return l
}

// exception reads one exception: a date, a range of dates, an expression or a
// calendar.
func (p *ruleParser) exception(text string, l *limits) ([]daySpan, error) {
	if name, ok := strings.CutPrefix(text, CalendarPrefix); ok {
		if !IsCalendarName(name) {
			return nil, badDate(text, "names no calendar", "write calendar:NAME")
		}
		if p.context.Calendar == nil {
			return nil, nil
		}
		calendar, err := p.context.Calendar(name)
		if err != nil {
			return nil, err
		}
		spans := make([]daySpan, len(calendar.days.spans))
		for i, span := range calendar.days.spans {
			span.why = "the calendar " + name + " has " + span.why
			spans[i] = span
		}
		return spans, nil
	}
	if len(text) > 0 && isDigit(text[0]) && strings.Count(text, "-") >= 2 && !strings.ContainsAny(text, " \t") {
		span, err := parseDays(text)
		return []daySpan{span}, err
	}
	e, err := parseCron(text)
	if err != nil {
		if !strings.ContainsAny(text, " \t@") {
			return nil, badDate(text, "is neither a date nor a cron expression", exceptHint)
		}
		return nil, err
	}
	l.except = append(l.except, e)
	return nil, nil
}

const exceptHint = `write a date (2026-12-24), a range (2026-12-24/2027-01-01), a cron expression ("* * * * 6") or calendar:NAME`
