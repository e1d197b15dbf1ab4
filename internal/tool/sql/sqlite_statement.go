package sqltool

import (
	"strconv"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// sqliteWords are the words that a statement may begin with. Left out is all
// that ends the transaction, changes the connection, or reaches other files.
func sqliteWords(method string) []string {
	if method == methodQuery {
		return []string{"select", "with", "values", "explain"}
	}
	return []string{"insert", "replace", "update", "delete", "with", "select", "create", "alter", "drop", "analyze"}
}

// check refuses what is not exactly one statement, because the driver would
// run all of them.
func (l *sqlite) check(method, sql string, params int) (string, error) {
	found, err := scanSQLite(sql)
	if err != nil {
		return "", err
	}
	words := found.words
	if err := checkWord(method, first(words), sqliteWords(method)); err != nil {
		return "", err
	}
	if first(words) == "explain" {
		words = words[1:]
		if len(words) > 1 && words[0] == "query" && words[1] == "plan" {
			words = words[2:]
		}
		// Explaining a PRAGMA would already change the connection.
		if err := checkWord(method, first(words), []string{"select", "with", "values"}); err != nil {
			return "", err
		}
	}
	if params != found.params {
		return "", connector.BadArguments("", "the statement has %d parameters, and there are %d params", found.params, params)
	}
	return sql, nil
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// scanned is what was found in the text of a statement.
type scanned struct {
	words  []string // the first few words, in lower case, unless something else came before
	params int      // the highest $N
	tokens int
}

// scanSQLite reads SQL as SQLite does, far enough to tell where a statement
// ends. What it is not sure to read in the same way it refuses.
func scanSQLite(sql string) (scanned, error) {
	var s scanned
	ended := false // the statement, by a semicolon
	for rest := sql; rest != ""; {
		length, err := sqliteToken(rest)
		if err != nil {
			return s, err
		}
		token := rest[:length]
		rest = rest[length:]
		switch {
		case isSQLiteSpace(token):
			continue
		case token == ";":
			ended = ended || s.tokens > 0
			continue
		case ended:
			return s, connector.BadArguments("Make a call for each statement.", "sql has more than one statement")
		}
		if err := s.note(token); err != nil {
			return s, err
		}
	}
	return s, nil
}

// note takes a token into account.
func (s *scanned) note(token string) error {
	const enough = 4 // words: EXPLAIN QUERY PLAN SELECT
	if s.tokens < enough && len(s.words) == s.tokens && isLetter(token[0]) {
		s.words = append(s.words, strings.ToLower(token))
	}
	s.tokens++
	if token[0] != '$' {
		return nil
	}
	n, err := strconv.Atoi(token[1:])
	if err != nil || n < 1 || n > mostParams || token[1] == '0' {
		return connector.BadArguments("Parameters are $1, $2 and so on.", "%s is not a parameter", pawl.Quote(token))
	}
	s.params = max(s.params, n)
	return nil
}

// isSQLiteSpace reports whether a token is space or a comment.
func isSQLiteSpace(token string) bool {
	return strings.IndexByte(" \t\n\f\r", token[0]) >= 0 || strings.HasPrefix(token, "--") || strings.HasPrefix(token, "/*") || token == bom
}

const bom = "\ufeff"

// sqliteToken is the length of the token that a text begins with.
func sqliteToken(text string) (int, error) {
	switch c := text[0]; {
	case strings.HasPrefix(text, bom):
		return len(bom), nil
	case strings.HasPrefix(text, "--"):
		return lengthUntil(text, "\n", 2), nil
	case strings.HasPrefix(text, "/*"):
		return lengthUntil(text, "*/", 2), nil
	case c == '\'' || c == '"' || c == '`':
		return quotedLength(text)
	case c == '[':
		if !strings.Contains(text, "]") {
			return 0, unclosed(c)
		}
		return lengthUntil(text, "]", 1), nil
	case c == '$':
		return parameterLength(text)
	case c == '?' || c == '@' || c == ':' || c == '#':
		return 0, connector.BadArguments("Parameters are $1, $2 and so on.", "sql has the character %s outside of quotes", pawl.Quote(string(c)))
	case isNameByte(c):
		end := 1
		for end < len(text) && (isNameByte(text[end]) || text[end] == '$') {
			end++
		}
		return end, nil
	}
	return 1, nil
}

// isNameByte reports whether names and numbers are made of the byte; a $ can
// only follow.
func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80 }

// lengthUntil is how long the text is up to and with the end, which is looked
// for after the first skip bytes; without an end it is all of it.
func lengthUntil(text, end string, skip int) int {
	at := strings.Index(text[skip:], end)
	if at < 0 {
		return len(text)
	}
	return skip + at + len(end)
}

// quotedLength is how long a quoted text is. A quote in it is written twice.
func quotedLength(text string) (int, error) {
	for i := 1; i < len(text); i++ {
		if text[i] != text[0] {
			continue
		}
		if i+1 < len(text) && text[i+1] == text[0] {
			i++
			continue
		}
		return i + 1, nil
	}
	return 0, unclosed(text[0])
}

// parameterLength is how long a parameter is. SQLite reads more of them than
// $N, with quotes and semicolons in them.
func parameterLength(text string) (int, error) {
	end := 1
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	if end == 1 || end < len(text) && (isNameByte(text[end]) || text[end] == '$' || text[end] == '(' || text[end] == ':') {
		return 0, connector.BadArguments("Parameters are $1, $2 and so on.", "sql has a $ outside of quotes that no number follows")
	}
	return end, nil
}

func unclosed(quote byte) error {
	return connector.BadArguments("", "sql has a %c that is not closed", quote)
}
