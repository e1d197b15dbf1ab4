// Package httpexec runs graphs behind a URL: anything that answers one POST.
//
// The request is runner.Body with the header Idempotency-Key, which is
// {scheduleId}:{scheduledFor} at first, and, if the definition asks for it, that
// of the caller's key. The answer is runner.ReadAnswer's. What an answer means:
//
//	2xx, ok true                     the output
//	2xx, interrupt                   the graph asks a person
//	2xx, ok false                    the code it tells; tried again for rate_limit, timeout, internal
//	401, 403                         internal: the credentials are wrong
//	404, 410                         not_found
//	408, 425, 429                    rate_limit; tried again, not before Retry-After
//	409                              internal; tried again: an earlier call with this key may be at work
//	other 3xx and 4xx                invalid_request
//	5xx, cut off, unreadable, huge   internal; tried again
//	no connection                    internal; tried again
//	no answer in time                timeout; tried again
//
// The contract of this executor asks servers to honour the key: a request with
// a key that was answered before starts nothing and gets that answer, and one
// whose run is under way starts none beside it. So a call that nobody answered is
// made again with the same key, and nobody has to know whether it arrived. What
// the graph answered is over: another attempt, and the answer of a person, are
// requests with keys of their own (runner.Memory).
//
// Cancel gives up the wait for an answer. The other side may notice that the
// connection ended.
package httpexec

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// largestAnswer is in bytes.
const largestAnswer = 16 << 20

// Provider calls graphs by POST.
type Provider struct {
	client  *outbound.Client
	caller  runner.CallerKey
	headers http.Header
	graphs  map[string]graph
	going   runner.Going
}

type graph struct {
	url     *url.URL
	headers http.Header // these alone, if there are any
	timeout time.Duration
}

// New makes the provider that a definition describes:
//
//	headers: {Authorization: "Bearer ${TOKEN}"}    # of graphs that have none
//	callerKey: {}                                  # send the key of the billing account, too
//	graphs:
//	  poet: {url: "https://agents.example.com/poet", timeout: 5m, headers: {...}}
func New(s *connector.Settings) (runner.Provider, bool) {
	var written struct {
		Headers   definition.Secrets       `json:"headers"`
		CallerKey *runner.WrittenCallerKey `json:"callerKey"`
		Graphs    map[string]struct {
			URL     definition.Secret  `json:"url" definition:"required"`
			Headers definition.Secrets `json:"headers"`
			Timeout time.Duration      `json:"timeout" definition:"default=5m,min=1ms,max=24h"`
		} `json:"graphs"`
	}
	s.Read(&written)
	p := &Provider{client: s.HTTP, caller: written.CallerKey.CallerKey(s), graphs: map[string]graph{}}
	p.headers = runner.Headers(s, written.Headers, p.caller)
	for name, g := range written.Graphs {
		runner.GraphName(s, name)
		p.graphs[name] = graph{url: runner.ParseURL(s, g.URL), headers: runner.Headers(s, g.Headers, p.caller), timeout: g.Timeout}
	}
	if len(p.graphs) == 0 {
		s.Add("/graphs", "graphs is missing; it looks like {poet: {url: \"https://agents.example.com/poet\"}}")
	}
	return p, s.OK()
}

// Graphs are those of the definition.
func (p *Provider) Graphs() map[string]runner.Graph {
	graphs := map[string]runner.Graph{}
	for name, g := range p.graphs {
		graphs[name] = runner.Graph{Timeout: g.timeout}
	}
	return graphs
}

// Run posts the run and waits for the answer.
func (p *Provider) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	g, known := p.graphs[r.Name]
	if !known {
		return runner.Final(runner.CodeNotFound, "there is no graph "+pawl.Quote(r.Name)), nil
	}
	memory, err := runner.Remember(r)
	if err != nil {
		return runner.Result{}, err
	}
	return p.going.Call(ctx, r, memory, g.timeout, emit, func(ctx context.Context, r runner.Run, key string) (runner.Result, bool, error) {
		return p.post(ctx, g, r, key, emit)
	})
}

// Cancel ends the wait for the answer of a run.
func (p *Provider) Cancel(_ context.Context, r runner.Run) error {
	p.going.Stop(r.RunID)
	return nil
}

// post makes the request and judges what comes back; answered says that it is
// the graph's own word.
func (p *Provider) post(ctx context.Context, g graph, r runner.Run, key string, emit func(runner.Event) error) (result runner.Result, answered bool, err error) {
	req, err := p.request(ctx, g, r, key)
	if err != nil {
		return runner.Result{}, false, err
	}
	resp, err := p.client.Do(ctx, req) //nolint:bodyclose // ReadBody does
	if err != nil {
		result, err = runner.NoAnswer(ctx, err)
		return result, false, err
	}
	body, err := outbound.ReadBody(resp, largestAnswer)
	if err != nil && resp.StatusCode < 300 {
		result, err = runner.NoAnswer(ctx, err)
		return result, false, err
	}
	if result, refused := runner.Refusal(resp, body); refused {
		return result, false, nil
	}
	result, answered, err = runner.ReadAnswer(body, emit)
	if err != nil {
		return runner.Result{}, false, err
	}
	if !answered {
		result = runner.Failure(runner.CodeInternal, fmt.Sprintf("POST %s: the answer is not an object with ok: true or false", g.url.Host))
	}
	return result, answered, nil
}

func (p *Provider) request(ctx context.Context, g graph, r runner.Run, key string) (*http.Request, error) {
	body, err := runner.Body(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header = p.headers.Clone()
	if len(g.headers) > 0 {
		req.Header = g.headers.Clone()
	}
	p.caller.Put(req.Header, r.Caller.Key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return req, nil
}
