package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// Remote is the execution service of another process, spoken to by HTTP. Its
// answers and errors are those of Service.
//
// A connection that breaks leaves the run alone. Its error says that nothing is
// known, and asking again with the same key tells what became of the run.
type Remote struct {
	base   string
	token  string
	client *http.Client
}

var _ API = (*Remote)(nil)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 32 << 20

// NewRemote makes the client of the service at an address such as
// http://10.0.0.7:7295. A nil client is one with a limit on connecting.
func NewRemote(base, token string, client *http.Client) (*Remote, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "reach execution service", Msg: "its address is not an http or https URL"}
	}
	if token == "" || len(token) > maxToken {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "reach execution service", Msg: fmt.Sprintf("its token must have 1 to %d characters", maxToken)}
	}
	if client == nil {
		// No limit on the whole: a run may take hours, and its caller has a
		// deadline of its own.
		client = &http.Client{Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		}}
	}
	return &Remote{strings.TrimRight(base, "/"), token, client}, nil
}

// Run implements API.
func (r *Remote) Run(ctx context.Context, key, graphID string, req contract.RunRequestV1) (answer contract.RunAnswerV1, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return answer, &pawl.Error{Code: pawl.CodeInvalid, Reason: string(contract.InvalidRequest), Op: "run graph", Msg: "the input is not JSON", Err: err}
	}
	err = r.call(ctx, http.MethodPost, pathGraphs+url.PathEscape(graphID)+"/runs", key, body, &answer)
	return answer, err
}

// Cancel implements API.
func (r *Remote) Cancel(ctx context.Context, key string) error {
	return r.call(ctx, http.MethodPost, pathCancel, key, nil, &struct{}{})
}

// Resume implements API.
func (r *Remote) Resume(ctx context.Context, key, question string, person []byte) (answer contract.RunAnswerV1, err error) {
	err = r.call(ctx, http.MethodPost, pathResume+"?question="+url.QueryEscape(question), key, person, &answer)
	return answer, err
}

// Outcome implements API.
func (r *Remote) Outcome(ctx context.Context, key string) (answer contract.RunAnswerV1, err error) {
	err = r.call(ctx, http.MethodGet, pathOutcome, key, nil, &answer)
	return answer, err
}

func (r *Remote) call(ctx context.Context, method, path, key string, body []byte, into any) error {
	ctx, span := telemetry.Begin(ctx, method+" execution service", oteltrace.WithSpanKind(oteltrace.SpanKindClient), oteltrace.WithAttributes(attribute.String("http.request.method", method)))
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("reach execution service: %w", err)
	}
	telemetry.Pass(ctx, req.Header)
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		span.SetStatus(codes.Error, "")
		return unreachable(ctx, err)
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return unreachable(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(raw, into); err != nil {
			return &pawl.Error{Code: pawl.CodeUnavailable, Op: "run graph", Msg: "the answer of the execution service cannot be read", Err: err}
		}
		return nil
	}
	p := problem{}
	if err := json.Unmarshal(raw, &p); err != nil || p.Code == "" {
		// Not the service's own words: a proxy, or another program.
		return &pawl.Error{Code: pawl.CodeUnavailable, Op: "run graph", Msg: fmt.Sprintf("what answers for the execution service says status %d", resp.StatusCode)}
	}
	p.Status = resp.StatusCode
	return p.err()
}

// unreachable leaves it to the caller to tell its own deadline from a service
// that is not there.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address is not everybody's business
	}
	return &pawl.Error{
		Code: pawl.CodeUnreachable, Op: "run graph", Msg: "the execution service did not answer",
		Hint: "Repeat the request with the same Idempotency-Key: a run that was started continues.", Err: err,
	}
}
