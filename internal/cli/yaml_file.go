package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	document "github.com/pawlrun/pawl/internal/definition"
	hookspec "github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/price"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
)

// The kinds of definitions that a server reads from its own folders.
const (
	kindConnection = "connection"
	kindExecutor   = "executor"
	kindProvider   = "provider"
	kindPrices     = price.Kind
)

// yamlKinds are all kinds that a YAML file may define.
func yamlKinds() []string {
	return []string{calendarspec.Kind, sourcespec.Kind, graphspec.Kind, hookspec.Kind, kindProvider, kindPrices, kindConnection, kindExecutor}
}

// yamlFile is a YAML file with what it defines.
type yamlFile struct {
	definition
	text      []byte
	documents []document.Document // without those that have faults
	faults    []fault             // of reading the documents
	kinds     []string            // that the file names, also where it is no YAML
}

// readYAML reads a file without understanding its definitions. The error is
// that the file cannot be read at all.
func readYAML(def definition) (file yamlFile, err error) {
	file.definition = def
	if file.text, err = os.ReadFile(def.path); err != nil {
		return file, err
	}
	file.documents, err = document.Read(def.path, file.text)
	file.faults = faultsIn(err)
	for _, k := range kindsIn(string(file.text)) {
		file.kinds = append(file.kinds, k.Message)
	}
	for _, doc := range file.documents {
		file.kinds = append(file.kinds, doc.Kind)
	}
	return file, nil
}

func (f yamlFile) has(kinds ...string) bool {
	return slices.ContainsFunc(f.kinds, func(k string) bool { return slices.Contains(kinds, k) })
}

// applicable is a definition that can be sent to a server.
type applicable struct {
	file       definition
	doc        document.Document
	kind, name string
	path       string // where it is sent
	body       any
}

// check checks the sources, schedules and hooks of a file, and that its other kinds
// are known; with foresight also whether they will ever run.
func (f yamlFile) check(ahead *foresight) (list []checked, send []applicable) {
	for _, doc := range f.documents {
		c := checked{File: f.shown, Kind: doc.Kind, Name: doc.Name, OK: true, Errors: []fault{}}
		var faults []pawl.Field
		to := applicable{file: f.definition, doc: doc, kind: doc.Kind, name: doc.Name}
		switch doc.Kind {
		case sourcespec.Kind:
			d, wrong := sourcespec.FromDocument(doc)
			faults, to.path, to.body = wrong, client.SourcePath(doc.Name), doc.JSON()
			if why, never := ahead.source(d, wrong); never {
				faults = append(faults, writtenAt(doc, why))
			}
			c.summary = fmt.Sprintf("source %s, %s into the table %s", d.Name, plural(len(d.Response.Fields), "field"), d.Table)
		case graphspec.Kind:
			in, wrong := graphspec.FromDocument(doc)
			faults, to.path, to.body = wrong, client.NamedSchedulePath(doc.Name), in
			if why, never := ahead.schedule(in, wrong); never {
				faults = append(faults, writtenAt(doc, why))
			}
			c.summary = fmt.Sprintf("schedule %s of %s", in.Name, workWords(in.GraphID, in.Run))
		case calendarspec.Kind:
			in, wrong := calendarspec.FromDocument(doc)
			faults, to.path, to.body = wrong, client.CalendarPath(doc.Name), in
			c.summary = fmt.Sprintf("calendar %s of %s", in.Name, plural(len(in.Days), "date"))
		case hookspec.Kind:
			d, wrong := hookspec.FromDocument(doc)
			faults, to.path, to.body = wrong, client.HookPath(doc.Name), doc.JSON()
			c.summary = fmt.Sprintf("hook %s, which %s", d.Name, d.Effect())
		case kindConnection, kindExecutor, kindProvider, kindPrices:
			continue
		default:
			c.Kind, c.Name = "", ""
			faults = []pawl.Field{doc.Fault("/kind", "this version has no kind %s. %s", pawl.Quote(doc.Kind), kindHint(doc.Kind))}
		}
		c.naming = placedFault(doc.Fault("/name", ""))
		for _, field := range faults {
			c.refuse(placedFault(field))
		}
		list = append(list, c)
		if c.OK {
			send = append(send, to)
		}
	}
	if len(f.faults) > 0 {
		c := checked{File: f.shown}
		for _, wrong := range f.faults {
			c.refuse(wrong)
		}
		list = append(list, c)
	}
	return list, send
}

// kindHint says which kinds there are, or which one was meant.
func kindHint(written string) string {
	if guess := pawl.Suggest(written, yamlKinds(), ""); guess != "" {
		return guess
	}
	return "The kinds are " + strings.Join(yamlKinds(), ", ") + "; workflows are in *.workflow.ts and *.workflow.js."
}

// faultsIn are the faults that an error of a reader tells, without the file.
func faultsIn(err error) (list []fault) {
	for _, field := range document.FieldsOf(err) {
		list = append(list, placedFault(field))
	}
	return list
}

// placed tells what a server refused by the places in the file.
func (a applicable) placed(err error) error {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || len(e.Fields) == 0 {
		return err
	}
	told := *e
	told.Fields = nil
	written := map[string]string{"/graphId": "/graph", "/executionGrantId": "/grant"} // as the file calls them
	for _, field := range e.Fields {
		pointer := field.Pointer
		if name := written[pointer]; name != "" && a.kind == graphspec.Kind {
			pointer = name
		}
		if at := a.doc.Place(pointer); at.Line > 0 {
			at.File = a.file.shown
			field = pawl.Field{Place: at, Message: writtenAt(a.doc, pawl.Field{Pointer: pointer, Message: field.Message}).Message}
		}
		told.Fields = append(told.Fields, field)
	}
	return &told
}

// sent is what applying a document did, in the words of either kind.
type sent struct {
	What     string          `json:"what"`
	Previous json.RawMessage `json:"previous"`

	Definition json.RawMessage `json:"definition"` // of a source
	Schedule   json.RawMessage `json:"schedule"`   // of a schedule
	Calendar   json.RawMessage `json:"calendar"`   // of a calendar

	Warnings []client.Warning `json:"warnings"`
}

// versions are how the definition was and is, as YAML.
func (s sent) versions() (before, after string, err error) {
	previous, now := s.Previous, s.Definition
	if len(s.Schedule) > 0 {
		now = s.Schedule
	}
	if len(s.Calendar) > 0 {
		now = s.Calendar
	}
	if before, err = asDefinition(previous); err != nil {
		return "", "", err
	}
	after, err = asDefinition(now)
	return before, after, err
}

// asDefinition is a definition as YAML, without what the server adds to it.
func asDefinition(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	bare, err := without(raw, "id", "ownerUserId", "issue", "nextRunAt", "lastRunAt", "createdAt", "updatedAt", "begun", "revision", "usedBy")
	if err != nil {
		return "", err
	}
	text, err := toYAML(bare)
	return string(text), err
}
