package fetch

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// target returns the URL of the page at a position, without credentials.
func target(ask Ask, from Position) (*url.URL, error) {
	d := ask.Definition
	base, err := url.Parse(d.URL)
	if err != nil {
		return nil, faultf(CodeBadPath, "the url of the source is not a URL")
	}
	if from.NextURL != "" {
		next, err := url.Parse(from.NextURL)
		if err != nil {
			return nil, faultf(CodeBadPath, "the link to the next page is not a URL")
		}
		return keepHome(base, next)
	}
	query := base.Query()
	for _, p := range d.Params {
		query.Del(p.Name)
	}
	for _, p := range d.Params {
		query.Add(p.Name, d.ValueAt(p, ask.At))
	}
	if d.Incremental != nil && ask.Since != "" {
		query.Set(d.Incremental.Param, ask.Since)
	}
	if p := d.OffsetPagination; p != nil {
		addOffset(query, *p, from)
	}
	if p := d.CursorPagination; p != nil {
		if from.Cursor != "" {
			query.Set(p.CursorParam, from.Cursor)
		}
		setLimit(query, p.LimitParam, p.Limit)
	}
	base.RawQuery = query.Encode()
	base.Fragment = ""
	return base, nil
}

func addOffset(query url.Values, p spec.OffsetPagination, from Position) {
	switch {
	case p.OffsetParam != "":
		query.Set(p.OffsetParam, strconv.FormatInt(from.Offset, 10))
	case countsRows(p.PageParam):
		query.Set(p.PageParam, strconv.FormatInt(from.Offset, 10))
	case p.PageParam != "":
		query.Set(p.PageParam, strconv.Itoa(p.FirstPage+from.Page))
	}
	setLimit(query, p.LimitParam, p.Limit)
}

// countsRows reports whether a page parameter has a name that everywhere means
// a number of rows.
func countsRows(param string) bool {
	switch param {
	case "offset", "skip", "start", "startAt":
		return true
	}
	return false
}

func setLimit(query url.Values, param string, limit int) {
	if param != "" && limit > 0 {
		query.Set(param, strconv.Itoa(limit))
	}
}

// newRequest makes the request for a URL, without credentials.
func newRequest(ask Ask, at *url.URL) *http.Request {
	d := ask.Definition
	req := &http.Request{Method: http.MethodGet, URL: at, Host: at.Host, Header: http.Header{}}
	for _, h := range d.Headers {
		req.Header.Add(h.Name, d.ValueAt(h, ask.At))
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", accepted(d.Response.Format))
	}
	return req
}

func accepted(f spec.Format) string {
	switch f {
	case spec.CSV:
		return "text/csv, */*;q=0.5"
	case spec.NDJSON:
		return "application/x-ndjson, application/jsonl, application/json;q=0.9, */*;q=0.5"
	default:
		return "application/json, */*;q=0.5"
	}
}
