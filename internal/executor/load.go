package executor

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/plain"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Load makes the executors that the *.yaml and *.yml files of a folder define:
// the definitions with kind: executor. Those of other kinds are left to their
// readers; folders below it and hidden files are not read. No folder at all
// has the built-in executors only. Secrets come from the environment and from
// files.
//
// It fails with pawl.ErrInvalid, whose fields tell every fault of every file
// with its place.
func Load(dir string, env Env) (*Set, error) {
	l := loading{members: map[string]member{}, places: map[string]pawl.Place{}}
	l.env = connector.Env{Getenv: env.Getenv, HTTP: env.HTTP, CheckOnly: env.CheckOnly, Log: env.Log}
	if env.Workflow != nil {
		l.members[workflowProvider] = member{Provider: &workflows{run: env.Workflow}, kind: workflowProvider}
	}
	l.members[work.Provider] = member{Provider: plain.New(plain.Env{Getenv: env.Getenv, HTTP: env.HTTP, Jobs: env.Jobs, Log: env.Log}), kind: work.Provider}
	if dir != "" {
		documents, faults := definition.ReadFolder(dir, "connections", env.Getenv)
		l.faults = faults
		for _, doc := range documents {
			l.definition(doc)
		}
	}
	if len(l.faults) > 0 {
		return nil, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "load executors", Msg: "the definitions of executors are not valid", Fields: definition.InOrder(l.faults),
			Hint: "A definition looks like: {kind: executor, name: http, type: http, graphs: {poet: {url: \"https://agents.example.com/poet\"}}}.",
		}
	}
	return &Set{members: l.members, secrets: redact.New(l.secrets)}, nil
}

// loading is what was found so far.
type loading struct {
	env     connector.Env
	members map[string]member
	places  map[string]pawl.Place // of the definitions, by name
	faults  []pawl.Field
	secrets []redact.Secret
}

// head is what every definition of an executor has.
type head struct {
	Name string `json:"name" definition:"required" pattern:"^[A-Za-z][A-Za-z0-9_-]{0,63}$" is:"a name: it must begin with a letter and have letters, digits, _ and - only, at most 64"`
	Type string `json:"type" definition:"required"`
}

// definition adds the executor that a document defines, or notes its faults.
func (l *loading) definition(doc definition.Document) {
	if doc.Kind != "executor" {
		return
	}
	s := connector.NewSettings(doc, l.env)
	var written head
	s.Read(&written)
	l.name(s, written.Name)
	if construct, known := builtin()[written.Type]; known {
		provider, built := construct(s)
		s.Unknown()
		if built && s.OK() {
			l.members[written.Name] = member{Provider: provider, kind: written.Type, file: doc.File}
		}
	} else if written.Type != "" {
		types := slices.Sorted(maps.Keys(builtin()))
		s.Add("/type", "unknown type %s. %s", pawl.Quote(written.Type), pawl.Suggest(written.Type, types, "The types are "+strings.Join(types, ", ")+"."))
	}
	l.faults, l.secrets = append(l.faults, s.Fields()...), append(l.secrets, s.Secrets()...)
}

// name checks what the provider is called in graph ids.
func (l *loading) name(s *connector.Settings, name string) {
	if name == workflowProvider {
		s.Add("/name", "the name %s belongs to the workflows of this server", workflowProvider)
	}
	if name == work.Provider {
		s.Add("/name", "the name %s belongs to this server", work.Provider)
	}
	if first, taken := l.places[name]; taken && name != "" {
		s.Add("/name", "the executor %s is already defined at %s", name, first)
		return
	}
	l.places[name] = s.Place("/name")
}
