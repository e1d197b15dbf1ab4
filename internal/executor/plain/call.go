package plain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/visible"
)

// longestWait is how long a server can ask to be left alone.
const longestWait = 24 * time.Hour

// call makes one request and judges what comes back.
func (p *Provider) call(ctx context.Context, what client.PlainRun, r runner.Run) (runner.Result, error) {
	s := &secrets{getenv: p.env.Getenv}
	req, err := request(ctx, what, r, s)
	if result, missing := s.missing(); missing {
		return result, nil
	}
	if err != nil {
		return runner.Final(runner.CodeInvalidRequest, "the request cannot be made: url, method or a header is not valid"), nil // its text may quote a secret
	}
	net := redact.New(s.found)
	resp, err := p.env.HTTP.Do(ctx, req)
	if err != nil {
		result, err := noAnswer(ctx, what, r, err)
		result.Message = net.Text(result.Message)
		return result, err
	}
	defer func() { _ = resp.Body.Close() }()
	out := client.PlainOutput{Status: resp.StatusCode, Headers: headers(resp.Header, net)}
	body, cut := readStart(resp)
	out.Body, out.Truncated = visible.Text(net.Text(string(body))), cut
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return withOutput(runner.Result{OK: true}, out), nil
	}
	result := refusal(resp, req)
	result.Message = net.Text(result.Message)
	return withOutput(result, out), nil
}

func request(ctx context.Context, what client.PlainRun, r runner.Run, s *secrets) (*http.Request, error) {
	method := strings.ToUpper(what.Method)
	if method == "" {
		method = http.MethodPost
	}
	body, kind := bodyOf(what.Body)
	req, err := http.NewRequestWithContext(ctx, method, s.resolve(what.URL), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
	} else {
		req.Header.Set("Content-Type", kind)
	}
	for name, value := range what.Headers {
		req.Header.Set(name, s.resolve(value))
	}
	req.Header.Set("Idempotency-Key", r.Key)
	return req, nil
}

// bodyOf is what is sent: a text as it is, anything else as JSON.
func bodyOf(raw json.RawMessage) (body []byte, kind string) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text), "text/plain; charset=utf-8"
	}
	return raw, "application/json"
}

// readStart reads the first bytes of an answer, and whether there is more. What
// cannot be read of it changes nothing: its status has arrived.
func readStart(resp *http.Response) (body []byte, more bool) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, kept+1))
	if len(body) > kept {
		return body[:kept], true
	}
	return body, err != nil
}

// headers are those of an answer as they are kept.
func headers(h http.Header, net redact.Redactor) map[string]string {
	const most = 16 << 10 // bytes of all
	out, size := map[string]string{}, 0
	for name, values := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Set-") {
			continue // what is to be sent back is a secret of somebody
		}
		value := visible.Text(net.Text(strings.Join(values, ", ")))
		if size += len(name) + len(value); size > most {
			break
		}
		out[name] = value
	}
	return out
}

// refusal is what an answer means that is not of the kind 2xx. It arrived, so it
// is known that the call failed.
func refusal(resp *http.Response, req *http.Request) runner.Result {
	message := fmt.Sprintf("%s %s answered %d %s", req.Method, req.URL.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
	code := runner.CodeInternal
	switch status := resp.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusGone:
		code = runner.CodeNotFound
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		code = runner.CodeRateLimit
	case status >= 300 && status < 500 && status != http.StatusConflict:
		code = runner.CodeInvalidRequest
	}
	result := again(code, strings.TrimSpace(message))
	result.RetryAfter, _ = outbound.RetryAfter(resp.Header, time.Now(), longestWait)
	return result
}

// noAnswer is the result of a call that gave none. If the request may have
// arrived, nobody knows whether it was carried out, unless it only reads or may be
// made twice. An error means that the process stops, or that another one has taken
// over.
func noAnswer(ctx context.Context, what client.PlainRun, r runner.Run, err error) (runner.Result, error) {
	result, ended, cause := runner.Ended(ctx)
	if ended && cause != nil {
		return runner.Result{}, cause
	}
	failure, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return runner.Result{}, err
	}
	message := failure.Error()
	if failure.Hint != "" {
		message += "; " + failure.Hint
	}
	code := runner.CodeInternal
	if ended {
		code = result.Code
		message = fmt.Sprintf("%s %s did not answer within %s", failure.Method, failure.Host, work.Timeout(what))
		if code == runner.CodeAborted {
			message = result.Message
		}
	} else if failure.Kind == outbound.KindTimeout {
		code = runner.CodeTimeout
	}
	if failure.MaybeSent && failure.Status == 0 && outbound.EffectOf(failure.Method) == outbound.Mutation && !r.Idempotent {
		return runner.Result{Code: code, Message: message, Unknown: true}, nil
	}
	result = again(code, message)
	result.Retry = code != runner.CodeAborted && failure.Kind != outbound.KindBlocked && failure.Kind != outbound.KindInvalid && failure.Kind != outbound.KindRedirect
	return result, nil
}
