package tool

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Load makes the connections that the *.yaml and *.yml files of a folder
// define; folders below it and hidden files are not read. No folder at all is
// an empty set. Secrets come from the environment and from files. Connections
// that work in the background are started; close the set to end them.
//
// It fails with pawl.ErrInvalid, whose fields tell every fault of every file
// with its place.
func Load(dir string, env Env) (*Set, error) {
	l := loading{members: map[string]member{}, places: map[string]string{}}
	if dir == "" {
		return &Set{members: l.members}, nil
	}
	l.faults = connector.Folder(dir, env, l.definition)
	if len(l.faults) > 0 {
		l.close()
		return nil, invalid(l.faults)
	}
	set := &Set{members: l.members, secrets: connector.NewRedactor(l.secrets)}
	if !env.CheckOnly {
		set.start(env.Log)
	}
	return set, nil
}

// close ends what connections opened when they were made.
func (l *loading) close() {
	_ = (&Set{members: l.members}).Close() // the definitions are not valid, which is the fault to tell
}

// loading is what was found so far.
type loading struct {
	members map[string]member
	places  map[string]string // of the definitions, by name
	faults  []pawl.Field
	secrets []connector.Secret
}

// definition adds the connection that the settings define, or notes their
// faults in them.
func (l *loading) definition(file string, s *connector.Settings) {
	defer func() { l.secrets = append(l.secrets, s.Secrets()...) }()
	kind, ok := s.Plain("kind")
	if !ok || othersKind(s, kind) {
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
	connection, built := construct(s)
	policy := readPolicy(s, connection)
	s.Unread()
	if named && built {
		l.members[name] = member{file: file, Named: Named{Name: name, Type: kindOf.Value, Connection: connection, Policy: policy}}
	}
}

// othersKind reports whether the definition is not one of a connection, and
// notes a fault unless it belongs to somebody else.
func othersKind(s *connector.Settings, kind connector.Field) bool {
	switch kind.Value {
	case "connection":
		return false
	case "executor", "provider", "source", "schedule": // read by others
		return true
	}
	known := []string{"connection", "executor", "provider", "source", "schedule"}
	s.Refuse(kind, "kind %s does not belong here. %s", connector.Quote(kind.Value), connector.Suggest(kind.Value, known, "The kinds of this folder are "+strings.Join(known, ", ")+"."))
	return true
}

func (l *loading) name(s *connector.Settings) (name string, ok bool) {
	field, ok := s.Plain("name")
	if !ok {
		return "", false
	}
	if fault := nameFault(field.Value); fault != "" {
		s.Refuse(field, "%s", fault)
		return "", false
	}
	if first, taken := l.places[field.Value]; taken {
		s.Refuse(field, "the connection %s is already defined at %s", field.Value, first)
		return "", false
	}
	l.places[field.Value] = s.Place(field)
	return field.Value, true
}

// readPolicy reads the policy of each method. Without a connection, for it
// could not be made, nobody knows its methods; nor if it is one that learns
// them later, and what is outside must not keep Pawl from starting.
func readPolicy(s *connector.Settings, connection Connection) map[string]Policy {
	policy := map[string]Policy{}
	_, learns := connection.(connector.Starter)
	for _, field := range s.Mapping("policy") {
		if fault := policyFault(Policy(field.Value)); fault != "" {
			s.Refuse(field, "%s", fault)
		}
		if connection != nil && !learns {
			if fault := methodFault(field.Name, connection.Methods()); fault != "" {
				s.RefuseName(field, "%s", fault)
			}
		}
		policy[field.Name] = Policy(field.Value)
	}
	return policy
}
