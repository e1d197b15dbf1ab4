package connector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Settings are the fields of one definition. Reading a field makes it a known
// one; faults are collected, so that all of them can be told together. What
// nobody read in the end is an unknown field; see Unread.
type Settings struct {
	origin Origin
	start  *token.Token
	fields []*ast.MappingValueNode
	known  []string
	faults []fault

	secrets []Secret // that were put into texts so far
}

// Origin says where a definition comes from.
type Origin struct {
	File string // as it is shown in messages
	Line int    // lines of the file before the definition
	Env
}

// Env is what the process gives to its connections.
type Env struct {
	// Getenv is the environment that secrets come from.
	Getenv func(string) string
	// HTTP is the one client for calls to the outside; it also dials for
	// whoever speaks something else.
	HTTP *outbound.Client
	// CheckOnly is a definition that is only looked at: nothing is made,
	// opened or called.
	CheckOnly bool
	// Log is for what happens between calls. Nil means that nobody looks.
	Log *slog.Logger
	// Publish adds an event to a topic of a workflow and returns what scripts
	// get for it. Doing it again with the same message id changes nothing.
	// Nil where there is no store.
	Publish func(ctx context.Context, workflow, topic, messageID string, payload json.RawMessage, key string) (json.RawMessage, error)
	// Rows reads rows of a source. Nil where there is no store.
	Rows ReadRows
	// Graph runs a graph, once for each key. Nil where there is no execution
	// service.
	Graph RunGraph
	// Quota is the book of calls that the connections share with everybody
	// who calls the same domains. Nil means that there are no limits.
	Quota Quota
}

// ReadRows reads up to limit rows of a source, the newest first, and the cursor
// with which to go on, empty at the end.
type ReadRows func(ctx context.Context, source, cursor string, limit int) (rows []map[string]any, next string, err error)

// RunGraph runs a graph and waits for its end. With OnlyLook nothing is begun:
// a key that is not known is pawl.ErrNotFound.
type RunGraph func(ctx context.Context, c GraphCall) (json.RawMessage, error)

// GraphCall asks for a run of a graph.
type GraphCall struct {
	GraphID, GrantID, Key string
	Input                 json.RawMessage
	OnlyLook              bool
}

// Quota books calls to domains of the outside.
type Quota interface {
	// Acquire books one call before it is made. An error that has a method
	// DeniedUntil() time.Time says when to ask again.
	Acquire(ctx context.Context, domain string) error

	// Learn notes what an answer tells about the limits of its domain.
	Learn(ctx context.Context, domain string, status int, h http.Header) error
}

// Field is a text with its name, and places for faults in either.
type Field struct {
	Name    string
	Written string // the text as it is in the file; messages show this one
	Value   string // the text with its secrets

	name, value *token.Token
}

type fault struct {
	line, column int
	pointer      string
	message      string
}

// NewSettings makes settings out of a YAML mapping.
func NewSettings(origin Origin, mapping *ast.MappingNode) *Settings {
	s := &Settings{origin: origin, fields: mapping.Values, start: mapping.GetToken()}
	if len(mapping.Values) > 0 {
		s.start = mapping.Values[0].Key.GetToken()
	}
	return s
}

// Env is what the process gives to the connection.
func (s *Settings) Env() Env { return s.origin.Env }

// Folder is the one that the file of the definition is in; paths in the
// definition are relative to it.
func (s *Settings) Folder() string { return filepath.Dir(s.origin.File) }

// Plain reads a text in which nothing is replaced. It is not ok, and the fault
// is noted, if the field is missing or not a text.
func (s *Settings) Plain(name string) (field Field, ok bool) {
	node := s.find(name)
	if node == nil {
		s.addFault(s.start, "%s is missing", name)
		return Field{}, false
	}
	return s.text(name, node)
}

