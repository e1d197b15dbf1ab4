package repair

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word of JavaScript.
type token struct {
	text string // of a name or a punctuation mark; ?. is a plain dot
	kind tokenKind
}

type tokenKind byte

const (
	mark   tokenKind = iota // one character
	name                    // a name, a keyword or a number
	quoted                  // a string; text is what is between the quotes
)

// lex splits JavaScript, as the compiler writes it, into tokens. Comments are
// left out, strings are one token each, and what is computed inside of a
// template follows it.
func lex(source string) []token {
	l := lexer{rest: source}
	for l.rest != "" {
		l.step()
	}
	return l.tokens
}

type lexer struct {
	rest      string
	tokens    []token
	templates []int // depth of braces at which a template goes on
	depth     int   // of braces
}

func (l *lexer) add(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{text, kind})
}

func (l *lexer) last() token {
	if len(l.tokens) == 0 {
		return token{}
	}
	return l.tokens[len(l.tokens)-1]
}

func (l *lexer) step() {
	r, size := utf8.DecodeRuneInString(l.rest)
	switch {
	case unicode.IsSpace(r) || r == '\ufeff':
		l.rest = l.rest[size:]
	case strings.HasPrefix(l.rest, "//"):
		l.rest = after(l.rest, "\n")
	case strings.HasPrefix(l.rest, "/*"):
		l.rest = after(l.rest[2:], "*/")
	case r == '"' || r == '\'':
		l.str(byte(r))
	case r == '`':
		l.template()
	case r == '/' && l.beginsRegexp():
		l.regexp()
	case isNameRune(r):
		end := strings.IndexFunc(l.rest, func(r rune) bool { return !isNameRune(r) })
		if end < 0 {
			end = len(l.rest)
		}
		l.add(name, l.rest[:end])
		l.rest = l.rest[end:]
	case strings.HasPrefix(l.rest, "?."):
		l.add(mark, ".")
		l.rest = l.rest[2:]
	default:
		l.rest = l.rest[size:]
		l.mark(string(r))
	}
}

func (l *lexer) mark(text string) {
	switch text {
	case "{":
		l.depth++
	case "}":
		l.depth--
		if n := len(l.templates); n > 0 && l.templates[n-1] == l.depth {
			l.templates = l.templates[:n-1]
			l.templateRest()
			return
		}
	}
	l.add(mark, text)
}

// templateRest reads the text of a template on after ${...}.
func (l *lexer) templateRest() {
	_, rest, computed := templateText(l.rest)
	if l.rest = rest; computed {
		l.templates = append(l.templates, l.depth)
		l.depth++
	}
}

func (l *lexer) template() {
	text, rest, computed := templateText(l.rest[1:])
	l.rest = rest
	if !computed {
		l.add(quoted, text)
		return
	}
	l.add(mark, "`") // not a string that can be read off
	l.templates = append(l.templates, l.depth)
	l.depth++
}

// templateText reads to the end of a template, or to ${.
func templateText(s string) (text, rest string, computed bool) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '`':
			return s[:i], s[i+1:], false
		case strings.HasPrefix(s[i:], "${"):
			return s[:i], s[i+2:], true
		}
	}
	return s, "", false
}

func (l *lexer) str(quote byte) {
	for i := 1; i < len(l.rest); i++ {
		switch l.rest[i] {
		case '\\':
			i++
		case quote, '\n':
			l.add(quoted, l.rest[1:i])
			l.rest = l.rest[i+1:]
			return
		}
	}
	l.rest = ""
}

// beginsRegexp tells a regular expression from a division by what comes before.
func (l *lexer) beginsRegexp() bool {
	switch before := l.last(); before.kind {
	case quoted:
		return false
	case name:
		switch before.text {
		case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "await", "yield":
			return true
		}
		return false
	default:
		return before.text != ")" && before.text != "]" && before.text != "}"
	}
}

func (l *lexer) regexp() {
	class := false
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '\n', c == '/' && !class:
			l.add(quoted, "")
			l.rest = l.rest[i+1:]
			return
		}
	}
	l.rest = ""
}

func after(s, end string) string {
	_, rest, _ := strings.Cut(s, end)
	return rest
}

func isNameRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}
