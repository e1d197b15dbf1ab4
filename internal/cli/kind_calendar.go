package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
)

// calendarKind are days that schedules leave out.
func calendarKind() kind {
	return kind{
		plural: "calendars", singular: "calendar", aliases: []string{"cal"}, path: client.CalendarsPath,
		removed: "deleted",
		columns: []column{
			{title: "name", flex: true, least: 12}, {title: "dates"}, {title: "first"}, {title: "last"}, {title: "changed"}, {title: "revision", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var c client.Calendar
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, err
			}
			first, last := ends(c.Days)
			return []string{c.Name, strconv.Itoa(len(c.Days)), orDash(first), orDash(last), relative(c.UpdatedAt.Time, now), strconv.FormatInt(c.Revision, 10)}, nil
		},
		describe: describeCalendar,
	}
}

// ends are the first and the last date of a calendar.
func ends(days []string) (first, last string) {
	for _, day := range days {
		from, to, ranged := strings.Cut(day, "/")
		if !ranged {
			to = from
		}
		if first == "" || from < first {
			first = from
		}
		last = max(last, to)
	}
	return first, last
}

func describeCalendar(raw json.RawMessage, now time.Time) (string, error) {
	var c client.Calendar
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", fmt.Errorf("read calendar: %w", err)
	}
	d := newDescription(now)
	d.say("The calendar %s has %s.", c.Name, plural(len(c.Days), "date"))
	d.say("Schedules leave its days out with except: [calendar:%s].", c.Name)
	d.gap()
	d.line("Used by", strings.Join(c.UsedBy, ", "))
	d.instant("Created", c.CreatedAt.Time)
	d.instant("Updated", c.UpdatedAt.Time)
	d.line("Revision", strconv.FormatInt(c.Revision, 10))
	var rows [][]string
	for _, day := range c.Days {
		rows = append(rows, []string{day})
	}
	d.table("Days", []column{{}}, rows)
	return d.String(), nil
}
