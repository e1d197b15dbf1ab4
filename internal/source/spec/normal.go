package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/when"
)

// What holds for a source that says nothing else.
const (
	defaultTimeout  = 300 // seconds
	defaultRetries  = 5
	defaultPeriod   = "1d"
	defaultInterval = "1d"
	defaultLimit    = 100 // rows a page
	defaultPages    = 10_000
	defaultBytes    = 1 << 30
	defaultTotal    = 4 << 30
)

func defaults() Definition { return Definition{}.Normalize() }

// Normalize fills in the defaults and brings what can be written in several
// ways into one form, so that definitions of equal meaning are equal. A
// definition with faults stays faulty. FirstPage has no default here, because
// 0 is a first page; Parse gives it one.
func (d Definition) Normalize() Definition {
	d.Status = or(d.Status, Active)
	d.Schedule = d.Schedule.normal()
	d.Execution.Timeout = or(d.Execution.Timeout, defaultTimeout)
	d.Execution.MaxRetries = or(d.Execution.MaxRetries, defaultRetries)
	d.Execution.RetryResetPeriod = interval(or(d.Execution.RetryResetPeriod, defaultPeriod))
	d.Response = d.Response.normal()
	d.Write.Mode = or(d.Write.Mode, Append)
	d.Headers = slices.Clone(d.Headers)
	for i := range d.Headers {
		d.Headers[i].Name = http.CanonicalHeaderKey(d.Headers[i].Name)
	}
	return d.normalPages()
}

func (d Definition) normalPages() Definition {
	if d.OffsetPagination != nil {
		offset := *d.OffsetPagination
		offset.Limit = or(offset.Limit, defaultLimit)
		d.OffsetPagination = &offset
	}
	if d.CursorPagination != nil {
		cursor := *d.CursorPagination
		if cursor.LimitParam != "" {
			cursor.Limit = or(cursor.Limit, defaultLimit)
		}
		d.CursorPagination = &cursor
	}
	if d.LinkPagination != nil {
		link := *d.LinkPagination
		link.Header = http.CanonicalHeaderKey(link.Header)
		d.LinkPagination = &link
	}
	if d.Incremental != nil {
		incremental := *d.Incremental
		incremental.Lookback = interval(incremental.Lookback)
		d.Incremental = &incremental
	}
	return d
}

func (s Schedule) normal() Schedule {
	switch {
	case s.Cron != "":
		s.Timezone = or(s.Timezone, "UTC")
	case s.Interval == "":
		s.Interval = defaultInterval
	}
	s.Interval = interval(s.Interval)
	return s
}

func (r Response) normal() Response {
	r.Format = or(r.Format, JSON)
	r.MaxPages = or(r.MaxPages, defaultPages)
	r.MaxBytes = or(r.MaxBytes, defaultBytes)
	if r.DataPath == "." {
		r.DataPath = ""
	}
	r.Fields = slices.Clone(r.Fields)
	for i := range r.Fields {
		r.Fields[i].Type = or(r.Fields[i].Type, Text)
	}
	if r.Fields == nil {
		r.Fields = []Field{} // [] in JSON, not null
	}
	return r
}

func or[T comparable](value, normal T) T {
	var zero T
	if value == zero {
		return normal
	}
	return value
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
