package execution

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/when"
)

// problem is how an error goes over the wire (RFC 9457). Handler writes it and
// Remote reads it, so that both sides of a call have the same error.
type problem struct {
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Code   string         `json:"code"`
	Detail string         `json:"detail"`
	Hint   string         `json:"hint,omitempty"`
	Errors []problemFault `json:"errors,omitempty"`
	RunID  string         `json:"runId,omitempty"` // of in_progress
	Which  string         `json:"which,omitempty"` // of insufficient_credits
	Until  *time.Time     `json:"until,omitempty"` // of insufficient_credits: the end of the day whose cap is reached
	Zone   string         `json:"zone,omitempty"`  // of that day
}

type problemFault struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// respond writes an answer, or the problem of an error.
func (s *Service) respond(w http.ResponseWriter, answer any, err error) {
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the caller is gone, or not
		return
	}
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		s.log.Error("a request to the execution service ended with an internal error", "err", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable || p.Code == ReasonInProgress {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func problemOf(err error) problem {
	e, ok := errors.AsType[*pawl.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the request was cancelled; the run continues", Hint: "Ask again with the same Idempotency-Key."}
	default:
		e = &pawl.Error{Code: pawl.CodeInternal, Msg: "internal error"}
	}
	p := problem{Status: statusOf(e), Code: string(e.Code), Detail: e.Msg, Hint: e.Hint}
	if e.Reason != "" {
		p.Code = e.Reason
	}
	if p.Status == http.StatusInternalServerError {
		p.Code, p.Detail = string(pawl.CodeInternal), "internal error" // its words are for the log
	}
	p.Type, p.Title = "urn:pawl:problem:"+p.Code, http.StatusText(p.Status)
	for _, f := range e.Fields {
		p.Errors = append(p.Errors, problemFault{f.Pointer, f.String()})
	}
	if busy, ok := errors.AsType[*InProgressError](err); ok {
		p.RunID = busy.RunID
	}
	if broke, ok := errors.AsType[*billing.CapError](err); ok {
		if p.Which = broke.Which; !broke.Until.IsZero() {
			p.Until, p.Zone = new(broke.Until.UTC()), broke.Until.Location().String()
		}
	}
	return p
}

// statusOf differs from that of the rest of the API where the contract of the
// service asks for it: a request that is not valid is 400, no credits is 402.
func statusOf(e *pawl.Error) int {
	switch {
	case e.Code == pawl.CodeInvalid && e.Reason != ReasonMismatch:
		return http.StatusBadRequest
	case e.Reason == string(contract.InsufficientCredits):
		return http.StatusPaymentRequired
	}
	return e.Code.HTTPStatus()
}

// err is the error that a problem was made of.
func (p problem) err() error {
	if p.Code == ReasonInProgress {
		return &InProgressError{RunID: p.RunID}
	}
	if p.Code == string(contract.InsufficientCredits) {
		return &billing.CapError{Which: p.Which, Msg: p.Detail, Until: p.until()}
	}
	e := &pawl.Error{Code: codeOfStatus(p.Status), Op: "run graph", Msg: p.Detail, Hint: p.Hint}
	if p.Code != string(e.Code) {
		e.Reason = p.Code
	}
	for _, f := range p.Errors {
		e.Fields = append(e.Fields, pawl.Field{Pointer: f.Pointer, Message: f.Message})
	}
	return e
}

// until is an instant of the zone that the other side named.
func (p problem) until() time.Time {
	if p.Until == nil {
		return time.Time{}
	}
	zone, err := when.LoadZone(p.Zone)
	if err != nil {
		zone = time.UTC
	}
	return p.Until.In(zone)
}

func codeOfStatus(status int) pawl.Code {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return pawl.CodeInvalid
	case http.StatusUnauthorized:
		return pawl.CodeUnauthorized
	case http.StatusForbidden:
		return pawl.CodeForbidden
	case http.StatusNotFound:
		return pawl.CodeNotFound
	case http.StatusConflict:
		return pawl.CodeConflict
	case http.StatusRequestEntityTooLarge:
		return pawl.CodeTooLarge
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return pawl.CodeUnavailable
	}
	return pawl.CodeInternal
}
