package when

import (
	"fmt"
	"strings"
	"time"
)

// listWords joins items as in a sentence: a, b and c.
func listWords(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// joinWords joins the phrases that are not empty.
func joinWords(phrases ...string) string {
	var b strings.Builder
	for _, p := range phrases {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	return b.String()
}

// capital makes the first letter of an English sentence a capital.
func capital(sentence string) string {
	return strings.ToUpper(sentence[:1]) + sentence[1:]
}

// monthList names months: March, March and May, or March to May.
func monthList(months []time.Month) string {
	var list []string
	for _, m := range months {
		list = append(list, m.String())
	}
	if n := len(list); n >= 3 && int(months[n-1]-months[0]) == n-1 {
		list = []string{list[0] + " to " + list[n-1]}
	}
	return listWords(list)
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

func clockText(hour, minute int) string { return fmt.Sprintf("%02d:%02d", hour, minute) }

func everyMinutes(step int) string {
	if step == 1 {
		return "every minute"
	}
	return fmt.Sprintf("every %d minutes", step)
}

// minuteStep finds the step that divides the hour evenly and gives exactly
// this set of minutes. A step of 60 is a single minute and does not count.
func minuteStep(set uint64) (int, bool) {
	for step := 1; step <= 30; step++ {
		if 60%step == 0 && set == stepSet(60, step) {
			return step, true
		}
	}
	return 0, false
}

// stepSet is the set of the values below size that step divides.
func stepSet(size, step int) uint64 {
	var set uint64
	for v := 0; v < size; v += step {
		set |= 1 << v
	}
	return set
}
