package workflow

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/tool"
)

// What a source lets expect that is allowed and yet hardly meant. It is read
// word by word, so it finds what is written plainly, and only advises.

// advice are the warnings about a source, and which consumers have code behind
// the call of their mutate, which never runs.
func advice(file, source string, config *Config) []script.Diagnostic {
	var list []script.Diagnostic
	l := newLocator(source)
	for i, c := range config.Consumers {
		if !c.HasMutate {
			continue
		}
		at := l.afterCall(c.Name)
		if at < 0 {
			continue
		}
		config.Consumers[i].AfterCall = true
		list = append(list, l.warning(file, at, "this never runs: mutate of "+c.Name+" ends with its call", "Make one call, and do what follows from it in next."))
	}
	return list
}

// missingConnections are the warnings about connections that a source uses and
// that are not there.
func missingConnections(file, source string, tools *tool.Set) []script.Diagnostic {
	var list []script.Diagnostic
	l, told := newLocator(source), tools.Names()
	for i := range l.tokens {
		name := l.connection(i)
		if name == "" || slices.Contains(told, name) {
			continue
		}
		told = append(told, name)
		list = append(list, l.warning(file, i, "this server has no connection "+strconv.Quote(name), "The workflow waits for it: define it in the folder of --connection-dir and start the server again."))
	}
	return list
}

// connection is the name in ctx.tools.NAME or ctx.tools["NAME"], if the token is
// that of tools.
func (l *locator) connection(i int) string {
	if !l.isTools(i) {
		return ""
	}
	switch l.word(i + 1) {
	case ".":
		return l.word(i + 2)
	case "[":
		if name := l.word(i + 2); l.word(i+3) == "]" && len(name) > 1 && strings.ContainsAny(name[:1], `"'`) {
			return name[1 : len(name)-1]
		}
	}
	return ""
}

func (l *locator) isTools(i int) bool {
	return l.word(i) == "tools" && (l.word(i-1) == "." || l.word(i-1) == "?.")
}

func (l *locator) warning(file string, token int, message, hint string) script.Diagnostic {
	d := script.Diagnostic{Message: message, Hint: hint}
	d.File = file
	d.Line, d.Column, d.Text = l.place(int(l.tokens[token].start))
	return d
}

// afterCall is the first token behind a call of a tool that mutate makes in any
// case, or -1: a call in a block, in a branch or in a returned value is none.
func (l *locator) afterCall(consumer string) int {
	open := l.bodyOf("consumers", consumer, "mutate")
	if open < 0 {
		return -1
	}
	end := int(l.tokens[open].mate)
	called, branches := false, false
	for i := open + 1; i < end; i = l.after(i) {
		if i > open+1 && l.beginsStatement(i) {
			if called {
				return i
			}
			branches = false
		}
		switch word := l.word(i); {
		case slices.Contains([]string{"if", "else", "for", "while", "switch", "return", "throw", "?", "&", "|"}, word):
			branches = true
		case l.isTools(i) && !branches:
			called = true
		}
	}
	return -1
}

// bodyOf is the token of the brace of a function's body, or -1.
func (l *locator) bodyOf(path ...string) int {
	start := l.offset(path)
	at := slices.IndexFunc(l.tokens, func(t token) bool { return int(t.start) == start })
	if at < 0 || l.word(at) != path[len(path)-1] {
		return -1
	}
	for i := at + 1; i < len(l.tokens); i = l.after(i) {
		switch l.word(i) {
		case "{":
			if l.tokens[i].mate >= 0 {
				return i
			}
			return -1
		case ",", ";", "}":
			return -1
		}
	}
	return -1
}

// beginsStatement reports whether a statement begins at a token: behind a
// semicolon or a block, or on a new line that does not go on with the last.
func (l *locator) beginsStatement(i int) bool {
	before := l.word(i - 1)
	if before == ";" || before == "}" && l.word(i) != "." && l.word(i) != ")" {
		return l.word(i) != ";"
	}
	between := l.source[l.tokens[i-1].end:l.tokens[i].start]
	if !strings.Contains(between, "\n") {
		return false
	}
	goesOn := l.tokens[i].kind == tokenSign || l.tokens[i].kind == tokenOpen || l.tokens[i-1].kind == tokenSign
	return !goesOn
}
