package workflow

import (
	"strconv"
	"strings"
)

// literal is an object or list as it is written.
type literal struct {
	fields  map[string]field // the last of a name counts, as in JavaScript
	spreads []int            // tokens where the values of "...value" begin
}

// field is one field of an object, or one element of a list.
type field struct {
	name  int // token of its name
	value int // token where its value begins, -1 for a method
}

// literal reads what is directly in a bracket, once.
func (l *locator) literal(bracket int) *literal {
	lit := l.literals[bracket]
	if lit == nil {
		lit = &literal{fields: map[string]field{}}
		l.literals[bracket] = lit
		if l.word(bracket) == "[" {
			l.readList(bracket, lit)
		} else {
			l.readObject(bracket, lit)
		}
	}
	return lit
}

// closing is the token that ends what a bracket encloses. A bracket without a
// mate encloses nothing.
func (l *locator) closing(bracket int) int { return int(l.tokens[bracket].mate) }

// afterComma returns what follows the next comma.
func (l *locator) afterComma(i, end int) int {
	for i < end {
		comma := l.word(i) == ","
		i = l.after(i)
		if comma {
			break
		}
	}
	return i
}

func (l *locator) readList(bracket int, lit *literal) {
	end := l.closing(bracket)
	for n, i := 0, bracket+1; i < end; n, i = n+1, l.afterComma(i, end) {
		lit.fields[strconv.Itoa(n)] = field{name: i, value: i}
	}
}

func (l *locator) readObject(bracket int, lit *literal) {
	end := l.closing(bracket)
	for i := bracket + 1; i < end; i = l.afterComma(i, end) {
		if l.word(i) == "..." {
			lit.spreads = append(lit.spreads, i+1)
			continue
		}
		for l.isModifier(i) {
			i++
		}
		if name, next, ok := l.fieldName(i); ok && i < end {
			lit.fields[name] = field{name: i, value: l.fieldValue(i, next)}
		}
	}
}

// isModifier reports whether a word stands before the name of a method, as
// async does, and is not itself the name of a field.
func (l *locator) isModifier(i int) bool {
	switch l.word(i) {
	case "*":
		return true
	case "async", "get", "set":
		switch l.word(i + 1) {
		case "(", ",", ":", "}", "<", "=", "":
			return false
		}
		return true
	}
	return false
}

// fieldName reads the name of a field: a word, a text, a number, or a text in
// brackets. next is the token that follows.
func (l *locator) fieldName(i int) (name string, next int, ok bool) {
	if i >= len(l.tokens) {
		return "", 0, false
	}
	switch t := l.tokens[i]; {
	case t.kind == tokenWord || t.kind == tokenNumber:
		return l.word(i), i + 1, true
	case t.kind == tokenString:
		return unquote(l.word(i)), i + 1, true
	case l.word(i) == "[" && int(t.mate) == i+2 && l.tokens[i+1].kind == tokenString:
		return unquote(l.word(i + 1)), i + 3, true
	}
	return "", 0, false
}

// fieldValue returns where the value of a field begins. A name alone is that
// of a variable; a method has none.
func (l *locator) fieldValue(name, next int) int {
	switch l.word(next) {
	case ":":
		return next + 1
	case ",", "}", "":
		return name
	}
	return -1
}

// unquote returns the text of a string literal. Escapes that names hardly have
// are left as they are.
func unquote(literal string) string {
	text := literal[1:]
	if strings.HasSuffix(text, literal[:1]) {
		text = text[:len(text)-1]
	}
	if !strings.Contains(text, `\`) {
		return text
	}
	if decoded, err := strconv.Unquote(`"` + strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `"`, `\"`, `\"`, `\"`).Replace(text) + `"`); err == nil {
		return decoded
	}
	return text
}
