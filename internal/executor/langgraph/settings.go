package langgraph

import (
	"net/http"
	"net/url"
	"time"

	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of the time that a graph has.
const (
	defaultTimeout = time.Hour
	longestTimeout = 7 * 24 * time.Hour
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
	before := len(s.Faults())
	p := &Provider{client: s.Env().HTTP, caller: runner.ReadCallerKey(s)}
	p.headers = runner.ReadHeaders(s, p.caller)
	p.base, _ = runner.ReadURL(s, "url")
	p.timeout = s.Duration("timeout", defaultTimeout, time.Millisecond, longestTimeout)
	s.Sections("graphs", func(name connector.Field, section *connector.Settings) {
		if p.graphs == nil {
			p.graphs = map[string]graph{}
		}
		runner.GraphName(section, name)
		g := graph{assistant: name.Name, timeout: section.Duration("timeout", p.timeout, time.Millisecond, longestTimeout)}
		if section.Has("assistant") {
			if assistant, ok := section.Plain("assistant"); ok {
				g.assistant = assistant.Value
			}
		}
		p.graphs[name.Name] = g
	})
	return p, len(s.Faults()) == before
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
