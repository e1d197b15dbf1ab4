// Package visible makes text of others safe to look at. Characters that nobody
// sees, that turn the direction of what follows, or that a terminal obeys are
// written as what they are, such as \u202e, so that what is shown is what is
// there. Pages and the command line use the same rules.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a text with its hidden characters written as escapes. Line feeds and
// tabs stay. The escapes are those of JSON, so what was JSON is JSON of the same
// value.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	each(s, func(shown string, _ bool) { b.WriteString(shown) })
	return b.String()
}

// Line is Text on one line: line feeds and tabs become blanks.
func Line(s string) string {
	return Text(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s))
}

// Excerpt is the beginning of what others said, fit for a message: one line of at
// most so many characters, without those that nobody sees.
func Excerpt(said string, most int) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(said, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
	line := []rune(strings.Join(words, " "))
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}

// Truncate is a text that others wrote, valid, and cut between characters after
// at most so many bytes. Where something is left out, "..." follows.
func Truncate(s string, most int) string {
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	for range utf8.UTFMax - 1 {
		if most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
	}
	return strings.ToValidUTF8(s[:most], "\uFFFD") + "..."
}

// Has reports whether a text has hidden characters.
func Has(s string) bool {
	found := false
	if !plain(s) {
		each(s, func(_ string, hidden bool) { found = found || hidden })
	}
	return found
}

// plain is a fast answer for the usual text.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// each goes through a text: piece by piece, what is shown of it, and whether that
// is an escape.
func each(s string, do func(shown string, hidden bool)) {
	var before rune
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		after, _ := utf8.DecodeRuneInString(s[i+size:])
		switch {
		case r == utf8.RuneError && size == 1:
			do(fmt.Sprintf(`\x%02x`, s[i]), true)
		case Hidden(r) && !joinsPicture(before, r, after):
			do(Escape(r), true)
		default:
			do(s[i:i+size], false)
		}
		before = r
		i += size
	}
}

// Escape is a character as JSON and most languages write it.
func Escape(r rune) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return b.String()
}

// Hidden reports whether a character cannot be seen for what it is: it controls
// a terminal or the direction of text, has no width, looks like a blank, or is
// not assigned. Line feeds and tabs are not hidden.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
		return false
	case !unicode.IsPrint(r): // controls, formats, other blanks, private and unassigned ones
		return true
	case r == '\u2800': // a Braille pattern without dots
		return true
	}
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// joinsPicture reports whether a character is part of one of those pictures that
// are written with several: a joiner between two, or the mark that makes one
// coloured.
func joinsPicture(before, r, after rune) bool {
	picture := func(r rune) bool {
		return r >= 0x1f000 && r < 0x20000 || r == '\ufe0f' || r >= 0x2190 && r < 0x2c00 && r != '\u2800' && unicode.Is(unicode.So, r)
	}
	switch r {
	case '\u200d':
		return picture(before) && picture(after)
	case '\ufe0f':
		return before != r && picture(before)
	}
	return false
}
