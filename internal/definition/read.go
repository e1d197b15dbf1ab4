package definition

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawlrun/pawl"
)

// Document is one definition as it is written. The zero one must not be used.
type Document struct {
	Kind string // what is defined; never empty after Read
	Name string // what it is called; empty if it has no name, or one that is no text
	Type string // of a kind that has types, such as http; else empty
	File string // as it was given to Read; empty after ReadJSON
	Line int    // where the definition begins, from 1; 0 after ReadJSON

	// Getenv is the environment that its secrets come from; nil is an empty one.
	Getenv func(string) string

	root *node
}

// Read reads a file of YAML, which may hold several definitions of any kinds.
// File is only for messages. Empty documents are left out. If there are faults,
// the error is a *pawl.Error of pawl.CodeInvalid (pawl.CodeTooLarge for files
// over LargestFile) that has all of them as Fields; the documents without
// faults are returned as well. What the definitions mean is not checked here:
// see Document.Decode.
func Read(file string, text []byte) ([]Document, error) {
	return readAll(file, text, true)
}

// ReadSettings reads a file of YAML that has one document without a kind. An
// empty file has no fields.
func ReadSettings(file string, text []byte) (Document, error) {
	documents, err := readAll(file, text, false)
	switch {
	case err != nil:
		return Document{}, err
	case len(documents) == 0:
		return Document{File: file, root: &node{shape: Mapping}}, nil
	case len(documents) > 1:
		return Document{}, Invalid("read settings", []pawl.Field{documents[1].Fault("", "a config file is one document")})
	}
	return documents[0], nil
}

// readAll reads the documents of a file, of which each must have a kind or none
// need have one.
func readAll(file string, text []byte, kinds bool) ([]Document, error) {
	if len(text) > LargestFile {
		return nil, tooLarge(file, len(text))
	}
	if !utf8.Valid(text) {
		return nil, Invalid("read definitions", []pawl.Field{wholeFile(file, "the file is not UTF-8 text")})
	}
	var documents []Document
	var faults []pawl.Field
	for _, p := range split(strings.ReplaceAll(string(text), "\r\n", "\n")) {
		found, wrong := p.read(file, kinds)
		documents, faults = append(documents, found...), append(faults, wrong...)
	}
	return documents, Invalid("read definitions", faults)
}

func tooLarge(file string, size int) error {
	fault := wholeFile(file, "%d bytes are more than the %d allowed", size, LargestFile)
	return &pawl.Error{Code: pawl.CodeTooLarge, Op: "read definitions", Msg: fault.String(), Fields: []pawl.Field{fault}}
}

// part is the text of one document in a file.
type part struct {
	before int // lines of the file before it
	text   string
}

// split cuts a file before every line that starts a document. The parser could
// do this as well, but loses the document after an empty one. Comments and
// directives above the first document belong to it.
func split(text string) []part {
	text = strings.TrimPrefix(text, "\ufeff")
	var parts []part
	start, before, at, line, preface := 0, 0, 0, 0, true
	for row := range strings.Lines(text) {
		bare := strings.TrimRight(row, "\n")
		starts := bare == "---" || strings.HasPrefix(bare, "--- ") || strings.HasPrefix(bare, "---\t")
		if starts && !preface {
			parts = append(parts, part{before: before, text: text[start:at]})
			start, before = at, line
		}
		preface = preface && (bare == "" || bare[0] == '#' || bare[0] == '%')
		at += len(row)
		line++
	}
	return append(parts, part{before: before, text: text[start:]})
}

// read reads the documents of a part; there is one, or none, unless the
// separator is written in an unusual way.
func (p part) read(file string, kinds bool) (documents []Document, faults []pawl.Field) {
	parsed, refused, err := p.parse()
	if refused != nil {
		return nil, []pawl.Field{{Place: refused.place.in(file), Message: refused.message}}
	}
	if err != nil {
		return nil, []pawl.Field{p.syntaxFault(file, err)}
	}
	for _, doc := range parsed.Docs {
		found, wrong := p.document(file, doc.Body, kinds)
		if len(wrong) > 0 {
			faults = append(faults, wrong...)
		} else if found.root != nil {
			documents = append(documents, found)
		}
	}
	return documents, faults
}

// parse parses what the guard lets through. It turns a panic of the parser
// into an error: what it cannot handle must not end the process.
func (p part) parse() (file *ast.File, refused *fault, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("parse: %v", r)
		}
	}()
	tokens := joinKeys(lexer.Tokenize(p.text))
	if refused := p.guard(tokens); refused != nil {
		return nil, refused, nil
	}
	file, err = parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // told by the converter, with both places
	return file, nil, err
}

// document makes a document of a body; without root if it is empty.
func (p part) document(file string, body ast.Node, kinds bool) (Document, []pawl.Field) {
	switch body.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode, *ast.DirectiveNode:
		return Document{}, nil
	}
	c := converter{before: p.before, faults: &Faults{file: file}}
	root := c.value(body, "")
	if root.shape != Mapping && !c.faults.Any() {
		message := "a definition is a list of fields and values, such as kind: source"
		if !kinds {
			message = "a config file is a list of keys and values, such as workers: 8"
		}
		c.faults.addAt(root.place, "", "%s", message)
	}
	c.faults.root = root
	doc := Document{File: file, Line: root.place.line, root: root}
	doc.label(c.faults)
	if kinds && doc.Kind == "" && root.shape == Mapping {
		c.faults.Add("/kind", "kind is missing: it says what is defined, such as kind: source")
	}
	return doc, c.faults.Fields()
}

// label reads the kind and the name. A name that is no text is a fault for who
// decodes the document: some kinds have none.
func (d *Document) label(faults *Faults) {
	if kind := d.root.field("kind"); kind != nil {
		d.Kind = kind.value.text
		if kind.value.shape != Text {
			faults.Add("/kind", "kind must be a text, such as source")
		}
	}
	d.Name, d.Type = d.Text("/name"), d.Text("/type")
}

func (p part) syntaxFault(file string, err error) pawl.Field {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil || e.GetToken().Position == nil {
		return pawl.Field{Place: place{p.before + 1, 1}.in(file), Message: "the document is not valid YAML"}
	}
	at := e.GetToken().Position
	return pawl.Field{Place: place{p.before + at.Line, at.Column}.in(file), Message: "not valid YAML: " + e.GetMessage()}
}
