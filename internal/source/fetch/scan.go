package fetch

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// picker finds the values of a tree of paths in JSON that is known to be well
// formed, in one pass and without decoding what is not wanted.
type picker struct {
	whole []byte // what was looked through
	found []span // by the id of a node
	twice string // a wanted name that an object has twice
	name  []byte // scratch for names with escapes
}

// span is where a value is; the zero span is nowhere. Unlike slices, spans are
// no work for the garbage collector.
type span struct{ from, to int }

func newPicker(t *tree) *picker { return &picker{found: make([]span, t.count)} }

// at returns the value of a node as written, or nil.
func (p *picker) at(id int) []byte {
	s := p.found[id]
	if s.to == 0 {
		return nil
	}
	return p.whole[s.from:s.to]
}

// pick looks for the tree below n in value, which has no space around it.
func (p *picker) pick(n *node, value []byte) {
	clear(p.found)
	p.whole, p.twice = value, ""
	p.value(n, value, 0)
}

// value reads the value at b[i:] and returns where it ends.
func (p *picker) value(n *node, b []byte, i int) int {
	start := i
	switch {
	case b[i] == '{' && len(n.children) > 0:
		i = p.object(n, b, i)
	case b[i] == '[' && len(n.children) > 0:
		i = p.array(n, b, i)
	default:
		i = skipValue(b, i)
	}
	p.found[n.id] = span{start, i}
	return i
}

func (p *picker) object(n *node, b []byte, i int) int {
	guess := 0
	for i = skipSpace(b, i+1); b[i] != '}'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		end, escaped := skipString(b, i)
		name := b[i+1 : end-1]
		if escaped {
			name = p.plain(b[i:end])
		}
		i = skipSpace(b, end)
		i = skipSpace(b, i+1) // the colon
		child := n.find(name, guess)
		if child < 0 {
			i = skipValue(b, i)
			continue
		}
		to := n.children[child].to
		if p.found[to.id].to != 0 {
			p.twice = n.children[child].name
		}
		guess = child + 1
		i = p.value(to, b, i)
	}
	return i + 1
}

func (p *picker) array(n *node, b []byte, i int) int {
	index := 0
	for i = skipSpace(b, i+1); b[i] != ']'; i = skipSpace(b, i) {
		if b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		if to := n.at(index); to != nil {
			i = p.value(to, b, i)
		} else {
			i = skipValue(b, i)
		}
		index++
	}
	return i + 1
}

// plain removes the escapes of a quoted name. A broken one matches nothing.
func (p *picker) plain(quoted []byte) []byte {
	p.name, _ = jsontext.AppendUnquote(p.name[:0], quoted)
	return p.name
}

// skipValue returns the end of the value at b[i:].
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		i, _ = skipString(b, i)
		return i
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) && !endsScalar(b[i]) {
		i++
	}
	return i
}

func endsScalar(c byte) bool { return c == ',' || c == '}' || c == ']' || c <= ' ' }

func skipNested(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i, _ = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// skipString returns the end of the string at b[i:], after its closing quote,
// and whether there are escapes in it.
func skipString(b []byte, i int) (end int, escaped bool) {
	for i++; ; i++ {
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
	}
}

func skipSpace(b []byte, i int) int {
	for b[i] <= ' ' {
		i++
	}
	return i
}

// Limits of JSON that is stored as JSON: what both databases take.
const (
	maxDepth    = 500
	maxExponent = 4 // digits
)

// storable says why a JSON value cannot be stored as JSON, or nothing.
// PostgreSQL holds neither NUL characters, nor broken UTF-8, nor numbers of
// more than some hundred thousand digits.
func storable(b []byte) string {
	escapes := bytes.IndexByte(b, '\\') >= 0
	if !escapes && !isUTF8(b) {
		return notUTF8
	}
	if escapes && !jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true)) {
		return notUTF8
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			end, escaped := skipString(b, i)
			if escaped && hasEscapedNUL(b[i:end]) {
				return hasNUL
			}
			i = end - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return "is nested too deeply"
			}
		case '}', ']':
			depth--
		case 'e', 'E':
			if digitsAfter(b, i+1) > maxExponent {
				return "has a number that is too large"
			}
		}
	}
	return ""
}

// hasEscapedNUL looks for \u0000 in a string, other than after a backslash.
func hasEscapedNUL(quoted []byte) bool {
	for i := 0; i+5 < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		if string(quoted[i:i+6]) == `\u0000` {
			return true
		}
		i++
	}
	return false
}

// digitsAfter counts the digits of an exponent. The letter e of true and false
// has none.
func digitsAfter(b []byte, i int) int {
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i - start
}
