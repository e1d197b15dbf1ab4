package executor

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// largestFile is in bytes, as for the connections of the same folder. The time
// that the parser needs for hostile text grows with the square of its length.
const largestFile = 64 << 10

// documents parses a file into the settings of its definitions. Empty
// documents are left out. Each document is parsed alone, because the parser
// loses the one after an empty one.
func documents(origin connector.Origin, text []byte) (found []*connector.Settings, faults []pawl.Field) {
	if !utf8.Valid(text) {
		return nil, []pawl.Field{{Message: origin.File + ": the file is not UTF-8 text"}}
	}
	var part strings.Builder
	line, content := 0, false
	flush := func() {
		more, wrong := document(origin, part.String())
		found, faults = append(found, more...), append(faults, wrong...)
		origin.Line = line
		part.Reset()
	}
	for text := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		bare := strings.TrimRight(text, "\r\n")
		if content && startsDocument(bare) {
			flush()
		}
		// Comments and directives above the first document belong to it.
		content = content || bare != "" && bare[0] != '#' && bare[0] != '%'
		part.WriteString(text)
		line++
	}
	flush()
	return found, faults
}

func startsDocument(line string) bool {
	return line == "---" || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "---\t")
}

// document parses one document.
func document(origin connector.Origin, text string) (found []*connector.Settings, faults []pawl.Field) {
	parsed, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, []pawl.Field{syntaxFault(origin, err)}
	}
	for _, doc := range parsed.Docs {
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode, *ast.DirectiveNode:
		case *ast.MappingNode:
			found = append(found, connector.NewSettings(origin, body))
		default:
			at := body.GetToken().Position
			faults = append(faults, pawl.Field{Message: fmt.Sprintf("%s:%d:%d: a definition is a list of fields and values, such as kind: executor", origin.File, origin.Line+at.Line, at.Column)})
		}
	}
	return found, faults
}

func syntaxFault(origin connector.Origin, err error) pawl.Field {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil || e.GetToken().Position == nil {
		return pawl.Field{Message: fmt.Sprintf("%s:%d:1: the document is not valid YAML", origin.File, origin.Line+1)}
	}
	at := e.GetToken().Position
	return pawl.Field{Message: fmt.Sprintf("%s:%d:%d: %s", origin.File, origin.Line+at.Line, at.Column, e.GetMessage())}
}
