package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// maxRetryAfter bounds what a server may ask for. Longer rests are a matter of
// the book.
const maxRetryAfter = time.Hour

// answer is a response of a good status, and the requests that led to it.
type answer struct {
	resp     *http.Response
	plain    *url.URL // as asked for, without credentials
	req      *http.Request
	requests int
}

// call asks for a page. A credential that is refused is renewed once, if the
// book has another one. The caller closes the body.
func (f *Fetcher) call(ctx context.Context, ask Ask, at *url.URL) (*answer, error) {
	req, err := f.authorized(ctx, ask, at)
	if err != nil {
		return nil, err
	}
	for requests := 1; ; requests++ {
		resp, err := f.send(ctx, ask.Definition.Host(), req) //nolint:bodyclose // refusedBy closes it, or whoever gets the answer
		if err != nil {
			return nil, err
		}
		if outbound.JudgeStatus(outbound.Read, resp.StatusCode).OK() {
			return &answer{resp: resp, plain: at, req: req, requests: requests}, nil
		}
		failure := refusedBy(req, resp)
		if resp.StatusCode != http.StatusUnauthorized || requests > 1 || f.opt.Book == nil {
			return nil, failure
		}
		f.opt.Book.Rejected(req)
		again, err := f.authorized(ctx, ask, at)
		if err != nil {
			return nil, err
		}
		if sameCredential(req, again) {
			return nil, failure
		}
		req = again
	}
}

func sameCredential(a, b *http.Request) bool {
	return a.URL.String() == b.URL.String() && maps.EqualFunc(a.Header, b.Header, slices.Equal)
}

// authorized makes a request with the credential of its host.
func (f *Fetcher) authorized(ctx context.Context, ask Ask, at *url.URL) (*http.Request, error) {
	own := *at
	req := newRequest(ask, &own)
	if f.opt.Book == nil {
		return req, nil
	}
	if err := f.opt.Book.Authorize(ctx, req); err != nil {
		return nil, unauthorized(at, err)
	}
	return req, nil
}

// unauthorized is the Error of a credential that could not be had. Its class
// is that of the cause: a token server may be away for a moment.
func unauthorized(at *url.URL, err error) *Error {
	e := &Error{
		Class: pawl.ClassAuth, Code: CodeUnauthorized, Err: err,
		Msg: "no credential could be had for " + at.Host,
	}
	if cause, ok := errors.AsType[*outbound.Error](err); ok {
		e.Class = cause.Class
	} else if pawl.ErrorCode(err) == pawl.CodeUnavailable {
		e.Class = pawl.ClassTransient
	}
	var asked interface{ RetryDelay() time.Duration }
	if errors.As(err, &asked) {
		e.RetryAfter = min(asked.RetryDelay(), maxRetryAfter)
	}
	return e
}

// send makes one call that the book allows, and tells the book about it.
func (f *Fetcher) send(ctx context.Context, domain string, req *http.Request) (*http.Response, error) {
	if f.opt.Book != nil {
		if err := f.opt.Book.Acquire(ctx, domain); err != nil {
			return nil, notAllowed(ctx, domain, err)
		}
	}
	resp, err := f.opt.Client.Do(ctx, req)
	if err != nil {
		return nil, fromCall(req, err)
	}
	if f.opt.Book != nil {
		if err := f.opt.Book.Learn(ctx, domain, resp.StatusCode, resp.Header); err != nil {
			// The page is good all the same, and a refusal carries its delay itself.
			f.opt.Log.WarnContext(ctx, "limits of a host were not noted", slog.String("domain", domain), slog.Any("error", err))
		}
	}
	return resp, nil
}

// notAllowed is the Error of a book that says no, or that cannot be read.
func notAllowed(ctx context.Context, domain string, err error) *Error {
	if e := interrupted(ctx); e != nil {
		return e
	}
	var denied interface{ DeniedUntil() time.Time }
	switch {
	case errors.Is(err, pawl.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return &Error{Class: pawl.ClassTransient, Code: CodeStoreAway, Msg: "the book of calls cannot be read now", Err: err}
	case !errors.As(err, &denied):
		return ours("ask the book of calls", err)
	}
	until := denied.DeniedUntil()
	return &Error{
		Class: pawl.ClassTransient, Code: CodeDeferred, Deferred: true, Until: until, Err: err,
		Msg: fmt.Sprintf("%s may not be called before %s", domain, pawl.FormatTime(until)),
	}
}

// refusedBy is the Error of an answer whose status says no; it closes the body.
func refusedBy(req *http.Request, resp *http.Response) *Error {
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 2<<10)) // whatever there is of it helps
	e := &Error{
		Class: outbound.JudgeStatus(outbound.Read, resp.StatusCode).Class,
		Code:  CodeStatus,
		Msg:   fmt.Sprintf("%s answered %d %s", req.URL.Host, resp.StatusCode, http.StatusText(resp.StatusCode)),
	}
	if text := excerpt(req, body, 200); text != "" && text[0] != '<' {
		e.Msg += ": " + text
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		e.Code = CodeLimited
	}
	if e.Class == pawl.ClassAuth {
		e.Code = CodeUnauthorized
		e.Hint = "Check the credential in the provider file of " + req.URL.Host
	}
	if wait, ok := outbound.RetryAfter(resp.Header, time.Now(), maxRetryAfter); ok {
		e.RetryAfter = wait
	}
	return e
}
