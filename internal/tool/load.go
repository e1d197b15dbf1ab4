package tool

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/redact"
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
	l := loading{env: env, members: map[string]member{}, places: map[string]pawl.Place{}}
	if dir == "" {
		return &Set{members: l.members}, nil
	}
	documents, faults := definition.ReadFolder(dir, "connections", env.Getenv)
	l.faults = faults
	for _, doc := range documents {
		l.definition(doc)
	}
	if len(l.faults) > 0 {
		l.close()
		return nil, invalid(definition.InOrder(l.faults))
	}
	set := &Set{members: l.members, secrets: redact.New(l.secrets)}
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
	env     Env
	members map[string]member
	places  map[string]pawl.Place // of the definitions, by name
	faults  []pawl.Field
	secrets []redact.Secret
}

// head is what every definition of a connection has.
type head struct {
	Name   string            `json:"name" definition:"required"`
	Type   string            `json:"type" definition:"required"`
	Policy map[string]Policy `json:"policy"`
}

// definition adds the connection that a document defines, or notes its faults.
func (l *loading) definition(doc definition.Document) {
	if doc.Kind != kindConnection {
		if !slices.Contains(kinds(), doc.Kind) { // the others are read by others
			l.faults = append(l.faults, doc.Fault("/kind", "kind %s does not belong here. %s", pawl.Quote(doc.Kind), pawl.Suggest(doc.Kind, kinds(), "The kinds of this folder are "+strings.Join(kinds(), ", ")+".")))
		}
		return
	}
	s := connector.NewSettings(doc, l.env)
	var written head
	s.Read(&written)
	l.name(s, written.Name)
	if construct, known := builtin()[written.Type]; known {
		connection, built := construct(s)
		checkPolicy(s, written.Policy, connection)
		s.Unknown()
		key := written.Name
		if !s.OK() {
			key = s.Place("").String() // nobody will find it, but it is closed
		}
		if built {
			l.members[key] = member{file: doc.File, Named: Named{Name: written.Name, Type: written.Type, Connection: connection, Policy: written.Policy}}
		}
	} else if written.Type != "" {
		types := slices.Sorted(maps.Keys(builtin()))
		s.Add("/type", "unknown type %s. %s", pawl.Quote(written.Type), pawl.Suggest(written.Type, types, "The types are "+strings.Join(types, ", ")+"."))
	}
	l.faults, l.secrets = append(l.faults, s.Fields()...), append(l.secrets, s.Secrets()...)
}

const kindConnection = "connection"

// kinds are those that a folder of connections may hold.
func kinds() []string {
	return []string{kindConnection, "executor", "prices", "provider", "source", "schedule"}
}

// name checks what the connection is called.
func (l *loading) name(s *connector.Settings, name string) {
	if name == "" {
		return
	}
	if fault := nameFault(name); fault != "" {
		s.Add("/name", "%s", fault)
	}
	if first, taken := l.places[name]; taken {
		s.Add("/name", "the connection %s is already defined at %s", name, first)
		return
	}
	l.places[name] = s.Place("/name")
}

// checkPolicy checks the policy of each method. Without a connection, for it
// could not be made, nobody knows its methods; nor if it is one that learns
// them later, and what is outside must not keep Pawl from starting.
func checkPolicy(s *connector.Settings, policy map[string]Policy, connection Connection) {
	_, learns := connection.(connector.Starter)
	for method, p := range policy {
		pointer := "/policy" + definition.Pointer(method)
		if connection != nil && !learns {
			if fault := methodFault(method, connection.Methods()); fault != "" {
				s.AddName(pointer, "%s", fault)
			}
		}
		if fault := policyFault(p); fault != "" {
			s.Add(pointer, "%s", fault)
		}
	}
}
