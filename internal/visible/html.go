package visible

import (
	"strings"
	"unicode/utf8"
)

// HTML is a page whose texts have their hidden characters written as escapes. In
// running text they are marked with an element of their own; where no element
// can be, in attributes, titles and fields, they are only written. The page must
// be well-formed, with every < and > of text escaped, as templates write it.
func HTML(page string) string {
	if !Has(page) {
		return page
	}
	var b strings.Builder
	inTag, raw := false, ""
	var before rune
	for i := 0; i < len(page); {
		r, size := utf8.DecodeRuneInString(page[i:])
		switch {
		case r == '<':
			inTag = true
			raw = rawAfter(page[i:], raw)
		case r == '>':
			inTag = false
		}
		after, _ := utf8.DecodeRuneInString(page[i+size:])
		hidden := r == utf8.RuneError && size == 1 || Hidden(r) && !joinsPicture(before, r, after)
		switch {
		case !hidden:
			b.WriteString(page[i : i+size])
		case inTag || raw != "":
			b.WriteString(Text(page[i : i+size]))
		default:
			b.WriteString(`<span class="hidden-char" title="a character that cannot be seen">` + Text(page[i:i+size]) + `</span>`)
		}
		before = r
		i += size
	}
	return b.String()
}

// rawAfter is the element whose content is text only that one is in after the
// tag at the beginning of rest; empty if none.
func rawAfter(rest, raw string) string {
	if raw != "" {
		if strings.HasPrefix(rest, "</"+raw) {
			return ""
		}
		return raw
	}
	for _, name := range []string{"title", "textarea", "option", "script", "style"} {
		if strings.HasPrefix(rest, "<"+name) && len(rest) > len(name)+1 && strings.ContainsRune(" >\n\t", rune(rest[len(name)+1])) {
			return name
		}
	}
	return ""
}
