package workflow

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Locate finds what a path of the default export leads to, such as
// consumers, addRow, publishes, 0, in the source of a script. Line and column
// count from 1, the column in UTF-16 units, as compilers and editors do. What
// it cannot find has the place of the nearest thing around it, and at last
// that of the default export or of the first line.
func Locate(source string, path ...string) (line, column int) {
	l := newLocator(source)
	line, column, _ = l.place(l.offset(path))
	return line, column
}

// locator finds places in one source. It reads the source once, and each
// object literal once.
type locator struct {
	source   string
	tokens   []token
	export   int              // token of the default export, -1 without one
	root     int              // token where its value begins, -1 without one
	declared map[string]int   // name of a variable -> token where its value begins
	literals map[int]*literal // token of the bracket -> what is in it
}

// mostSteps bounds how many names and wrappers are followed for one path, so
// that variables that refer to each other end somewhere.
const mostSteps = 100

// mostLine is how much of a line is shown, in characters.
const mostLine = 200

func newLocator(source string) *locator {
	l := &locator{source: source, tokens: scanTokens(source), export: -1, root: -1, declared: map[string]int{}, literals: map[int]*literal{}}
	l.findDeclarations()
	l.findExport()
	return l
}

// word returns the text of a token, or nothing past the end.
func (l *locator) word(i int) string {
	if i < 0 || i >= len(l.tokens) {
		return ""
	}
	return l.source[l.tokens[i].start:l.tokens[i].end]
}

// findDeclarations remembers the variables that are declared outside of all
// brackets.
func (l *locator) findDeclarations() {
	for i := 0; i < len(l.tokens); i = l.after(i) {
		switch l.word(i) {
		case "const", "let", "var":
			if value := l.assigned(i + 2); value >= 0 && l.tokens[i+1].kind == tokenWord {
				l.declared[l.word(i+1)] = value
			}
		}
	}
}

// assigned returns where the value begins that is assigned after a name and
// its type, or -1.
func (l *locator) assigned(i int) int {
	for ; i < len(l.tokens); i = l.after(i) {
		switch l.word(i) {
		case "=":
			return i + 1
		case ";", "const", "let", "var", "export", "function", "class":
			return -1
		}
	}
	return -1
}

// after returns the token that follows, past what a bracket encloses.
func (l *locator) after(i int) int {
	if l.tokens[i].kind == tokenOpen && l.tokens[i].mate >= 0 {
		return int(l.tokens[i].mate) + 1
	}
	return i + 1
}

// findExport finds "export default value" and "export { value as default }".
func (l *locator) findExport() {
	for i := 0; i < len(l.tokens); i = l.after(i) {
		if l.word(i) != "export" {
			continue
		}
		if l.word(i+1) == "default" {
			l.export, l.root = i, i+2
			return
		}
		if l.word(i+1) != "{" {
			continue
		}
		for j := i + 2; j < int(l.tokens[i+1].mate); j++ {
			if l.word(j) == "as" && l.word(j+1) == "default" {
				l.export, l.root = i, j-1
				return
			}
		}
	}
}

// offset returns where in the source a path leads, in bytes.
func (l *locator) offset(path []string) int {
	if l.export < 0 {
		return 0
	}
	found := l.export
	at, steps := l.root, mostSteps
	for _, name := range path {
		f, ok := l.find(at, name, &steps)
		if !ok {
			break
		}
		found, at = f.name, f.value
	}
	return int(l.tokens[found].start)
}

// find looks for a field in the value that begins at a token.
func (l *locator) find(at int, name string, steps *int) (field, bool) {
	bracket := l.bracketOf(at, steps)
	if bracket < 0 {
		return field{}, false
	}
	lit := l.literal(bracket)
	if f, ok := lit.fields[name]; ok {
		return f, true
	}
	for _, spread := range slices.Backward(lit.spreads) {
		if *steps <= 0 {
			break
		}
		if f, ok := l.find(spread, name, steps); ok {
			return f, true
		}
	}
	return field{}, false
}

// bracketOf follows parentheses, calls such as workflow({...}) and names to
// the bracket of the object or list that the value at a token is; -1 if it is
// something else.
func (l *locator) bracketOf(at int, steps *int) int {
	for at >= 0 && at < len(l.tokens) && *steps > 0 {
		*steps--
		t := l.tokens[at]
		switch {
		case t.kind == tokenOpen && l.word(at) == "(":
			at++
		case t.kind == tokenOpen:
			return at
		case t.kind != tokenWord:
			return -1
		default:
			at = l.follow(at)
		}
	}
	return -1
}

// follow returns where the value of a name begins: in the argument of a call,
// or where the variable is declared. It is -1 if that is not known.
func (l *locator) follow(at int) int {
	end := at + 1
	for range 10 { // Object.freeze
		if l.word(end) == "." {
			end += 2
		}
	}
	if l.word(end) == "<" {
		end = l.afterTypes(end)
	}
	if l.word(end) == "(" {
		return end + 1
	}
	if end == at+1 {
		if value, ok := l.declared[l.word(at)]; ok {
			return value
		}
	}
	return -1
}

// afterTypes skips the type arguments of a call.
func (l *locator) afterTypes(i int) int {
	const most = 1000 // tokens
	depth := 0
	for end := i + most; i < min(end, len(l.tokens)); i = l.after(i) {
		switch l.word(i) {
		case "<":
			depth++
		case ">":
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// place turns an offset into line and column, and returns the line's text as
// well.
func (l *locator) place(offset int) (line, column int, text string) {
	line, start := 1, 0
	for i, r := range l.source[:offset] {
		switch {
		case r == '\n' || r == '\u2028' || r == '\u2029', r == '\r' && !strings.HasPrefix(l.source[i+1:], "\n"):
			line, start = line+1, i+utf8.RuneLen(r)
		}
	}
	column = 1
	for _, r := range l.source[start:offset] {
		column++
		if r > 0xffff {
			column++ // two UTF-16 units
		}
	}
	text = l.source[start:min(len(l.source), start+utf8.UTFMax*mostLine)]
	if end := strings.IndexAny(text, "\n\r\u2028\u2029"); end >= 0 {
		text = text[:end]
	}
	return line, column, strings.ToValidUTF8(cutText(text, mostLine), "\uFFFD")
}
