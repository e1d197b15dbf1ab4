package sqltool

import "strings"

// postgresWords are the words that a statement may begin with. Left out is all
// that ends the transaction, changes the session, or moves files.
func postgresWords(method string) []string {
	if method == methodQuery {
		return []string{"select", "with", "values", "table", "show", "explain"}
	}
	return []string{
		"insert", "update", "delete", "merge", "with", "select", "call", "do",
		"create", "alter", "drop", "truncate", "comment", "grant", "revoke", "refresh", "analyze",
	}
}

// check refuses statements by their first word. That there is only one, and
// that it has its parameters, is seen to by the server.
func (p *postgres) check(method, sql string, _ int) (string, error) {
	return sql, checkWord(method, leadingWord(skipToStatement(sql)), postgresWords(method))
}

// skipToStatement cuts off what PostgreSQL skips before a statement: space,
// comments and empty statements. A parenthesis is skipped too, because a
// SELECT may stand in it.
func skipToStatement(sql string) string {
	for {
		rest := strings.TrimLeft(sql, " \t\r\n\f\v;(")
		switch {
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexAny(rest, "\r\n")
			if end < 0 {
				return ""
			}
			rest = rest[end:]
		case strings.HasPrefix(rest, "/*"):
			rest = rest[commentLength(rest):]
		}
		if rest == sql {
			return rest
		}
		sql = rest
	}
}

// commentLength is how long the comment is that a text begins with. Comments
// of PostgreSQL nest.
func commentLength(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(text[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}
