package repair

import (
	"maps"
	"slices"
	"strings"
)

// AnyTool stands in ToolsOf for a use whose tool cannot be read off the text.
const AnyTool = "*"

// ToolsOf lists the tools that a script names, sorted: NAME for ctx.tools.NAME
// and ctx.tools["NAME"], and AnyTool for every other use of tools, such as
// tools[x] or handing them on.
//
// It reads words, not meaning. Uses in comments and strings count too, so that
// no trick with quotes hides one; a script that goes out of its way can still
// reach a tool unseen. What a tool may do is held by its policy when it is
// called, whatever is found here.
func ToolsOf(script string) []string {
	s := toolScan{words: wordsOf(script), found: map[string]bool{}}
	for i, w := range s.words {
		switch w {
		case "tools":
			s.tools(i)
		case "ctx":
			s.context(i)
		}
	}
	for i, w := range s.words {
		if slices.Contains(s.aliases, w) && s.at(i-1) != "." {
			s.named(i + 1)
		}
	}
	return slices.Sorted(maps.Keys(s.found))
}

type toolScan struct {
	words   []string
	found   map[string]bool
	aliases []string // variables that hold the tools
}

// at is the word at a place, and empty outside.
func (s *toolScan) at(i int) string {
	if i < 0 || i >= len(s.words) {
		return ""
	}
	return s.words[i]
}

// tools looks at the word tools at i.
func (s *toolScan) tools(i int) {
	before, after := s.at(i-1), s.at(i+1)
	switch {
	case isQuote(before) && before == after: // ctx["tools"], or a word that may become one
		if s.at(i-2) != "[" || s.at(i+2) != "]" || !s.named(i+3) {
			s.found[AnyTool] = true
		}
	case s.named(i + 1):
	case before == ".":
		s.handedOn(i)
	case after == "/": // a comment may hide what follows
		s.found[AnyTool] = true
	case strings.Contains("{,(", before) && strings.Contains("},:=)", after) && before != "" && after != "":
		s.found[AnyTool] = true // taken out of ctx, or a parameter
		if after == ":" && isName(s.at(i+2)) {
			s.aliases = append(s.aliases, s.at(i+2))
		}
	}
}

// context looks at the word ctx at i: whatever reaches into it by other means
// than a name may mean the tools.
func (s *toolScan) context(i int) {
	if s.at(i+1) == "[" || s.at(i+1) == "." && s.at(i+2) == "[" {
		at := i + 1 + strings.Count(s.at(i+1), ".")
		if _, ok := s.literal(at); !ok {
			s.found[AnyTool] = true
		}
	}
	if s.at(i-1) == "(" && s.at(i-3) == "." && (s.at(i-4) == "Object" || s.at(i-4) == "Reflect") {
		s.found[AnyTool] = true
	}
}

// named notes the tool that .NAME, ["NAME"] or [anything] at i names, and
// reports whether there is one of these.
func (s *toolScan) named(i int) bool {
	for s.at(i) == "!" { // says to the type checker that it is there
		i++
	}
	if s.at(i) == "." && isName(s.at(i+1)) {
		s.found[s.at(i+1)] = true
		return true
	}
	if s.at(i) == "." {
		i++
	}
	if s.at(i) != "[" {
		return false
	}
	tool, ok := s.literal(i)
	if !ok {
		tool = AnyTool
	}
	s.found[tool] = true
	return true
}

// literal is the text of ["text"] at i.
func (s *toolScan) literal(i int) (string, bool) {
	quote := s.at(i + 1)
	if !isQuote(quote) {
		return "", false
	}
	var text strings.Builder
	for i += 2; s.at(i) != quote; i++ {
		if w := s.at(i); w == "" || w == `\` || strings.Contains(w, "$") {
			return "", false // it does not end, or is not what it seems
		}
		text.WriteString(s.at(i))
	}
	return text.String(), s.at(i+1) == "]"
}

// handedOn looks at something.tools at i of which nothing is taken at once:
// { a, b } = ctx.tools names the tools, all else may use any.
func (s *toolScan) handedOn(i int) {
	for i--; s.at(i) == "." || isName(s.at(i)); i-- { // back over the expression
	}
	if s.at(i) == "=" && s.at(i-1) == "}" && s.unpacked(i-2) {
		return
	}
	s.found[AnyTool] = true
	if s.at(i) == "=" && isName(s.at(i-1)) {
		s.aliases = append(s.aliases, s.at(i-1))
	}
}

// unpacked notes the names of a simple { a, b: c } that ends at i, and reports
// whether it is one.
func (s *toolScan) unpacked(i int) bool {
	last := "" // read backwards, this ends up as the key
	for ; ; i-- {
		switch w := s.at(i); {
		case w == "{" || w == ",":
			if last != "" {
				s.found[last] = true
			}
			if last = ""; w == "{" {
				return true
			}
		case isName(w):
			last = w
		case w != ":":
			return false
		}
	}
}
