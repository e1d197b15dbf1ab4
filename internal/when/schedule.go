package when

import (
	"fmt"
	"time"

	"github.com/pawlrun/pawl"
)

// Kind says how a schedule tells its instants.
type Kind string

// The kinds. The set is closed.
const (
	KindInterval Kind = "interval"
	KindCron     Kind = "cron"
	KindOnce     Kind = "once"
)

// Spec is a schedule as a person writes it: an interval, or a cron expression
// with an optional zone.
type Spec struct {
	Interval string
	Cron     string
	Timezone string // IANA name, for Cron only; empty means UTC

	// MinInterval is the shortest interval the host accepts; zero means no
	// limit but the grammar's own of one second.
	MinInterval time.Duration
}

// Schedule tells the instants at which something runs. It is immutable and
// safe to share. The zero Schedule has no instants.
type Schedule struct {
	value    string         // the interval or expression as it was written
	interval time.Duration  // for KindInterval, else zero
	cron     *cronExpr      // for KindCron, else nil
	zone     *time.Location // never nil except in the zero Schedule

	more   []*cronExpr   // for KindCron: further expressions
	once   time.Time     // for KindOnce, else zero
	anchor time.Time     // for KindInterval: where it counts from; zero: from the instant that is given
	jitter time.Duration // starts are later by less than this
	seed   string        // of the jitter
	limits
}

// New makes a schedule from what a person wrote. It refuses a spec with both
// an interval and an expression, and one with neither.
func New(spec Spec) (Schedule, error) {
	switch {
	case spec.Interval != "" && spec.Cron != "":
		return Schedule{}, specError("has both an interval and a cron expression", "keep one of the two")
	case spec.Interval == "" && spec.Cron == "":
		return Schedule{}, specError("has neither an interval nor a cron expression",
			`give an interval such as "5m" or a cron expression such as "0 9 * * 1-5"`)
	case spec.Interval != "" && spec.Timezone != "":
		return Schedule{}, specError("has a time zone with an interval", "a time zone goes with a cron expression only; remove it")
	case spec.Cron != "":
		return Parse(KindCron, spec.Cron, spec.Timezone)
	}
	s, err := Parse(KindInterval, spec.Interval, "")
	if err != nil {
		return Schedule{}, err
	}
	if s.interval < spec.MinInterval {
		return Schedule{}, specError(fmt.Sprintf("has the interval %q, which is too short", spec.Interval),
			"the shortest interval allowed here is "+FormatInterval(spec.MinInterval))
	}
	return s, nil
}

// Parse makes a schedule from its stored form: kind, value and zone. The zone
// is for KindCron; an empty one means UTC.
func Parse(kind Kind, value, zone string) (Schedule, error) {
	switch kind {
	case KindInterval:
		d, err := ParseInterval(value)
		if err != nil {
			return Schedule{}, err
		}
		return Schedule{value: value, interval: d, zone: time.UTC}, nil
	case KindCron:
		loc, err := LoadZone(zone)
		if err != nil {
			return Schedule{}, err
		}
		return Cron(value, loc)
	case KindOnce: // has no stored form of its own: see Rule
	}
	return Schedule{}, specError(fmt.Sprintf("has the unknown kind %q", string(kind)), "the kinds are interval and cron")
}

// Every makes a schedule that repeats after d, which must be a positive whole
// number of seconds.
func Every(d time.Duration) (Schedule, error) {
	if d <= 0 || d%time.Second != 0 {
		return Schedule{}, specError(fmt.Sprintf("has the interval %s", d), "an interval is a whole number of seconds, at least one")
	}
	return Schedule{value: FormatInterval(d), interval: d, zone: time.UTC}, nil
}

// Cron makes a schedule from an expression that is read in zone, as LoadZone
// returns it; nil means UTC. Owners of many schedules load each zone once and
// share it. An expression that can never match in that zone is refused.
func Cron(expression string, zone *time.Location) (Schedule, error) {
	if zone == nil {
		zone = time.UTC
	}
	if zone == time.Local {
		return Schedule{}, unknownZone(zone.String())
	}
	e, err := parseCron(expression)
	if err != nil {
		return Schedule{}, err
	}
	if !e.happensIn(zone) {
		return Schedule{}, &pawl.Error{
			Code: pawl.CodeInvalid,
			Op:   "parse cron",
			Msg:  fmt.Sprintf("cron %q never happens in %s, whose clocks skip that time", e.text, zone),
			Hint: "choose an hour that is not skipped when clocks go forward, or write the minute and the hour without *",
		}
	}
	return Schedule{value: e.text, cron: e, zone: zone}, nil
}

