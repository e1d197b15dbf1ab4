package sqltool

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// checkWord refuses a statement by the word that it begins with.
func checkWord(method, word string, allowed []string) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	hint := method + " runs statements that begin with " + strings.ToUpper(strings.Join(allowed, ", ")) + "."
	if method == methodQuery {
		hint += " What changes data goes through exec."
	}
	if word == "" {
		return connector.BadArguments(hint, "sql does not begin with a word")
	}
	return connector.BadArguments(hint, "%s does not run %s", method, pawl.Quote(strings.ToUpper(word)))
}

// isLetter reports whether a byte can begin a word of SQL.
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// leadingWord is the word that a text begins with, in lower case.
func leadingWord(text string) string {
	end := 0
	for end < len(text) && (isLetter(text[end]) || end > 0 && (text[end] == '_' || isDigit(text[end]))) {
		end++
	}
	return strings.ToLower(text[:end])
}
