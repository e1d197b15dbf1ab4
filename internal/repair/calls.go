package repair

import (
	"cmp"
	"slices"
)

// Call is a method of a connection.
type Call struct {
	Tool   string
	Method string
}

// CallsOf lists the calls that a compiled script names, sorted: tools.NAME.METHOD
// and the like, also through a variable that holds the tools or a connection.
// What a script computes is not found. So this says what the person who
// deployed a script meant it to call, and never what a script can call: that is
// held by the host, at the call.
func CallsOf(javascript string) []Call {
	s := scan{tokens: lex(javascript), tools: map[string]bool{"tools": true}, connections: map[string]string{}}
	for i := range s.tokens {
		s.unpack(i)
	}
	for i := range s.tokens {
		s.use(i)
	}
	slices.SortFunc(s.found, func(a, b Call) int { return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Method, b.Method)) })
	return slices.Compact(s.found)
}

type scan struct {
	tokens      []token
	tools       map[string]bool   // variables that hold the tools
	connections map[string]string // variables that hold a connection
	found       []Call
}

// at is the token at a place, and an empty one outside.
func (s *scan) at(i int) token {
	if i < 0 || i >= len(s.tokens) {
		return token{}
	}
	return s.tokens[i]
}

func (s *scan) is(i int, text string) bool { return s.at(i).kind == mark && s.at(i).text == text }

// member reads .NAME or ["NAME"] at i.
func (s *scan) member(i int) (text string, next int, ok bool) {
	if s.is(i, ".") && s.at(i+1).kind == name {
		return s.at(i + 1).text, i + 2, true
	}
	if s.is(i, ".") { // what ?.[ leaves
		i++
	}
	if s.is(i, "[") && s.at(i+1).kind == quoted && s.is(i+2, "]") {
		return s.at(i + 1).text, i + 3, true
	}
	return "", i, false
}

// base reports whether a value that is or holds tools ends before next: the
// word tools itself, a property of that name, or a variable.
func (s *scan) base(i int) (next int, ok bool) {
	switch t := s.at(i); {
	case t.kind == quoted && t.text == "tools" && s.is(i-1, "[") && s.is(i+1, "]"):
		return i + 2, true
	case t.kind == name && t.text == "tools":
		return i + 1, true
	case t.kind == name && s.tools[t.text] && !s.is(i-1, "."):
		return i + 1, true
	}
	return 0, false
}

// unpack notes variables: t = ctx.tools, c = ctx.tools.NAME, { a, b: c } =
// ctx.tools and { tools: t }.
func (s *scan) unpack(i int) {
	next, ok := s.base(i)
	if !ok {
		return
	}
	if s.at(i).text == "tools" && s.is(i+1, ":") && s.at(i+2).kind == name {
		s.tools[s.at(i+2).text] = true
		return
	}
	from := i - 1
	for s.is(from, ".") || s.is(from, "[") || s.at(from).kind == name && (s.is(from+1, ".") || s.is(from+1, "[")) {
		from-- // back over the expression
	}
	if !s.is(from, "=") {
		return
	}
	connection, end, one := s.member(next)
	_, _, more := s.member(end)
	into := s.at(from - 1)
	switch {
	case one && !more && into.kind == name && !s.is(end, "("):
		s.connections[into.text] = connection
	case !one && into.kind == name:
		s.tools[into.text] = true
	case !one && s.is(from-1, "}"):
		s.fields(from - 2)
	}
}

// fields notes the names of a simple { a, b: c } that ends at i.
func (s *scan) fields(i int) {
	for ; i >= 0 && !s.is(i, "{"); i-- {
		if s.at(i).kind != name {
			continue
		}
		variable, key := s.at(i).text, s.at(i).text
		if s.is(i-1, ":") && s.at(i-2).kind == name {
			key = s.at(i - 2).text
			i -= 2
		}
		s.connections[variable] = key
	}
}

// use notes a call that begins at i.
func (s *scan) use(i int) {
	if next, ok := s.base(i); ok {
		connection, next, ok := s.member(next)
		if !ok {
			return
		}
		if method, _, ok := s.member(next); ok {
			s.found = append(s.found, Call{connection, method})
		}
		return
	}
	t := s.at(i)
	connection, ok := s.connections[t.text]
	if t.kind != name || !ok || s.is(i-1, ".") {
		return
	}
	if method, _, ok := s.member(i + 1); ok {
		s.found = append(s.found, Call{connection, method})
	}
}