// OneOf reads a text that may be called by any of the names, the first being
// the best one, and puts the secrets into it. It is not ok, and the fault is
// noted, unless exactly one of them is there and is a text.
func (s *Settings) OneOf(names ...string) (field Field, ok bool) {
	var given []string
	for _, name := range names {
		if s.find(name) != nil {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 1:
		return s.resolved(given[0])
	case 0:
		s.addFault(s.start, "%s is missing", names[0])
	default:
		s.addFault(s.find(given[1]).Key.GetToken(), "%s mean the same; keep one of them", strings.Join(given, " and "))
	}
	return Field{}, false
}

// Mapping reads a field that maps names to texts; none if it is missing.
func (s *Settings) Mapping(name string) []Field {
	node := s.find(name)
	if node == nil {
		return nil
	}
	mapping, ok := unwrap(node.Value).(*ast.MappingNode)
	if !ok {
		s.addFault(node.Value.GetToken(), "%s must map names to texts", name)
		return nil
	}
	var fields []Field
	for _, entry := range mapping.Values {
		if field, ok := s.text(entry.Key.GetToken().Value, entry); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// Refuse notes a fault in the value of a field.
func (s *Settings) Refuse(field Field, format string, values ...any) {
	s.addFault(field.value, format, values...)
	s.faults[len(s.faults)-1].pointer = "/" + field.Name
}

// RefuseName notes a fault in the name of a field.
func (s *Settings) RefuseName(field Field, format string, values ...any) {
	s.addFault(field.name, format, values...)
}

// Unread notes every field that was not read as a fault.
func (s *Settings) Unread() {
	slices.Sort(s.known)
	for _, field := range s.fields {
		key := field.Key.GetToken()
		if !slices.Contains(s.known, key.Value) {
			hint := Suggest(key.Value, s.known, "The fields are "+strings.Join(s.known, ", ")+".")
			s.addFault(key, "unknown field %s. %s", Quote(key.Value), hint)
		}
	}
}

// Place is where a field's value is: file:line:column.
func (s *Settings) Place(field Field) string {
	line, column := s.position(field.value)
	return fmt.Sprintf("%s:%d:%d", s.origin.File, line, column)
}

// Faults are the faults noted so far, in the order of the file.
func (s *Settings) Faults() []pawl.Field {
	slices.SortStableFunc(s.faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var fields []pawl.Field
	for _, f := range s.faults {
		fields = append(fields, pawl.Field{Place: pawl.Place{File: s.origin.File, Line: f.line, Column: f.column}, Pointer: f.pointer, Message: f.message})
	}
	return fields
}

func (s *Settings) find(name string) *ast.MappingValueNode {
	if !slices.Contains(s.known, name) {
		s.known = append(s.known, name)
	}
	for _, field := range s.fields {
		if field.Key.GetToken().Value == name {
			return field
		}
	}
	return nil
}

func (s *Settings) resolved(name string) (Field, bool) {
	return s.resolvedText(name, s.find(name))
}

// resolvedText is the text of a node with its secrets, which are noted.
func (s *Settings) resolvedText(name string, node *ast.MappingValueNode) (Field, bool) {
	field, ok := s.text(name, node)
	if !ok {
		return field, false
	}
	value, err := resolver{folder: s.Folder(), getenv: s.getenv}.resolve(field.Value)
	if err != nil {
		s.addFault(field.value, "%s: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
		return field, false
	}
	s.noteFile(field.Value, value)
	field.Value = value
	return field, true
}

func (s *Settings) text(name string, node *ast.MappingValueNode) (Field, bool) {
	field := Field{Name: name, name: node.Key.GetToken(), value: node.Value.GetToken()}
	switch value := unwrap(node.Value).(type) {
	case *ast.StringNode:
		field.Value = value.Value
	case *ast.LiteralNode:
		field.Value = strings.TrimRight(value.Value.Value, "\r\n") // the end of the block, not of the text
	default:
		s.addFault(field.value, "%s must be a text", name)
		return field, false
	}
	field.Written = field.Value
	if strings.TrimSpace(field.Value) == "" {
		s.addFault(field.value, "%s is empty", name)
		return field, false
	}
	return field, true
}

// unwrap takes an anchor off a node: anchors are harmless, and aliases, which
// are not, are none of the types that are read.
func unwrap(node ast.Node) ast.Node {
	if anchor, ok := node.(*ast.AnchorNode); ok {
		return anchor.Value
	}
	return node
}

func (s *Settings) addFault(at *token.Token, format string, values ...any) {
	line, column := s.position(at)
	s.faults = append(s.faults, fault{line: line, column: column, message: fmt.Sprintf(format, values...)})
}

func (s *Settings) position(at *token.Token) (line, column int) {
	if at == nil || at.Position == nil {
		return s.origin.Line + 1, 1
	}
	return s.origin.Line + at.Position.Line, at.Position.Column
}
