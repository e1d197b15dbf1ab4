package outbound

import (
	"strings"
	"unicode"
)

// longestHeaderName is in bytes.
const longestHeaderName = 256

// IsHeaderName reports whether a header can have the name: the token of RFC
// 9110, section 5.6.2.
func IsHeaderName(name string) bool {
	return name != "" && len(name) <= longestHeaderName && !strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// IsHeaderValue reports whether a header can have the value: nothing in it ends
// the line or is another control character.
func IsHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
}
