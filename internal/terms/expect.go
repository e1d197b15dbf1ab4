package terms

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// What can be expected of a lane, in the order in which it is told.
const (
	FreshWithin = "freshWithin"
	DoneBy      = "doneBy"
	Rows        = "rows"
	OnTime      = "onTime"
)

// Bounds of what can be expected.
const (
	longestFresh = 366 * 24 * time.Hour
	day          = 24 * time.Hour
)

// About is what of a lane decides whether it makes sense to expect something.
type About struct {
	Kind      pawl.Kind
	Scheduled bool          // something of it comes due by itself
	Every     time.Duration // the longest interval of what comes due; zero: it has times of its own
}

// CheckExpect finds what is wrong with what a definition expects of its lane.
func CheckExpect(e *client.Expect, a About, fault Fault) {
	if e == nil {
		return
	}
	wrong := func(name, hint, format string, values ...any) {
		fault([]any{"expect", name}, fmt.Sprintf(format, values...), hint)
	}
	const unscheduled = "nothing of the %s is due by a schedule, so %s means nothing"
	if e.FreshWithin != "" {
		const hint = "Write a length of time such as 90s, 2h or 3d."
		if d, err := when.ParseInterval(e.FreshWithin); err != nil {
			wrong(FreshWithin, hint, "%s is not a length of time", pawl.Quote(e.FreshWithin))
		} else if d > longestFresh {
			wrong(FreshWithin, hint, "%s is longer than a year", pawl.Quote(e.FreshWithin))
		}
	}
	if e.DoneBy != "" {
		const hint = `Write a time of day such as "07:00".`
		switch _, ok := parseClock(e.DoneBy); {
		case !ok:
			wrong(DoneBy, hint, "%s is not a time of day", pawl.Quote(e.DoneBy))
		case !a.Scheduled:
			wrong(DoneBy, "Expect freshWithin instead.", unscheduled, a.Kind, DoneBy)
		case a.Every > day:
			wrong(DoneBy, "Expect freshWithin instead.", "it is not due every day: its interval of %s counts from when it last ran", when.FormatInterval(a.Every))
		}
	}
	if e.Rows != "" {
		n, err := strconv.ParseInt(string(e.Rows), 10, 64)
		switch {
		case !a.Scheduled:
			wrong(Rows, "Expect freshWithin instead.", unscheduled, a.Kind, Rows)
		case e.Rows != client.RowsUsual && (err != nil || n < 1):
			wrong(Rows, "Write rows: usual, or the least number of rows, such as rows: 100.", "%s is not a number of rows", pawl.Quote(string(e.Rows)))
		}
	}
	if p := e.OnTime; p != nil {
		switch {
		case !(*p > 0 && *p <= 100): // which also refuses what is no number
			wrong(OnTime, "Write how many of 100 starts are on time, such as 99.5.", "%v is not a percentage above 0", *p)
		case !a.Scheduled:
			wrong(OnTime, "Expect freshWithin instead.", unscheduled, a.Kind, OnTime)
		}
	}
}

// ExpectText is the form in which it is stored; empty if nothing is expected.
func ExpectText(e *client.Expect) string {
	if e.Empty() {
		return ""
	}
	raw, _ := json.Marshal(e) // of types that can be JSON
	return string(raw)
}

// ParseExpect is what ExpectText was given; nil if nothing is expected, or another
// release wrote what this one cannot read.
func ParseExpect(text string) *client.Expect {
	var e client.Expect
	if text == "" || json.Unmarshal([]byte(text), &e) != nil {
		return nil
	}
	return &e
}

// ExpectWords is what is expected, for people.
func ExpectWords(e *client.Expect) string {
	if e.Empty() {
		return ""
	}
	var parts []string
	if e.FreshWithin != "" {
		parts = append(parts, "a success every "+e.FreshWithin)
	}
	if e.DoneBy != "" {
		parts = append(parts, "done by "+e.DoneBy)
	}
	switch e.Rows {
	case "":
	case client.RowsUsual:
		parts = append(parts, "as many rows as usual")
	default:
		parts = append(parts, "at least "+string(e.Rows)+" rows")
	}
	if e.OnTime != nil {
		parts = append(parts, percent(*e.OnTime)+" of starts on time")
	}
	return strings.Join(parts, ", ")
}

func percent(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) + "%" }

// parseClock reads HH:MM as the time since midnight.
func parseClock(text string) (minutes int, ok bool) {
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err == nil && len(text) == len("15:04")
}