// Kind says whether the schedule is an interval, cron expressions or one instant.
// It is empty for the zero Schedule.
func (s Schedule) Kind() Kind {
	switch {
	case !s.once.IsZero():
		return KindOnce
	case s.cron != nil:
		return KindCron
	case s.interval > 0:
		return KindInterval
	}
	return ""
}

// Value is the interval, expression or instant as it was written, several
// expressions with semicolons; with Kind and Zone it is what Parse takes of a
// schedule without limits.
func (s Schedule) Value() string { return s.value }

// Interval is the length of an interval that counts from any instant, and zero
// for whatever has instants of its own.
func (s Schedule) Interval() time.Duration {
	if !s.simple() {
		return 0
	}
	return s.interval
}

// simple reports whether the schedule is one interval or one expression, without
// limits.
func (s Schedule) simple() bool {
	return s.once.IsZero() && len(s.more) == 0 && s.anchor.IsZero() && s.limits.none()
}

// Floats reports whether the schedule is an interval that counts from the run
// before: its instants are known only then.
func (s Schedule) Floats() bool { return s.Kind() == KindInterval && s.anchor.IsZero() }

// Names reports whether an instant is one of the schedule, which must not float.
func (s Schedule) Names(at time.Time) bool {
	next, ok := s.NextWithin(at.Add(-time.Nanosecond), at.Add(time.Nanosecond))
	return ok && next.Equal(at)
}

// Zone is where a cron expression is read; it is UTC for intervals and nil for
// the zero Schedule.
func (s Schedule) Zone() *time.Location { return s.zone }

// String names the schedule for logs: every 5m, or cron "0 9 * * 1-5" in
// Europe/Berlin.
func (s Schedule) String() string {
	switch s.Kind() {
	case KindInterval:
		return "every " + s.value
	case KindCron:
		return fmt.Sprintf("cron %q in %s", s.value, s.zone)
	case KindOnce:
		return "once at " + s.value
	}
	return "no schedule"
}

// Next returns the first instant of the schedule that is strictly after the
// given one, in UTC. It reports false for the zero Schedule, when that instant
// would be past the year 9999, and when the limits of the schedule leave none.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	if !s.simple() {
		return s.nextAllowed(after, endOfTime())
	}
	switch s.Kind() {
	case KindInterval:
		next := after.UTC().Add(s.interval)
		if next.After(after) && next.Unix() < endMinute*60 {
			return next, true
		}
	case KindCron:
		m, ok := s.cron.next(firstMinuteAfter(after), endMinute, s.zone)
		if ok {
			return time.Unix(m*60, 0).UTC(), true
		}
	case KindOnce:
	}
	return time.Time{}, false
}

func endOfTime() time.Time { return time.Unix(endMinute*60, 0).UTC() }

// NextWithin is Next for whoever does not look further than end: it reports
// false if the next instant is not before end, and does not search behind it.
func (s Schedule) NextWithin(after, end time.Time) (time.Time, bool) {
	if !s.simple() {
		return s.nextAllowed(after, end)
	}
	if s.cron == nil {
		next, ok := s.Next(after)
		return next, ok && next.Before(end)
	}
	m, ok := s.cron.next(firstMinuteAfter(after), min(endMinute, ceilMinute(end)), s.zone)
	if !ok {
		return time.Time{}, false
	}
	next := time.Unix(m*60, 0).UTC()
	return next, next.Before(end)
}

// NextN returns the first n instants after the given one, fewer only where
// Next reports false.
func (s Schedule) NextN(after time.Time, n int) []time.Time {
	var list []time.Time
	for range n {
		next, ok := s.Next(after)
		if !ok {
			break
		}
		list = append(list, next)
		after = next
	}
	return list
}

func specError(problem, hint string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "parse schedule", Msg: "schedule " + problem, Hint: hint}
}
