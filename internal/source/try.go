package source

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// Tried is what a definition would write.
type Tried struct {
	Fields   []spec.Field
	Rows     []fetch.Row // the first ones
	Read     int         // rows of the pages that were fetched
	Rejects  []fetch.Reject
	Rejected int
	Requests []TriedRequest
	More     bool // there are more pages than were fetched
	Mark     string
	Since    string
}

// TriedRequest is a call that was made.
type TriedRequest struct {
	URL    string // without the values of the query
	Status int
	Bytes  int64
	Rows   int
	Took   time.Duration
}

// TryLimits bound what is fetched.
type TryLimits struct {
	Pages int // default 2
	Rows  int // that are returned; default 20
	Spool string
}

// Try fetches and maps the first pages of a definition and writes nothing. What
// was tried before a fault is returned with it.
func Try(ctx context.Context, f *fetch.Fetcher, d spec.Definition, limits TryLimits) (Tried, error) {
	if limits.Pages <= 0 {
		limits.Pages = 2
	}
	if limits.Rows <= 0 {
		limits.Rows = 20
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.Timeout(), errTimeUp)
	defer cancel()
	t := Tried{Fields: d.Response.Fields}
	ask := fetch.Ask{Definition: d, Spool: limits.Spool, At: time.Now().UTC().Truncate(time.Millisecond)} // as if it were due now
	if d.Incremental != nil {
		since, err := fetch.Since(*d.Incremental, "")
		if err != nil {
			return t, err
		}
		ask.Since, t.Since = since, since
	}
	for at := ask.From; ; {
		last, next, err := t.page(ctx, f, ask, at, limits)
		if err != nil || last {
			return t, err
		}
		if len(t.Requests) >= limits.Pages {
			t.More = true
			return t, nil
		}
		at = next
	}
}

func (t *Tried) page(ctx context.Context, f *fetch.Fetcher, ask fetch.Ask, at fetch.Position, limits TryLimits) (last bool, next fetch.Position, err error) {
	begun := time.Now()
	page, err := f.Next(ctx, ask, at)
	if err != nil {
		return false, at, err
	}
	defer func() { _ = page.Close() }()
	t.Requests = append(t.Requests, TriedRequest{URL: page.URL, Status: page.Status, Bytes: page.Bytes, Rows: page.Count, Took: time.Since(begun)})
	t.Read += page.Count
	t.Rejected += page.RejectCount
	for _, r := range page.Rejects {
		if len(t.Rejects) < limits.Rows {
			t.Rejects = append(t.Rejects, r)
		}
	}
	if page.Mark != "" && (t.Mark == "" || fetch.Greater(page.Mark, t.Mark)) {
		t.Mark = page.Mark
	}
	for row, err := range page.Rows() {
		if err != nil {
			return false, at, err
		}
		if len(t.Rows) >= limits.Rows {
			break
		}
		t.Rows = append(t.Rows, row)
	}
	return page.Last, page.Next, nil
}
