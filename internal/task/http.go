package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/when"
)

const (
	httpTimeout    = 30 * time.Second
	httpMaxTimeout = 5 * time.Minute
	httpAttempts   = 10
	httpMaxDelay   = time.Hour // a server cannot put a job off for longer
)

// httpPayload is what a job of the task http asks for.
type httpPayload struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Timeout string            `json:"timeout"`

	timeout time.Duration
}

// HTTP is the task that sends a request. It is sent at least once: a job that
// was cut off, or whose answer was lost, is sent again with the same
// Idempotency-Key.
func HTTP(client *outbound.Client) queue.Task {
	return queue.Task{
		Run:         func(ctx context.Context, j *queue.Job) error { return runHTTP(ctx, client, j) },
		Check:       func(p json.RawMessage) error { _, err := parseHTTP(p); return err },
		Timeout:     httpMaxTimeout + 10*time.Second,
		MaxAttempts: httpAttempts,
		Record:      true,
	}
}

// parseHTTP reads and checks a payload. Every fault is listed with its place.
func parseHTTP(raw json.RawMessage) (httpPayload, error) {
	p := httpPayload{Method: http.MethodPost, timeout: httpTimeout}
	if err := strict(raw, []string{"url", "method", "headers", "body", "timeout"}, &p); err != nil {
		return p, err
	}
	var faults []pawl.Field
	bad := func(pointer, msg string) { faults = append(faults, pawl.Field{Pointer: pointer, Message: msg}) }
	u, err := url.Parse(p.URL)
	switch {
	case p.URL == "":
		bad("/url", "is required")
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		bad("/url", "must be an http or https URL")
	case u.User != nil:
		bad("/url", "must not contain a user or password; it would be stored")
	}
	p.Method = strings.ToUpper(p.Method)
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, p.Method) {
		bad("/method", "must be GET, HEAD, POST, PUT, PATCH or DELETE")
	}
	for name, value := range p.Headers {
		if msg := headerFault(name, value); msg != "" {
			bad("/headers/"+name, msg)
		}
	}
	if p.Timeout != "" {
		d, err := when.ParseInterval(p.Timeout)
		if err != nil || d > httpMaxTimeout {
			bad("/timeout", "must be an interval of at most 5m, such as 30s")
		}
		p.timeout = d
	}
	return p, invalid(faults)
}

// headerFault refuses what must not be stored or would break the request.
func headerFault(name, value string) string {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "x-api-key":
		return "carries a credential, and payloads are stored; use a connection for calls that need one"
	case "host", "content-length", "transfer-encoding", "connection", "idempotency-key":
		return "is set by Pawl"
	}
	if !outbound.IsHeaderName(name) {
		return "is not a header name"
	}
	if !outbound.IsHeaderValue(value) {
		return "has a character that headers cannot carry"
	}
	return ""
}

func runHTTP(ctx context.Context, client *outbound.Client, j *queue.Job) error {
	p, err := parseHTTP(j.Payload)
	if err != nil {
		return queue.Permanent(err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, p.Method, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return queue.Permanent(err)
	}
	if len(p.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range p.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Idempotency-Key", "job-"+strconv.FormatInt(j.ID, 10))
	if err := j.StillOwned(); err != nil { // of a read nobody asks again
		return err
	}
	resp, err := client.Do(outbound.WithPermit(ctx, j.StillOwned), req)
	if err != nil {
		return judgeError(err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body is of no interest
	return judgeAnswer(resp, time.Now())
}

// judgeError tells what will not get better by itself from what may.
func judgeError(err error) error {
	e, ok := errors.AsType[*outbound.Error](err)
	if ok && (e.Kind == outbound.KindInvalid || e.Kind == outbound.KindBlocked || e.Kind == outbound.KindRedirect) {
		return queue.Permanent(withHint(e))
	}
	return err
}

func withHint(e *outbound.Error) error {
	if e.Hint == "" {
		return e
	}
	return fmt.Errorf("%w (%s)", e, e.Hint)
}

func judgeAnswer(resp *http.Response, now time.Time) error {
	v := outbound.JudgeStatus(outbound.Mutation, resp.StatusCode)
	if v.OK() {
		return nil
	}
	err := fmt.Errorf("%s answered %s", resp.Request.URL.Host, resp.Status)
	switch {
	case resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusTooEarly ||
		resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		if d, ok := outbound.RetryAfter(resp.Header, now, httpMaxDelay); ok {
			return queue.RetryAt(now.Add(d), err)
		}
		return err
	default:
		return queue.Permanent(err)
	}
}

// strict decodes an object and refuses fields that are not in the list.
func strict(raw json.RawMessage, fields []string, into any) error {
	var faults []pawl.Field
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		faults = append(faults, pawl.Field{Message: "must be an object"})
	}
	for name := range object {
		if !slices.Contains(fields, name) {
			faults = append(faults, pawl.Field{Pointer: "/" + name, Message: "is not a field of this payload"})
		}
	}
	err := json.Unmarshal(raw, into)
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		faults = append(faults, pawl.Field{Pointer: "/" + strings.ReplaceAll(t.Field, ".", "/"), Message: "must not be a JSON " + t.Value})
	}
	return invalid(faults)
}

// invalid lists faults in order; nil if there are none.
func invalid(faults []pawl.Field) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortFunc(faults, func(a, b pawl.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "read payload", Msg: "the payload of the task http is not valid", Fields: faults,
		Hint: `Send {"url": "https://...", "method": "POST", "headers": {}, "body": {}, "timeout": "30s"}.`,
	}
}
