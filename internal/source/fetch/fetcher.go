package fetch

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// Book keeps the limits and the credentials of hosts. An error of Acquire that
// has a method DeniedUntil() time.Time is a no of the book itself.
type Book interface {
	// Acquire takes one call out of what a domain allows.
	Acquire(ctx context.Context, domain string) error
	// Learn notes what an answer says about the limits of a domain.
	Learn(ctx context.Context, domain string, status int, h http.Header) error
	// Authorize adds the credential of the request's host.
	Authorize(ctx context.Context, req *http.Request) error
	// Rejected tells that the credential of a request was refused.
	Rejected(req *http.Request)
}

// Options are the parts of a Fetcher.
type Options struct {
	Client *outbound.Client
	Book   Book         // nil: nothing is limited, and there are no credentials
	Log    *slog.Logger // nil: nothing is logged
}

// Fetcher gets pages. It is safe for concurrent use.
type Fetcher struct{ opt Options }

// New makes a Fetcher.
func New(opt Options) *Fetcher {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Fetcher{opt: opt}
}

// Next gets the page at a position. It reads the answer to its end before it
// returns; ctx ends the call at any point. Every error is an *Error, and there
// is no page with one. The caller closes the page.
func (f *Fetcher) Next(ctx context.Context, ask Ask, from Position) (*Page, error) {
	if e := interrupted(ctx); e != nil {
		return nil, e
	}
	if from.Page >= ask.maxPages() {
		e := faultf(CodePageLimit, "there are more than %d pages", ask.maxPages())
		e.Hint = "raise response.maxPages, or ask for larger pages"
		return nil, e
	}
	asked, err := newSignals(ask.Definition)
	if err != nil {
		return nil, err
	}
	rows, err := newMapper(ask.Definition, ask.Spool)
	if err != nil {
		return nil, faultf(CodeBadPath, "%s", err)
	}
	at, err := target(ask, from)
	if err != nil {
		return nil, err
	}
	a, err := f.call(ctx, ask, at)
	if err != nil {
		if from.Short && beyondTheEnd(err) {
			return &Page{Number: from.Page + 1, Next: from, Last: true, Requests: 1, Status: http.StatusNotFound, URL: outbound.Redact(at), rows: rows.rows, width: rows.width()}, nil
		}
		return nil, err
	}
	defer func() { _ = a.resp.Body.Close() }()
	page, err := readPage(ask, from, a, asked, rows)
	if err != nil {
		_ = rows.rows.close() // the first error is the one that matters
		return nil, err
	}
	return page, nil
}

// beyondTheEnd reports whether a server refuses a page because there is none.
func beyondTheEnd(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Class == pawl.ClassLogic && e.Code == CodeStatus
}

// readPage decodes an answer and finds the way on.
func readPage(ask Ask, from Position, a *answer, asked *signals, rows *mapper) (*Page, error) {
	size, err := decode(a, ask, asked, rows)
	if err != nil {
		return nil, err
	}
	if err := checkAnswer(ask.Definition, from, a, asked, rows); err != nil {
		return nil, err
	}
	way, err := advance(ask, from, a, asked, rows)
	if err != nil {
		return nil, err
	}
	return &Page{
		Number: from.Page + 1, Next: way.next, Last: way.last,
		Rejects: rows.rejects, RejectCount: rows.refused, Count: rows.read - rows.refused,
		Bytes: size, Requests: a.requests, Status: a.resp.StatusCode, URL: outbound.Redact(a.req.URL),
		Mark: rows.best.text, rows: rows.rows, width: rows.width(),
	}, nil
}

// checkAnswer refuses an answer that says that it is an error, and one that has
// no rows without saying that there are none.
func checkAnswer(d spec.Definition, from Position, a *answer, asked *signals, rows *mapper) error {
	if failure := asked.failure(d.Response.ErrorWhen); failure != nil {
		return faultf(CodeErrorInBody, "%s answered %d and an error: %s", a.req.URL.Host, a.resp.StatusCode, excerpt(a.req, failure, 200))
	}
	if d.Response.Format != spec.JSON || rows.read > 0 || a.resp.StatusCode == http.StatusNoContent {
		return nil
	}
	data := asked.found[asked.data.id]
	switch {
	case data != nil && data[0] != 'n':
		return nil // an array without rows
	case saysNothing(d, from, asked, data != nil):
		return nil
	}
	return nothingAt(a.req.URL.Host, d.Response.DataPath, asked.names)
}

// saysNothing reports whether an answer without rows says that there are none:
// by a total of 0, by saying that there is no more, or by a null in place of
// the rows after the pages before it.
func saysNothing(d spec.Definition, from Position, asked *signals, isNull bool) bool {
	if p := d.OffsetPagination; p != nil {
		if total := asked.at(p.TotalPath); total != nil && !isSomething(total) {
			return true
		}
		if more := asked.at(p.HasMorePath); more != nil && !isSomething(more) {
			return true
		}
		return isNull && from.Page > 0
	}
	if p := d.CursorPagination; p != nil {
		cursor := asked.at(p.NextCursorPath)
		return isNull && cursor != nil && !isSomething(cursor)
	}
	if p := d.LinkPagination; p != nil {
		link := asked.at(p.NextPath)
		return isNull && link != nil && !isSomething(link)
	}
	return false
}

// nothingAt is the Error of an answer without anything at the data path.
func nothingAt(host, path string, names []string) *Error {
	what := "the answer has nothing at response.dataPath " + strconv.Quote(path)
	if len(names) > 0 {
		what += " (it has " + strings.Join(names, ", ") + ")"
	}
	e := faultf(CodeBadPath, "%s: %s", host, what)
	e.Hint = "if this is how the other side reports a failure, set response.errorWhen"
	return e
}
