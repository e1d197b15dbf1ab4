package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/visible"
)

// The codes of Error.
const (
	CodeStatus       = "http_status"      // the status says no
	CodeLimited      = "rate_limited"     // the status is 429: not so fast
	CodeUnauthorized = "unauthorized"     // the credential is missing or refused
	CodeNotJSON      = "not_json"         // the answer is something else
	CodeNotCSV       = "not_csv"          // the answer is something else
	CodeTruncated    = "truncated"        // the answer ends too early
	CodeTooLarge     = "too_large"        // the answer, or one row, is over the limit
	CodeErrorInBody  = "error_in_body"    // the status is fine, and the answer says no
	CodeBadPath      = "bad_path"         // a path of the definition does not fit the answer
	CodeLoop         = "loop"             // the pages do not end
	CodePageLimit    = "page_limit"       // there are more pages than allowed
	CodeRedirect     = "redirect_refused" // a redirect or link leads where it must not
	CodeDeferred     = "deferred"         // our own book says: not now
	CodeNetwork      = "network"          // no answer: name, connection, TLS
	CodeTimeout      = "timeout"          // no answer in time
	CodeCancelled    = "cancelled"        // whoever asked gave up
	CodeInternal     = "internal"         // a fault of this side
	CodeStoreAway    = "store_away"       // our own database is away: nobody's failure
)

// Error is a page that could not be had. It is also a *pawl.Error for
// errors.As. Its texts hold no query value, no header and no key.
type Error struct {
	Class      pawl.Class
	Code       string
	Msg        string
	Hint       string
	RetryAfter time.Duration // what the other side asked for; 0: nothing
	Deferred   bool          // our own book said no: it counts as no attempt
	Until      time.Time     // when the book will say yes, if Deferred
	Err        error         // the cause, for logs; its text may quote what the server sent
}

// Error is the message.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the error as a *pawl.Error, and the cause.
func (e *Error) Unwrap() []error {
	general := &pawl.Error{Code: e.general(), Reason: e.Code, Msg: e.Msg, Hint: e.Hint}
	if e.Err == nil {
		return []error{general}
	}
	return []error{general, e.Err}
}

func (e *Error) general() pawl.Code {
	switch {
	case e.Code == CodeTooLarge:
		return pawl.CodeTooLarge
	case e.Class == pawl.ClassTransient:
		return pawl.CodeUnavailable
	case e.Class == pawl.ClassInternal:
		return pawl.CodeInternal
	}
	return pawl.CodeInvalid
}

// faultf is an Error that asking again would not mend.
func faultf(code, format string, args ...any) *Error {
	return &Error{Class: pawl.ClassLogic, Code: code, Msg: fmt.Sprintf(format, args...)}
}

// ours is an Error of this side.
func ours(doing string, err error) *Error {
	return &Error{Class: pawl.ClassInternal, Code: CodeInternal, Msg: doing + " did not work", Err: fmt.Errorf("%s: %w", doing, err)}
}

// interrupted is the Error of a context that ended, or nil.
func interrupted(ctx context.Context) *Error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	e := &Error{Class: pawl.ClassTransient, Code: CodeCancelled, Msg: "the fetch was cancelled", Err: cause}
	if errors.Is(cause, context.DeadlineExceeded) {
		e.Code, e.Msg = CodeTimeout, "the fetch ran out of time"
	}
	return e
}

// fromCall translates an error of the client; req is the first request.
func fromCall(req *http.Request, err error) *Error {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return ours("send the request", err)
	}
	out := &Error{Class: e.Class, Code: CodeNetwork, Msg: e.Error(), Hint: e.Hint, Err: err}
	switch e.Kind {
	case outbound.KindTimeout:
		out.Code = CodeTimeout
	case outbound.KindCancelled:
		out.Code = CodeCancelled
	case outbound.KindTooLarge:
		out.Code = CodeTooLarge
		out.Hint = "ask for smaller pages, or raise response.maxBytes"
	case outbound.KindUnreadable:
		out.Code = CodeTruncated
	case outbound.KindRedirect:
		out.Code = CodeRedirect
	case outbound.KindBlocked:
		if !strings.EqualFold(e.Host, req.URL.Host) {
			out.Code = CodeRedirect
		}
	case outbound.KindInvalid, outbound.KindDNS, outbound.KindConnect, outbound.KindTLS, outbound.KindBroken:
	}
	return out
}

// excerpt is the beginning of what a server sent, fit for a message: on one
// line, cut at limit characters, and without anything that the request held.
func excerpt(req *http.Request, body []byte, limit int) string {
	text := strings.ToValidUTF8(string(body), "?")
	for _, secret := range secrets(req) {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return visible.Excerpt(text, limit)
}

// secrets lists what of a request must not be shown: the values of the query
// and of the headers, also as they are written in a URL. Very short ones would
// hide half of any text and are no secrets.
func secrets(req *http.Request) []string {
	const shortest = 4
	var out []string
	add := func(value string) {
		if len(value) >= shortest {
			out = append(out, value, url.QueryEscape(value))
		}
	}
	for _, values := range req.URL.Query() {
		for _, v := range values {
			add(v)
		}
	}
	for name, values := range req.Header {
		if name == "Accept" || name == "User-Agent" {
			continue
		}
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok {
				add(token)
			}
		}
	}
	return out
}
