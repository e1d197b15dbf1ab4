package langgraph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
)

const (
	// callTimeout bounds a call that is not a stream.
	callTimeout = 30 * time.Second
	// largestAnswer is in bytes: the state of a thread has all its messages.
	largestAnswer = 64 << 20
)

// asker calls the server for one caller.
type asker struct {
	*Provider
	key runner.Key
}

func (p *Provider) askFor(r runner.Run) asker { return asker{Provider: p, key: r.Caller.Key} }

// fault is a call that did not work.
type fault struct {
	status    int  // 0: there is no answer
	maybeSent bool // false: the server certainly did not do it
	result    runner.Result
}

// gone reports whether the server does not know what was asked about.
func (f *fault) gone() bool { return f.status == http.StatusNotFound }

// busy reports whether the server has refused a run, perhaps because another
// one goes on in the thread.
func (f *fault) busy() bool {
	return f.status == http.StatusUnprocessableEntity || f.status == http.StatusConflict
}

// passes reports whether asking again later may help.
func (f *fault) passes() bool { return f.result.Retry }

// call makes a call and reads the answer, whatever its type is said to be,
// into a value. A fault is never the end of ctx; who calls looks at that.
func (p asker) call(ctx context.Context, method, path string, body, into any) *fault {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := p.request(limited, method, path, body)
	if err != nil {
		return &fault{result: runner.Final(runner.CodeInternal, err.Error())}
	}
	resp, err := p.client.Do(limited, req) //nolint:bodyclose // ReadBody does
	if err != nil {
		return noAnswer(err) //nolint:contextcheck // callers look at its end
	}
	answer, err := outbound.ReadBody(resp, largestAnswer)
	if result, refused := runner.Refusal(resp, answer); refused {
		return &fault{status: resp.StatusCode, maybeSent: resp.StatusCode >= 500, result: result}
	}
	if err != nil {
		return noAnswer(err) //nolint:contextcheck // callers look at its end
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		message := fmt.Sprintf("%s %s: the answer is not what a LangGraph server says", method, p.base.Host)
		return &fault{status: resp.StatusCode, maybeSent: true, result: runner.Failure(runner.CodeInternal, message)}
	}
	return nil
}

func noAnswer(err error) *fault {
	f := &fault{maybeSent: true}
	if failure, ok := errors.AsType[*outbound.Error](err); ok {
		f.status, f.maybeSent = failure.Status, failure.MaybeSent
	}
	f.result, err = runner.NoAnswer(context.Background(), err) // without the end of the context, which callers look at
	if err != nil {
		f.result = runner.Failure(runner.CodeInternal, "no answer")
	}
	return f
}

func (p asker) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
	}
	target, err := p.base.Parse(p.base.EscapedPath() + "/")
	if err != nil {
		return nil, fmt.Errorf("make the address: %w", err)
	}
	if target, err = target.Parse("." + path); err != nil {
		return nil, fmt.Errorf("make the address: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header = p.headers.Clone()
	p.caller.Put(req.Header, p.key)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
