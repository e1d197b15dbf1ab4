package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/when"
)

// What holds for a source that says nothing else, beside the defaults in the
// tags.
const (
	defaultInterval = "1d"
	defaultLimit    = 100 // rows a page
	defaultTotal    = 4 << 30
)

func defaults() Definition { return Definition{}.Normalize() }

// Normalize fills in the defaults and brings what can be written in several
// ways into one form, so that definitions of equal meaning are equal. A
// definition with faults stays faulty. FirstPage has no default here, because
// 0 is a first page; Parse gives it one.
func (d Definition) Normalize() Definition {
	d.Response.Fields = append([]Field{}, d.Response.Fields...) // [] in JSON, not null
	d.Headers = slices.Clone(d.Headers)
	d.OffsetPagination, d.CursorPagination = copied(d.OffsetPagination), copied(d.CursorPagination)
	d.LinkPagination, d.Incremental = copied(d.LinkPagination), copied(d.Incremental)
	definition.Fill(&d)
	d.Schedule = d.Schedule.normal()
	d.Execution.RetryResetPeriod = interval(d.Execution.RetryResetPeriod)
	if d.Response.DataPath == "." {
		d.Response.DataPath = ""
	}
	for i := range d.Headers {
		d.Headers[i].Name = http.CanonicalHeaderKey(d.Headers[i].Name)
	}
	if p := d.CursorPagination; p != nil && p.LimitParam != "" {
		p.Limit = cmp.Or(p.Limit, defaultLimit)
	}
	if p := d.LinkPagination; p != nil {
		p.Header = http.CanonicalHeaderKey(p.Header)
	}
	if p := d.Incremental; p != nil {
		p.Lookback = interval(p.Lookback)
	}
	return d
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func (s Schedule) normal() Schedule {
	switch {
	case s.Cron != "":
		s.Timezone = cmp.Or(s.Timezone, "UTC")
	case s.Interval == "":
		s.Interval = defaultInterval
	}
	s.Interval, s.Jitter = interval(s.Interval), interval(s.Jitter)
	if s.Missed = copied(s.Missed); s.Missed != nil {
		s.Missed.Within = interval(s.Missed.Within)
	}
	return s
}

// interval writes a length of time in one way; what is none stays as it is.
func interval(text string) string {
	d, err := when.ParseInterval(strings.TrimSpace(text))
	if err != nil {
		return text
	}
	return when.FormatInterval(d)
}

// Version is the SHA-256 of the normalised definition, in hexadecimal.
func (d Definition) Version() string {
	text, err := json.Marshal(d.Normalize())
	if err != nil {
		// Only Equals can do this, and only if it was not read by this package.
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
