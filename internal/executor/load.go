package executor

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
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
	l := loading{members: map[string]member{}, places: map[string]string{}}
	settings := connector.Env{Getenv: env.Getenv, HTTP: env.HTTP, CheckOnly: env.CheckOnly, Log: env.Log}
	if env.Workflow != nil {
		l.members[workflowProvider] = member{Provider: &workflows{run: env.Workflow}, kind: workflowProvider}
	}
	if dir != "" {
		l.faults = connector.Folder(dir, settings, l.definition)
	}
	if len(l.faults) > 0 {
		return nil, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "load executors", Msg: "the definitions of executors are not valid", Fields: l.faults,
			Hint: "A definition looks like: {kind: executor, name: http, type: http, graphs: {poet: {url: \"https://agents.example.com/poet\"}}}.",
		}
	}
	return &Set{members: l.members, secrets: connector.NewRedactor(l.secrets)}, nil
}

// loading is what was found so far.
type loading struct {
	members map[string]member
	places  map[string]string // of the definitions, by name
	faults  []pawl.Field
	secrets []connector.Secret
}

// definition adds the executor that the settings define, or notes their faults
// in them.
func (l *loading) definition(file string, s *connector.Settings) {
	defer func() { l.secrets = append(l.secrets, s.Secrets()...) }()
	if kind, ok := s.Plain("kind"); !ok || kind.Value != "executor" {
		return
	}
	name, named := l.name(s)
	kindOf, typed := s.Plain("type")
	if !typed {
		return
	}
	construct, known := builtin()[kindOf.Value]
	if !known {
		types := slices.Sorted(maps.Keys(builtin()))
		s.Refuse(kindOf, "unknown type %s. %s", connector.Quote(kindOf.Value), connector.Suggest(kindOf.Value, types, "The types are "+strings.Join(types, ", ")+"."))
		return
	}
	provider, built := construct(s)
	s.Unread()
	if named && built {
		l.members[name] = member{Provider: provider, kind: kindOf.Value, file: file}
	}
}

// name is what the provider is called in graph ids.
func (l *loading) name(s *connector.Settings) (name string, ok bool) {
	field, ok := s.Plain("name")
	if !ok {
		return "", false
	}
	first, taken := l.places[field.Value]
	switch {
	case !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`).MatchString(field.Value):
		s.Refuse(field, "the name %s must begin with a letter and have letters, digits, _ and - only, at most 64", connector.Quote(field.Value))
		return "", false
	case field.Value == workflowProvider:
		s.Refuse(field, "the name %s belongs to the workflows of this server", workflowProvider)
		return "", false
	case taken:
		s.Refuse(field, "the executor %s is already defined at %s", field.Value, first)
		return "", false
	}
	l.places[field.Value] = s.Place(field)
	return field.Value, true
}
