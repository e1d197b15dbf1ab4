package definition

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// guard looks for what would make the parser slow, or use up the stack: it
// needs time with the square of the depth and of the number of names. Cutting
// a text into tokens takes no more time than its length.
func (p part) guard(tokens token.Tokens) *fault {
	var columns []int // where the blocks around this token begin
	brackets, names := 0, 0
	for _, t := range tokens {
		switch t.Type { //nolint:exhaustive // the others do not nest
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(brackets-1, 0)
		case token.MappingValueType:
			names++
			if brackets == 0 && t.Prev != nil {
				columns = nest(columns, t.Prev.Position.Column)
			}
		case token.SequenceEntryType, token.MappingKeyType:
			columns = nest(columns, t.Position.Column)
		}
		at := place{p.before + t.Position.Line, t.Position.Column}
		if brackets+len(columns) > deepest {
			return &fault{place: at, message: fmt.Sprintf("the document is nested more than %d levels deep", deepest)}
		}
		if names > mostNames {
			return &fault{place: at, message: fmt.Sprintf("the document has more than %d fields", mostNames)}
		}
	}
	return nil
}

// nest enters a block that begins at a column, which ends those that begin
// there or behind it.
func nest(columns []int, column int) []int {
	for len(columns) > 0 && columns[len(columns)-1] >= column {
		columns = columns[:len(columns)-1]
	}
	return append(columns, column)
}
