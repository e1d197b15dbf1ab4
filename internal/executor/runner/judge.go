package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/internal/outbound"
)

// longestWait is how long a server can ask to be left alone.
const longestWait = time.Hour

// Refusal is what an answer means that is not of the kind 2xx; not ok for one
// that is. The message tells what the server says in its body.
//
//	401, 403             internal: the credentials are wrong
//	404, 410             not_found
//	408, 425, 429        rate_limit; tried again, not before Retry-After
//	409, 5xx             internal; tried again
//	other 3xx and 4xx    invalid_request
func Refusal(resp *http.Response, body []byte) (result Result, ok bool) {
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return Result{}, false
	}
	message := fmt.Sprintf("%s %s: %d %s", resp.Request.Method, resp.Request.URL.Host, status, http.StatusText(status))
	if said := reasonIn(body); said != "" {
		message += ": " + said
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Final(CodeInternal, message+"; check the headers in the executor's definition"), true
	case status == http.StatusNotFound || status == http.StatusGone:
		return Final(CodeNotFound, message), true
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		result = Failure(CodeRateLimit, message)
	case status >= 300 && status < 500 && status != http.StatusConflict:
		return Final(CodeInvalidRequest, message), true
	default:
		result = Failure(CodeInternal, message)
	}
	result.RetryAfter, _ = outbound.RetryAfter(resp.Header, time.Now(), longestWait)
	return result, true
}

// reasonIn is what the body of a refusal says: the message of its error, or a
// short text.
func reasonIn(body []byte) string {
	if _, told := ErrorOf(body); told != "" {
		return told
	}
	const short = 300 // bytes; what is longer is a page
	body = bytes.TrimSpace(body)
	if len(body) > short || json.Valid(body) || bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	return Excerpt(string(body))
}

// NoAnswer is the result of a call that gave no answer. An error means that
// the process stops, or that another one has taken over.
func NoAnswer(ctx context.Context, err error) (Result, error) {
	if result, ended, err := Ended(ctx); ended {
		return result, err
	}
	failure, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return Result{}, err
	}
	message := failure.Error()
	if failure.Hint != "" {
		message += "; " + failure.Hint
	}
	switch failure.Kind {
	case outbound.KindBlocked, outbound.KindInvalid, outbound.KindRedirect:
		return Final(CodeInternal, message), nil
	case outbound.KindTimeout:
		return Failure(CodeTimeout, message), nil
	case outbound.KindDNS, outbound.KindConnect, outbound.KindTLS, outbound.KindCancelled, outbound.KindBroken, outbound.KindUnreadable, outbound.KindTooLarge:
	}
	return Failure(CodeInternal, message), nil
}
