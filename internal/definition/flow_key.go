package definition

import (
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// joinKeys mends names with a colon in mappings of one line. In {header:X-Event:
// push} the name is header:X-Event, because a colon ends a name only before a blank;
// the lexer ends it at the first one.
func joinKeys(tokens token.Tokens) token.Tokens {
	var out token.Tokens
	for i := 0; i < len(tokens); i++ {
		if i+2 < len(tokens) && i > 0 && startsKey(tokens[i-1]) {
			if joined := joinKey(tokens[i], tokens[i+1], tokens[i+2]); joined != nil {
				out.Add(joined...)
				i += 2
				continue
			}
		}
		out.Add(tokens[i])
	}
	return out
}

func startsKey(before *token.Token) bool {
	return before.Type == token.MappingStartType || before.Type == token.CollectEntryType
}

// joinKey makes a name, a colon and mostly a value of three tokens that stand close
// together; nil if they are right as they are.
func joinKey(name, colon, rest *token.Token) []*token.Token {
	if name.Type != token.StringType || colon.Type != token.MappingValueType || rest.Type != token.StringType {
		return nil
	}
	close := rest.Position.Line == name.Position.Line && rest.Position.Column == colon.Position.Column+1 && !strings.HasPrefix(rest.Origin, " ")
	more, value, found := strings.Cut(rest.Value, ": ")
	if !found {
		more, found = strings.CutSuffix(rest.Value, ":")
	}
	if !close || !found || more == "" {
		return nil
	}
	moved := func(by int) *token.Position {
		at := *rest.Position
		at.Column, at.Offset = at.Column+by, at.Offset+by
		return &at
	}
	out := []*token.Token{
		token.String(name.Value+":"+more, name.Origin+":"+more, name.Position),
		token.MappingValue(moved(len(more))),
	}
	if value = strings.TrimSpace(value); value == "" {
		return out
	}
	values := lexer.Tokenize(value)
	if len(values) != 1 {
		return nil
	}
	values[0].Position = moved(len(more) + len(": "))
	return append(out, values[0])
}
