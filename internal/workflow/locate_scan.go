package workflow

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is what kind of piece of a source a token is.
type tokenKind byte

const (
	tokenWord     tokenKind = iota // a name or a keyword
	tokenString                    // with its quotes
	tokenNumber                    //
	tokenTemplate                  // the text of a template between its expressions
	tokenRegexp                    //
	tokenOpen                      // ( [ { and ${
	tokenClose                     // ) ] }
	tokenSign                      // any other sign
)

// token is a piece of a source. Comments and blanks are none.
type token struct {
	kind       tokenKind
	start, end int32 // bytes
	// mate is the token of the bracket that belongs to this one; -1 if there
	// is none.
	mate int32
}

// scanner cuts TypeScript or JavaScript into tokens. It knows just enough to
// tell brackets in code from those in texts, comments and regular expressions.
// It takes any text: where it is wrong about a source, places are less exact.
// Its time is linear in the size of the source.
type scanner struct {
	source string
	at     int
	tokens []token
	open   []int32 // brackets that wait for their mate
	// noRegexp is the end of a line on which a regular expression did not
	// end, so that the line is not searched again.
	noRegexp int
}

func scanTokens(source string) []token {
	s := &scanner{source: source}
	if strings.HasPrefix(source, "#!") {
		s.skipLine()
	}
	for s.at < len(s.source) {
		s.next()
	}
	return s.tokens
}

// next takes the token or the blanks at the present place. It always moves on.
func (s *scanner) next() {
	c, rest := s.source[s.at], s.source[s.at:]
	switch {
	case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
		s.at++
	case strings.HasPrefix(rest, "//"):
		s.skipLine()
	case strings.HasPrefix(rest, "/*"):
		s.skipComment()
	case c == '"' || c == '\'':
		s.add(tokenString, s.stringLength())
	case c == '`':
		s.template(1)
	case c == '/':
		s.slash()
	case strings.IndexByte("([{", c) >= 0:
		s.openBracket(1)
	case strings.IndexByte(")]}", c) >= 0:
		s.closeBracket()
	case '0' <= c && c <= '9':
		s.add(tokenNumber, lengthOf(rest, func(r rune) bool { return r == '.' || isWordPart(r) }))
	case wordLength(rest) > 0:
		s.add(tokenWord, wordLength(rest))
	case c >= utf8.RuneSelf:
		_, size := utf8.DecodeRuneInString(rest) // a blank, or nothing that code can have
		s.at += size
	default:
		s.sign()
	}
}

func (s *scanner) add(kind tokenKind, length int) {
	s.tokens = append(s.tokens, token{kind: kind, start: int32(s.at), end: int32(s.at + length), mate: -1})
	s.at += length
}

func (s *scanner) skipLine() {
	if end := strings.IndexAny(s.source[s.at:], "\n\r\u2028\u2029"); end >= 0 {
		s.at += end
		return
	}
	s.at = len(s.source)
}

func (s *scanner) skipComment() {
	if end := strings.Index(s.source[s.at+2:], "*/"); end >= 0 {
		s.at += 2 + end + 2
		return
	}
	s.at = len(s.source)
}

// stringLength is the length of the string here, quotes included. One that has
// no end ends with its line.
func (s *scanner) stringLength() int {
	rest := s.source[s.at:]
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			return i + 1
		case '\n', '\r':
			return i
		}
	}
	return len(rest)
}

// template takes the text of a template from its quote, or from the brace that
// ends an expression in it, to the next expression or to its end.
func (s *scanner) template(skip int) {
	rest := s.source[s.at:]
	for i := skip; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] == '`':
			s.add(tokenTemplate, i+1)
			return
		case strings.HasPrefix(rest[i:], "${"):
			s.add(tokenTemplate, i)
			s.openBracket(2)
			return
		}
	}
	s.add(tokenTemplate, len(rest))
}

func (s *scanner) openBracket(length int) {
	s.open = append(s.open, int32(len(s.tokens)))
	s.add(tokenOpen, length)
}

