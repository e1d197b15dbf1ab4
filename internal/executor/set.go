package executor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/redact"
)

// Set are the executors of this process. It does not change and is safe for
// concurrent use.
type Set struct {
	members map[string]member // by provider
	secrets redact.Redactor
}

type member struct {
	runner.Provider
	kind string
	file string // of the definition; empty if it has none
}

// Info describes an executor to people.
type Info struct {
	Provider string
	Type     string
	File     string // of the definition; empty if it has none
	// Graphs are sorted by name; nil means that only the other side knows them.
	Graphs []GraphInfo
}

// GraphInfo describes a graph to people.
type GraphInfo struct {
	Name    string
	Timeout time.Duration
}

// Lookup finds the executor of a graph and the graph's name. It fails with
// pawl.ErrInvalid for what is no graph id, and with pawl.ErrNotFound for a
// provider or a graph that is not configured. A graph that only the other side
// knows is found.
func (s *Set) Lookup(graphID string) (Executor, string, error) {
	provider, name, err := contract.ParseGraphID(graphID)
	if err != nil {
		return nil, "", err
	}
	m, known := s.members[provider]
	if !known {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.members)), func(name string) bool { return name == work.Provider })
		hint := "No executor is configured. Define one: {kind: executor, name: langgraph, type: langgraph, url: ...}."
		if len(names) > 0 {
			hint = pawl.Suggest(provider, names, "The executors are "+strings.Join(names, ", ")+".")
		}
		return nil, "", notFound(fmt.Sprintf("there is no executor %q for the graph %s", provider, graphID), hint)
	}
	if graphs := m.Graphs(); graphs != nil {
		if _, known := graphs[name]; !known {
			names := slices.Sorted(maps.Keys(graphs))
			hint := pawl.Suggest(name, names, "Its graphs are "+strings.Join(names, ", ")+".")
			return nil, "", notFound(fmt.Sprintf("the executor %s has no graph %q", provider, name), hint)
		}
	}
	return guarded{Executor: m.Provider, name: name, secrets: s.secrets}, name, nil
}

func notFound(message, hint string) error {
	return &pawl.Error{Code: pawl.CodeNotFound, Op: "find a graph", Msg: message, Hint: hint}
}

// Describe tells what there is, sorted by provider.
func (s *Set) Describe() []Info {
	var infos []Info
	for _, provider := range slices.Sorted(maps.Keys(s.members)) {
		if provider == work.Provider {
			continue // what schedules run without a graph
		}
		m := s.members[provider]
		info := Info{Provider: provider, Type: m.kind, File: m.file}
		graphs := m.Graphs()
		for _, name := range slices.Sorted(maps.Keys(graphs)) {
			info.Graphs = append(info.Graphs, GraphInfo{Name: name, Timeout: graphs[name].Timeout})
		}
		infos = append(infos, info)
	}
	return infos
}

// Redact returns the text with the names of secrets in place of their values:
// [secret LANGGRAPH_KEY]. Executors do not depend on it.
func (s *Set) Redact(text string) string { return s.secrets.Text(text) }

// Close ends the use of the set. Executors hold nothing between runs.
func (s *Set) Close() {}
