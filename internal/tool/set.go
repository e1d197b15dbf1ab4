package tool

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Set are the connections of this process. It does not change and is safe for
// concurrent use.
type Set struct {
	members map[string]member
	secrets redact.Redactor
}

type member struct {
	Named
	file string // of the definition; empty if it has none
}

// Named is a connection with the name that scripts call it by.
type Named struct {
	Name       string
	Type       string
	Connection Connection
	Policy     map[string]Policy // by method; a method without one has its default
}

// Target is what a call of a script goes to.
type Target struct {
	Connection Connection
	Name       string
	Method     Method
	Policy     Policy
}

// Info describes a connection to people.
type Info struct {
	Name    string
	Type    string
	File    string // of the definition; empty if it has none
	Methods []MethodInfo
}

// MethodInfo is a method with the policy that is in force for it.
type MethodInfo struct {
	Method
	Policy Policy
}

// NewSet makes a set of connections that were not loaded. It fails with
// pawl.ErrInvalid, naming every fault.
func NewSet(connections ...Named) (*Set, error) {
	set := &Set{members: map[string]member{}}
	var faults []pawl.Field
	refuse := func(name, fault string) {
		faults = append(faults, pawl.Field{Message: "connection " + pawl.Quote(name) + ": " + fault})
	}
	for _, c := range connections {
		if fault := nameFault(c.Name); fault != "" {
			refuse(c.Name, fault)
		}
		if _, taken := set.members[c.Name]; taken {
			refuse(c.Name, "the name is taken")
		}
		if c.Connection == nil {
			refuse(c.Name, "it is not connected to anything")
			continue
		}
		for _, method := range slices.Sorted(maps.Keys(c.Policy)) {
			if fault := methodFault(method, c.Connection.Methods()); fault != "" {
				refuse(c.Name, fault)
			}
			if fault := policyFault(c.Policy[method]); fault != "" {
				refuse(c.Name, fault)
			}
		}
		set.members[c.Name] = member{Named: c}
	}
	if len(faults) > 0 {
		return nil, invalid(faults)
	}
	return set, nil
}

// invalid is the error that tells all faults together.
func invalid(faults []pawl.Field) error {
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "load connections", Msg: "the definitions of connections are not valid", Fields: faults,
		Hint: "A definition looks like: {kind: connection, name: outbox, type: file, root: ./outbox}.",
	}
}

var connectionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// nameFault is what is wrong with the name of a connection, or empty. Names
// are properties of a JavaScript object, so those that the language itself
// asks every object for would be called by accident.
func nameFault(name string) string {
	if !connectionName.MatchString(name) {
		return fmt.Sprintf("the name %s must begin with a letter and have letters, digits, _ and - only, at most 64", pawl.Quote(name))
	}
	if slices.Contains([]string{"then", "toJSON", "toString", "valueOf", "constructor"}, name) {
		return fmt.Sprintf("the name %q has a meaning of its own in JavaScript", name)
	}
	return ""
}

// Lookup finds what a script calls. Its errors are *Error of class precondition,
// with the code unknown_connection, because a server with that connection would
// know it; of class logic, with the code unknown_method; or of class transient,
// with the code not_ready, if the methods of the connection are not known yet.
func (s *Set) Lookup(connection, method string) (Target, error) {
	found, ok := s.members[connection]
	if !ok {
		return Target{}, &Error{
			Class: pawl.ClassPrecondition, Code: "unknown_connection", NotApplied: true, NotSent: true,
			Msg: "there is no connection " + pawl.Quote(connection), Hint: s.connectionHint(connection),
		}
	}
	methods := found.Connection.Methods()
	at := slices.IndexFunc(methods, func(m Method) bool { return m.Name == method })
	if _, learns := found.Connection.(connector.Starter); learns && len(methods) == 0 {
		return Target{}, &Error{
			Class: pawl.ClassTransient, Code: "not_ready", NotApplied: true,
			Msg: fmt.Sprintf("the methods of the connection %s are not known yet, because its server was never reached", connection),
		}
	}
	if at < 0 {
		return Target{}, &Error{
			Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
			Msg: fmt.Sprintf("the connection %s has no method %s", connection, pawl.Quote(method)), Hint: methodHint(method, methods),
		}
	}
	return Target{Connection: found.Connection, Name: connection, Method: methods[at], Policy: found.policy(methods[at])}, nil
}

func (s *Set) connectionHint(name string) string {
	names := s.Names()
	if len(names) == 0 {
		return "No connection is configured. Define one: {kind: connection, name: outbox, type: file, root: ./outbox}."
	}
	return pawl.Suggest(name, names, "The connections are "+strings.Join(names, ", ")+".")
}

func (m member) policy(method Method) Policy {
	if p, set := m.Policy[method.Name]; set {
		return p
	}
	return defaultPolicy(method)
}

// Close ends what the connections have open or going on. They are not called
// any more from then on.
func (s *Set) Close() error {
	var mu sync.Mutex
	var faults []error
	var closing sync.WaitGroup
	for _, m := range s.members {
		if open, ok := m.Connection.(io.Closer); ok {
			closing.Go(func() {
				if err := open.Close(); err != nil {
					mu.Lock()
					defer mu.Unlock()
					faults = append(faults, fmt.Errorf("close the connection %s: %w", m.Name, err))
				}
			})
		}
	}
	closing.Wait()
	return errors.Join(faults...)
}

// Names are the names of the connections, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.members)) }

// Describe tells what there is, sorted by name, methods too.
func (s *Set) Describe() []Info {
	var infos []Info
	for _, name := range s.Names() {
		m := s.members[name]
		info := Info{Name: name, Type: m.Type, File: m.file}
		for _, method := range m.Connection.Methods() {
			info.Methods = append(info.Methods, MethodInfo{Method: method, Policy: m.policy(method)})
		}
		slices.SortFunc(info.Methods, func(a, b MethodInfo) int { return strings.Compare(a.Name, b.Name) })
		infos = append(infos, info)
	}
	return infos
}

// Find returns a connection by its name, for the host's own use.
func (s *Set) Find(name string) (Connection, bool) {
	m, ok := s.members[name]
	return m.Connection, ok
}
