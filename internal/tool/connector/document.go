package connector

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawlrun/pawl"
)

// LargestFile is in bytes. The time that the parser needs for hostile text grows
// with the square of its length.
const LargestFile = 64 << 10

// Documents parses a file into the settings of its definitions. Empty documents
// are left out.
func Documents(file string, text []byte, env Env) (found []*Settings, faults []pawl.Field) {
	if !utf8.Valid(text) {
		return nil, []pawl.Field{{Place: pawl.Place{File: file}, Message: "the file is not UTF-8 text"}}
	}
	for _, part := range split(string(text)) {
		origin := Origin{File: file, Line: part.before, Env: env}
		parsed, err := parser.ParseBytes([]byte(part.text), 0)
		if err != nil {
			faults = append(faults, syntaxFault(origin, err))
			continue
		}
		for _, doc := range parsed.Docs {
			switch body := doc.Body.(type) {
			case nil, *ast.CommentGroupNode, *ast.NullNode, *ast.DirectiveNode:
			case *ast.MappingNode:
				found = append(found, NewSettings(origin, body))
			default:
				at := body.GetToken().Position
				faults = append(faults, pawl.Field{Place: pawl.Place{File: file, Line: origin.Line + at.Line, Column: at.Column}, Message: "a definition is a list of fields and values, such as kind and name"})
			}
		}
	}
	return found, faults
}

// part is one document of a file.
type part struct {
	before int // lines of the file before it
	text   string
}

// split cuts a file before every line that starts a document. The parser
// could do this as well, but loses the document after an empty one. Comments
// and directives above the first document belong to it.
func split(text string) []part {
	parts := []part{{}}
	n, preface := 0, true
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		bare := strings.TrimRight(line, "\r\n")
		starts := bare == "---" || strings.HasPrefix(bare, "--- ") || strings.HasPrefix(bare, "---\t")
		if starts && !preface {
			parts = append(parts, part{before: n})
		}
		preface = preface && (bare == "" || bare[0] == '#' || bare[0] == '%')
		parts[len(parts)-1].text += line
		n++
	}
	return parts
}

func syntaxFault(origin Origin, err error) pawl.Field {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil || e.GetToken().Position == nil {
		return pawl.Field{Place: pawl.Place{File: origin.File, Line: origin.Line + 1, Column: 1}, Message: "the document is not valid YAML"}
	}
	at := e.GetToken().Position
	return pawl.Field{Place: pawl.Place{File: origin.File, Line: origin.Line + at.Line, Column: at.Column}, Message: e.GetMessage()}
}
