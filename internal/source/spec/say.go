package spec

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/when"
)

// When is the schedule as package when knows it, without the days of calendars.
func (s Schedule) When() (when.Schedule, error) {
	s = s.normal()
	if s.Limited() {
		return s.Rule().Schedule(when.Context{})
	}
	return when.New(when.Spec{Interval: s.Interval, Cron: s.Cron, Timezone: s.Timezone})
}

// Limited reports whether the schedule says more than an interval or an expression.
func (s Schedule) Limited() bool {
	return s.From != "" || s.Until != "" || len(s.Except) > 0 || s.Jitter != "" || s.Missed != nil
}

// Rule is the schedule with its limits.
func (s Schedule) Rule() when.Rule {
	s = s.normal()
	r := when.Rule{Interval: s.Interval, Timezone: s.Timezone, From: s.From, Until: s.Until, Except: s.Except, Jitter: s.Jitter}
	if s.Cron != "" {
		r.Cron = []string{s.Cron}
	}
	return r
}

// Late is what becomes of instants at which it could not run; nil: one run stands
// for all of them.
func (s Schedule) Late() *client.Missed {
	if s.Missed == nil {
		return nil
	}
	return &client.Missed{Policy: s.Missed.Policy, Within: s.Missed.Within}
}

// The parts of a value that stand for the instant of a run.
const (
	instantPart = "{scheduledFor}"
	datePart    = "{scheduledFor:date}"
)

// UsesInstant reports whether requests depend on the instant that a run stands for.
func (d Definition) UsesInstant() bool {
	return slices.ContainsFunc(slices.Concat(d.Params, d.Headers), func(p Pair) bool {
		return strings.Contains(p.Value, instantPart) || strings.Contains(p.Value, datePart)
	})
}

// ValueAt is the value of a pair for a run that stands for an instant; dates are
// those of the schedule's zone.
func (d Definition) ValueAt(p Pair, at time.Time) string {
	if at.IsZero() || !strings.Contains(p.Value, "{scheduledFor") {
		return p.Value
	}
	zone, err := when.LoadZone(d.Schedule.Timezone)
	if err != nil {
		zone = time.UTC // it was lost; then nothing is due either
	}
	return strings.NewReplacer(instantPart, pawl.FormatTime(at), datePart, at.In(zone).Format(time.DateOnly)).Replace(p.Value)
}

// Host is the domain that calls are booked for: the host of the URL in lower
// case, with the port unless that is 80 or 443. It is empty if the URL has
// none.
func (d Definition) Host() string {
	u, err := url.Parse(d.URL)
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch port := u.Port(); port {
	case "", "80", "443":
		return host
	default:
		return host + ":" + port
	}
}

// Timeout bounds a whole fetch, over all of its pages (B-39).
func (d Definition) Timeout() time.Duration {
	seconds := d.Execution.Timeout
	if seconds == 0 {
		seconds = defaults().Execution.Timeout
	}
	return time.Duration(seconds) * time.Second
}

// Budget is what the source may spend on failures (B-43).
func (d Definition) Budget() run.Budget {
	budget := run.DefaultBudget()
	if d.Execution.MaxRetries > 0 {
		budget.MaxRetries = d.Execution.MaxRetries
	}
	if period, err := when.ParseInterval(d.Execution.RetryResetPeriod); err == nil {
		budget.Period = period
	}
	return budget
}

// Pagination says in words how the source gets from page to page: offset,
// page, cursor, link header, next link or none.
func (d Definition) Pagination() string {
	switch {
	case d.OffsetPagination != nil && d.OffsetPagination.CountsRows():
		return "offset"
	case d.OffsetPagination != nil:
		return "page"
	case d.CursorPagination != nil:
		return "cursor"
	case d.LinkPagination != nil && d.LinkPagination.Header != "":
		return "link header"
	case d.LinkPagination != nil:
		return "next link"
	}
	return "none"
}

// CountsRows reports whether the parameter counts rows from 0, and not pages.
// Definitions from elsewhere name the parameter of an offset pageParam, so one
// that is called offset, skip, start or startAt counts rows as well.
func (o OffsetPagination) CountsRows() bool {
	return o.OffsetParam != "" || slices.Contains([]string{"offset", "skip", "start", "startAt"}, o.PageParam)
}

// Param is the name of the parameter that counts.
func (o OffsetPagination) Param() string { return cmp.Or(o.OffsetParam, o.PageParam) }
