package workflow

import (
	"errors"
	"strconv"

	"github.com/pawlrun/pawl"
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
	c.fields(h.at("schedule"), h.who(), o, "interval", "cron", "timezone")
	s := Schedule{Interval: c.scheduleText(h, o, "interval"), Cron: c.scheduleText(h, o, "cron"), Timezone: c.scheduleText(h, o, "timezone")}
	if len(c.faults) > before {
		return s
	}
	if s.Timezone != "" {
		if _, err := when.LoadZone(s.Timezone); err != nil {
			c.badSchedule(h.at("schedule", "timezone"), h, err)
			return s
		}
	}
	if _, err := s.Spec(); err != nil {
		c.badSchedule(h.at(scheduleField(s)...), h, err)
	}
	return s
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
