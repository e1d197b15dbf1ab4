package spec

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/when"
)

// How parts of a definition are written: what may have several forms, and what
// has defaults that differ from the zero of its type.

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

// ReadValue reads the fields, of which the timeout may also be written as a
// length of time such as 5m.
func (e *Execution) ReadValue(v definition.Value) {
	written := struct {
		Timeout          seconds `json:"timeout"`
		MaxRetries       int     `json:"maxRetries"`
		RetryResetPeriod string  `json:"retryResetPeriod"`
	}{seconds(e.Timeout), e.MaxRetries, e.RetryResetPeriod}
	v.Decode(&written)
	*e = Execution{int(written.Timeout), written.MaxRetries, written.RetryResetPeriod}
}

// seconds are written as a number, or with a unit.
type seconds int

func (s *seconds) ReadValue(v definition.Value) {
	if v.Shape() == definition.Text {
		d, err := when.ParseInterval(v.Text())
		if err != nil {
			v.Refuse("timeout %s is neither a number of seconds nor a length of time such as 90s or 5m", pawl.Quote(v.Text()))
			return
		}
		*s = seconds(d / time.Second)
		return
	}
	number := int(*s)
	v.Decode(&number)
	*s = seconds(number)
}

// ReadValue reads the fields; the value may be a number, true or false.
func (p *Pair) ReadValue(v definition.Value) {
	var written struct {
		Name  string            `json:"name" definition:"required"`
		Value definition.Scalar `json:"value"`
	}
	v.Decode(&written)
	*p = Pair{written.Name, string(written.Value)}
}

// ReadValue reads the fields; columns are texts unless they say otherwise.
func (f *Field) ReadValue(v definition.Value) {
	type fields Field
	written := fields{Type: Text}
	v.Decode(&written)
	*f = Field(written)
}

// ReadValue reads the fields; pages are counted from 1 unless they say
// otherwise, and a first page of 0 is one.
func (o *OffsetPagination) ReadValue(v definition.Value) {
	type fields OffsetPagination
	written := fields{Limit: defaultLimit, FirstPage: 1}
	v.Decode(&written)
	*o = OffsetPagination(written)
}

// ReadValue reads the fields; the initial value may be a number.
func (i *Incremental) ReadValue(v definition.Value) {
	var written struct {
		Param      string            `json:"param" definition:"required"`
		CursorPath string            `json:"cursorPath" definition:"required"`
		Initial    definition.Scalar `json:"initial"`
		Lookback   string            `json:"lookback"`
	}
	v.Decode(&written)
	*i = Incremental{written.Param, written.CursorPath, string(written.Initial), written.Lookback}
}