// closeBracket takes a closing bracket. One that does not fit closes nothing.
func (s *scanner) closeBracket() {
	closed := s.source[s.at]
	s.add(tokenClose, 1)
	if len(s.open) == 0 {
		return
	}
	top := s.open[len(s.open)-1]
	opened := s.source[s.tokens[top].end-1]
	if strings.IndexByte("([{", opened) != strings.IndexByte(")]}", closed) {
		return
	}
	s.open = s.open[:len(s.open)-1]
	s.tokens[top].mate = int32(len(s.tokens) - 1)
	s.tokens[len(s.tokens)-1].mate = top
	if s.source[s.tokens[top].start] == '$' {
		s.template(0)
	}
}

// slash takes a regular expression, or a sign of division.
func (s *scanner) slash() {
	if s.at >= s.noRegexp && s.valueMayBegin() {
		if n := s.regexpLength(); n > 0 {
			s.add(tokenRegexp, n)
			return
		}
	}
	s.sign()
}

// regexpLength is the length of the regular expression here, or zero if none
// ends on this line.
func (s *scanner) regexpLength() int {
	rest := s.source[s.at:]
	class := false
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1 + lengthOf(rest[i+1:], isWordPart)
		case c == '\n' || c == '\r':
			s.noRegexp = s.at + i
			return 0
		}
	}
	s.noRegexp = len(s.source)
	return 0
}

// valueMayBegin tells by the token before whether a value can stand here, which
// is where a slash begins a regular expression.
func (s *scanner) valueMayBegin() bool {
	if len(s.tokens) == 0 {
		return true
	}
	last := s.tokens[len(s.tokens)-1]
	text := s.source[last.start:last.end]
	switch last.kind {
	case tokenOpen:
		return true
	case tokenSign:
		return text != "++" && text != "--" && !s.followsValue(text, last)
	case tokenWord:
		return isOperatorWord(text)
	case tokenClose:
		return text == "}" || text == ")" && s.closesCondition(last)
	case tokenString, tokenNumber, tokenTemplate, tokenRegexp:
		return false
	}
	return false
}

// followsValue reports whether a ! is that of TypeScript, after a value: x! / y.
func (s *scanner) followsValue(text string, last token) bool {
	if text != "!" || len(s.tokens) < 2 {
		return false
	}
	before := s.tokens[len(s.tokens)-2]
	return before.end == last.start && (before.kind == tokenWord || before.kind == tokenClose)
}

// closesCondition reports whether a parenthesis ends that of an if or a loop.
func (s *scanner) closesCondition(last token) bool {
	if last.mate < 1 {
		return false
	}
	before := s.tokens[last.mate-1]
	switch s.source[before.start:before.end] {
	case "if", "while", "for", "with":
		return true
	}
	return false
}

func isOperatorWord(word string) bool {
	switch word {
	case "return", "typeof", "case", "do", "else", "in", "of", "instanceof", "new", "delete", "void", "throw", "yield", "await", "default":
		return true
	}
	return false
}

// sign takes a sign. Those that are told apart from "=" are taken whole.
func (s *scanner) sign() {
	rest := s.source[s.at:]
	for _, long := range []string{"===", "!==", "...", "=>", "==", "!=", "<=", ">=", "++", "--", "?."} {
		if strings.HasPrefix(rest, long) {
			s.add(tokenSign, len(long))
			return
		}
	}
	s.add(tokenSign, 1)
}

// lengthOf is how many bytes at the beginning of a text belong to it.
func lengthOf(text string, belongs func(rune) bool) int {
	if end := strings.IndexFunc(text, func(r rune) bool { return !belongs(r) }); end >= 0 {
		return end
	}
	return len(text)
}

// wordLength is the length of the name here, or zero. Private names begin with
// a #, decorators with an @.
func wordLength(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	if r == '#' || r == '@' || isWordPart(r) {
		return size + lengthOf(text[size:], isWordPart)
	}
	return 0
}

func isWordPart(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || r == '$' || r == '\\' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\u200c' || r == '\u200d'
}
