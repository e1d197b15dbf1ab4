package httptool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
	"github.com/pawlrun/pawl/internal/visible"
)

const (
	longestWait  = time.Hour // that a Retry-After is followed for
	longestQuote = 300       // characters of an answer in a message
)

// withoutSecrets is the last step of every error.
func (s *Service) withoutSecrets(err error) error {
	if e, ok := errors.AsType[*connector.Error](err); ok {
		clean := *e
		clean.Msg, clean.Hint = s.secrets.Text(e.Msg), s.secrets.Text(e.Hint)
		return &clean
	}
	return &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: "the call did not work"}
}

// service names the connection and where it leads.
func (s *Service) service() string {
	if s.name == "" {
		return s.base.Host
	}
	return s.name + " (" + s.base.Host + ")"
}

// described says which request it was. The query is left out: it may hold what
// is nobody's business.
func (s *Service) described(r request) string {
	path := s.secrets.Text(r.url.EscapedPath()) // before it is cut, see quote
	if len(path) > longestQuote {
		path = path[:longestQuote] + "..."
	}
	return s.service() + ": " + r.verb + " " + path
}

// failed is the error of a request without a usable answer.
func (s *Service) failed(r request, e *outbound.Error) *connector.Error {
	verdict := e.Verdict(r.effect)
	fault := &connector.Error{
		Class: verdict.Class, Code: string(e.Kind), NotApplied: verdict.Happened == outbound.NotHappened,
		Msg: s.described(r) + ": " + e.Reason, Hint: e.Hint,
	}
	fault.NotSent = fault.NotApplied && !e.MaybeSent && e.Status == 0
	// Other causes may quote what the service sent.
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e, cause) {
			fault.Err = cause
		}
	}
	return fault
}

// refused is the error of an answer that is no result.
func (s *Service) refused(r request, a answer) *connector.Error {
	verdict := outbound.JudgeStatus(r.effect, a.status)
	fault := &connector.Error{
		Class: verdict.Class, Code: codeOf(a.status), NotApplied: verdict.Happened == outbound.NotHappened,
		Msg: strings.TrimSpace(fmt.Sprintf("%s was answered %d %s", s.described(r), a.status, http.StatusText(a.status))),
	}
	if said := s.quote(a.body); said != "" {
		fault.Msg += ": " + said
	}
	switch a.status {
	case http.StatusUnauthorized:
		fault.Hint = "Renew the credentials of the connection to " + s.service() + "."
	case http.StatusForbidden:
		fault.Hint = "Give the credentials of the connection to " + s.service() + " the right to do this."
	case http.StatusPaymentRequired:
		fault.Class = pawl.ClassPrecondition
		fault.Hint = "Pay for the account at " + s.service() + "."
	}
	if fault.Class == pawl.ClassTransient {
		fault.RetryAfter, _ = outbound.RetryAfter(a.header, time.Now(), longestWait)
	}
	return fault
}

// codeOf is the word for a status that is no success.
func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusPaymentRequired:
		return "payment_required"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusNotFound:
		return "not_found"
	case http.StatusConflict:
		return "conflict"
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return "try_later"
	case http.StatusTooManyRequests:
		return "rate_limited"
	}
	switch {
	case status >= 300 && status < 400:
		return "redirect"
	case status >= 400 && status < 500:
		return "rejected"
	}
	return "server_error"
}

// quote is the beginning of what a service said, on one line. Secrets are taken
// out of the whole, so that none is cut and missed.
func (s *Service) quote(body []byte) string {
	return visible.Excerpt(s.secrets.Text(strings.ToValidUTF8(string(body), "\uFFFD")), longestQuote)
}
