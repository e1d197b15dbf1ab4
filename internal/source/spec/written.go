package spec

import (
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/when"
)

// ReadValue reads a schedule: daily, hourly, interval:30m, or its fields.
func (s *Schedule) ReadValue(v definition.Value) {
	type fields Schedule // without this method
	if v.Shape() == definition.Mapping {
		var written fields
		v.Decode(&written)
		*s = Schedule(written)
		return
	}
	*s = Schedule{}
	text := v.Text()
	interval, isInterval := strings.CutPrefix(text, "interval:")
	switch {
	case text == "daily":
		s.Interval = "1d"
	case text == "hourly":
		s.Interval = "1h"
	case isInterval:
		s.Interval = strings.TrimSpace(interval)
	case v.Shape() != definition.Text:
		v.Refuse("schedule must be daily, hourly, interval:30m, {interval: 30m} or {cron: \"0 9 * * *\", timezone: Europe/Berlin}")
	default:
		v.Refuse("schedule %s is not known. %s", pawl.Quote(text), scheduleHint(text))
	}
}

func scheduleHint(text string) string {
	if _, err := when.ParseInterval(text); err == nil {
		return "Did you mean interval:" + text + "?"
	}
	if _, err := when.Cron(text, nil); err == nil {
		return "Did you mean {cron: \"" + text + "\"}?"
	}
	return pawl.Suggest(text, []string{"daily", "hourly"}, "It is daily, hourly, interval:30m, {interval: 30m} or {cron: \"0 9 * * *\", timezone: Europe/Berlin}.")
}
