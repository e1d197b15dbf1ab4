package langgraph

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Provider runs the graphs of one server.
type Provider struct {
	client  *outbound.Client
	base    *url.URL
	caller  runner.CallerKey
	headers http.Header
	timeout time.Duration
	graphs  map[string]graph // nil: the name of a graph is its assistant
	going   runner.Going
}

type graph struct {
	assistant string
	timeout   time.Duration
}

// New makes the provider that a definition describes:
//
//	url: http://127.0.0.1:2024
//	headers: {x-api-key: "${LANGGRAPH_KEY}"}
//	callerKey: {}                              # send the key of the billing account, too
//	timeout: 1h
//	graphs: {poet: {assistant: poet, timeout: 5m}}
//
// Without graphs, the name of a graph is the id of its assistant.
func New(s *connector.Settings) (runner.Provider, bool) {
	var written struct {
		URL       definition.Secret        `json:"url" definition:"required"`
		Headers   definition.Secrets       `json:"headers"`
		CallerKey *runner.WrittenCallerKey `json:"callerKey"`
		Timeout   time.Duration            `json:"timeout" definition:"default=1h,min=1ms,max=168h"`
		Graphs    map[string]struct {
			Assistant string        `json:"assistant" definition:"nonempty"`
			Timeout   time.Duration `json:"timeout" definition:"min=1ms,max=168h"`
		} `json:"graphs"`
	}
	s.Read(&written)
	p := &Provider{client: s.HTTP, caller: written.CallerKey.CallerKey(s), timeout: written.Timeout}
	p.headers = runner.Headers(s, written.Headers, p.caller)
	p.base = runner.ParseURL(s, written.URL)
	for name, g := range written.Graphs {
		if p.graphs == nil {
			p.graphs = map[string]graph{}
		}
		runner.GraphName(s, name)
		p.graphs[name] = graph{assistant: cmp.Or(g.Assistant, name), timeout: cmp.Or(g.Timeout, p.timeout)}
	}
	return p, s.OK()
}

// Graphs are those of the definition; nil if it lists none.
func (p *Provider) Graphs() map[string]runner.Graph {
	if p.graphs == nil {
		return nil
	}
	graphs := map[string]runner.Graph{}
	for name, g := range p.graphs {
		graphs[name] = runner.Graph{Timeout: g.timeout}
	}
	return graphs
}

func (p *Provider) graph(name string) (g graph, known bool) {
	if p.graphs == nil {
		return graph{assistant: name, timeout: p.timeout}, true
	}
	g, known = p.graphs[name]
	return g, known
}
