package moving

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/when"
)

// calendarToCron turns an OnCalendar= expression of systemd into a cron expression
// and its zone. What has seconds, years or ends of months is none.
func calendarToCron(text string) (expression, zone string, err error) {
	words := strings.Fields(text)
	if n := len(words); n > 1 {
		if _, err := when.LoadZone(words[n-1]); err == nil {
			words, zone = words[:n-1], words[n-1]
		}
	}
	if len(words) == 1 {
		if e := map[string]string{
			"minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1", "monthly": "0 0 1 * *",
			"yearly": "0 0 1 1 *", "annually": "0 0 1 1 *", "quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *",
		}[strings.ToLower(words[0])]; e != "" {
			return e, zone, nil
		}
	}
	days, date, clock := "*", "*-*-*", "00:00:00"
	for i, word := range words {
		switch {
		case i == 0 && word[0] >= 'A' && word[0] <= 'z':
			if days, err = weekdays(word); err != nil {
				return "", "", err
			}
		case strings.Contains(word, ":"):
			clock = word
		case strings.Contains(word, "-"):
			date = word
		default:
			return "", "", fmt.Errorf("%q is not understood", word)
		}
	}
	month, dom, err := dates(date)
	if err != nil {
		return "", "", err
	}
	hour, minute, err := clockOf(clock)
	if err != nil {
		return "", "", err
	}
	if dom != "*" && days != "*" {
		return "", "", errors.New("it names days of the month and of the week, which must both match; cron runs on either")
	}
	return strings.Join([]string{minute, hour, dom, month, days}, " "), zone, nil
}

func weekdays(text string) (string, error) {
	numbers := map[string]string{"sun": "0", "mon": "1", "tue": "2", "wed": "3", "thu": "4", "fri": "5", "sat": "6"}
	var out []string
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ","), ",") {
		from, to, ranged := strings.Cut(strings.ReplaceAll(part, "..", "-"), "-")
		a, okA := dayNumber(numbers, from)
		b, okB := dayNumber(numbers, to)
		switch {
		case !okA || ranged && !okB:
			return "", fmt.Errorf("%q is not a day of the week", part)
		case !ranged:
			out = append(out, a)
		case b < a: // Sat..Mon
			out = append(out, a+"-7", "0-"+b)
			if b == "0" {
				out = []string{a + "-7"}
			}
		default:
			out = append(out, a+"-"+b)
		}
	}
	return strings.Join(out, ","), nil
}

func dayNumber(numbers map[string]string, word string) (string, bool) {
	if len(word) < 3 {
		return "", false
	}
	n, ok := numbers[strings.ToLower(word[:3])]
	return n, ok
}

func dates(date string) (month, dom string, err error) {
	parts := strings.Split(date, "-")
	if len(parts) == 2 {
		parts = append([]string{"*"}, parts...)
	}
	if len(parts) != 3 || parts[0] != "*" || strings.Contains(date, "~") {
		return "", "", fmt.Errorf("the date %q names years or ends of months, which cron cannot", date)
	}
	if month, err = component(parts[1], 12); err != nil {
		return "", "", err
	}
	dom, err = component(parts[2], 31)
	return month, dom, err
}

func clockOf(clock string) (hour, minute string, err error) {
	parts := strings.Split(clock, ":")
	if len(parts) == 2 {
		parts = append(parts, "00")
	}
	if len(parts) != 3 || strings.Trim(parts[2], "0") != "" {
		return "", "", fmt.Errorf("the time %q names seconds, which cron cannot", clock)
	}
	if hour, err = component(parts[0], 23); err != nil {
		return "", "", err
	}
	minute, err = component(parts[1], 59)
	return hour, minute, err
}

// component turns a list of values, ranges (1..5) and steps (0/15) into that of
// cron.
func component(text string, most int) (string, error) {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		value, step, stepped := strings.Cut(part, "/")
		from, to, ranged := strings.Cut(value, "..")
		switch {
		case value == "*" && !stepped:
			out = append(out, "*")
			continue
		case value == "*":
			from, to, ranged = "0", strconv.Itoa(most), true
		}
		a, err := strconv.Atoi(from)
		b := most
		if err == nil && ranged {
			b, err = strconv.Atoi(to)
		}
		every := 1
		if err == nil && stepped {
			every, err = strconv.Atoi(step)
		}
		switch {
		case err != nil || a < 0 || b > most || a > b || every < 1:
			return "", fmt.Errorf("%q is not understood", part)
		case stepped && a == 0 && b == most:
			out = append(out, fmt.Sprintf("*/%d", every))
		case stepped:
			out = append(out, fmt.Sprintf("%d-%d/%d", a, b, every))
		case ranged:
			out = append(out, fmt.Sprintf("%d-%d", a, b))
		default:
			out = append(out, strconv.Itoa(a))
		}
	}
	return strings.Join(out, ","), nil
}
