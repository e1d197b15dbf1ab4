package workflow

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// schedule checks when a producer runs.
func (c *checker) schedule(h declaredHandler) Schedule {
	const hint = `write schedule: { interval: "5m" } or schedule: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" }`
	v := h.fields.get("schedule")
	if !h.fields.has("schedule") {
		c.fault(h.at(), hint, "%sschedule is missing", h.who())
		return Schedule{}
	}
	o, ok := v.object()
	if !ok {
		c.fault(h.at("schedule"), hint, "%sschedule must be an object, not %s", h.who(), v.kind())
		return Schedule{}
	}
	before := len(c.faults)
	c.fields(h.at("schedule"), h.who(), o, "interval", "cron", "timezone", "from", "until", "except", "jitter", "missed")
	s := Schedule{
		Interval: c.scheduleText(h, o, "interval"), Cron: c.scheduleText(h, o, "cron"), Timezone: c.scheduleText(h, o, "timezone"),
		From: c.scheduleText(h, o, "from"), Until: c.scheduleText(h, o, "until"), Jitter: c.scheduleText(h, o, "jitter"),
		Except: c.exceptions(h, o), Missed: c.missed(h, o),
	}
	if len(c.faults) > before {
		return s
	}
	if s.Timezone != "" {
		if _, err := when.LoadZone(s.Timezone); err != nil {
			c.badSchedule(h.at("schedule", "timezone"), h, err)
			return s
		}
	}
	switch _, err := s.Spec(); {
	case err == nil:
	case s.limited():
		c.badLimits(h, err)
	default:
		c.badSchedule(h.at(scheduleField(s)...), h, err)
	}
	return s
}

// exceptions reads what is left out.
func (c *checker) exceptions(h declaredHandler, o object) (list []string) {
	const hint = `write except: ["2026-12-24/2027-01-01", "* * * * 6", "calendar:holidays"]`
	if !o.has("except") {
		return nil
	}
	values, ok := o.get("except").list()
	if !ok {
		c.fault(h.at("schedule", "except"), hint, "%sschedule.except must be a list, not %s", h.who(), o.get("except").kind())
	}
	for i, v := range values {
		text, ok := v.text()
		if !ok {
			c.fault(h.at("schedule", "except", strconv.Itoa(i)), hint, "%sschedule.except has %s, not a string", h.who(), v.kind())
		}
		list = append(list, text)
	}
	return list
}

// missed reads what becomes of instants that came due while nothing could run.
func (c *checker) missed(h declaredHandler, o object) *client.Missed {
	const hint = `write missed: { policy: "last", within: "12h" }`
	if !o.has("missed") {
		return nil
	}
	at := func(names ...string) []string { return h.at(append([]string{"schedule", "missed"}, names...)...) }
	fields, ok := o.get("missed").object()
	if !ok {
		c.fault(at(), hint, "%sschedule.missed must be an object, not %s", h.who(), o.get("missed").kind())
		return nil
	}
	c.fields(at(), h.who(), fields, "policy", "within")
	m := &client.Missed{}
	for name, to := range map[string]*string{"policy": &m.Policy, "within": &m.Within} {
		if *to, ok = fields.get(name).text(); !ok && fields.has(name) {
			c.fault(at(name), hint, "%sschedule.missed.%s must be a string, not %s", h.who(), name, fields.get(name).kind())
			return nil
		}
	}
	timing.CheckMissed(m, func(pointer, format string, values ...any) {
		c.fault(h.at(fieldsOf(pointer)...), hint, "%sschedule.missed.%s "+format, append([]any{h.who(), pointer[len("/missed/"):]}, values...)...)
	})
	return m
}

// fieldsOf is the path to what a pointer of a rule names.
func fieldsOf(pointer string) []string {
	return append([]string{"schedule"}, strings.Split(pointer[1:], "/")...)
}

// badLimits tells what package when found wrong with a rule, each at its place.
func (c *checker) badLimits(h declaredHandler, err error) {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || len(e.Fields) == 0 {
		c.badSchedule(h.at("schedule"), h, err)
		return
	}
	for _, f := range e.Fields {
		c.fault(h.at(fieldsOf(f.Pointer)...), e.Hint, "%sschedule: %s", h.who(), f.Message)
	}
}

// scheduleField is where a schedule that when refuses is wrong.
func scheduleField(s Schedule) []string {
	switch {
	case s.Interval != "" && s.Cron == "" && s.Timezone == "":
		return []string{"schedule", "interval"}
	case s.Interval != "" && s.Cron == "":
		return []string{"schedule", "timezone"}
	case s.Interval == "" && s.Cron != "":
		return []string{"schedule", "cron"}
	}
	return []string{"schedule"}
}

func (c *checker) scheduleText(h declaredHandler, o object, field string) string {
	text, ok := o.get(field).text()
	switch {
	case !o.has(field):
	case !ok:
		c.fault(h.at("schedule", field), "write "+field+": "+strconv.Quote(scheduleExample(field)),
			"%sschedule.%s must be a string, not %s", h.who(), field, o.get(field).kind())
	case text == "":
		c.fault(h.at("schedule", field), "write "+field+": "+strconv.Quote(scheduleExample(field)),
			"%sschedule.%s is empty", h.who(), field)
	}
	return text
}

func scheduleExample(field string) string {
	switch field {
	case "interval":
		return "5m"
	case "cron":
		return "0 9 * * 1-5"
	case "from":
		return "2026-12-01"
	case "until":
		return "2027-06-30"
	case "jitter":
		return "5m"
	}
	return "Europe/Berlin"
}

// badSchedule tells what package when found.
func (c *checker) badSchedule(path []string, h declaredHandler, err error) {
	message, hint := err.Error(), ""
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		message, hint = e.Msg, e.Hint
	}
	c.fault(path, hint, "%s%s", h.who(), message)
}
