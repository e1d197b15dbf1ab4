package repair

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// escape is a character of a name or a string, written by its number.
var escape = regexp.MustCompile(`\\u\{0*([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})`)

// wordsOf splits a script into names (and numbers) and single other
// characters, without white space. ?. becomes a plain dot. Comments and
// strings are split like everything else.
func wordsOf(script string) []string {
	var words []string
	var name strings.Builder
	end := func() {
		if name.Len() > 0 {
			words = append(words, name.String())
			name.Reset()
		}
	}
	for _, r := range strings.ReplaceAll(unescaped(script), "?.", ".") {
		switch {
		case isNameRune(r):
			name.WriteRune(r)
		case unicode.IsSpace(r) || r == '\ufeff':
			end()
		default:
			end()
			words = append(words, string(r))
		}
	}
	end()
	return words
}

// unescaped writes escapes of letters, digits, _ and $ as what they mean: the
// name t\u006fols is tools.
func unescaped(script string) string {
	return escape.ReplaceAllStringFunc(script, func(s string) string {
		groups := escape.FindStringSubmatch(s)
		code, err := strconv.ParseUint(groups[1]+groups[2]+groups[3], 16, 31)
		if err == nil && isNameRune(rune(code)) {
			return string(rune(code))
		}
		return s
	})
}

func isNameRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isName reports whether a word is a name rather than punctuation or a number.
func isName(word string) bool {
	for _, r := range word {
		return isNameRune(r) && !unicode.IsDigit(r)
	}
	return false
}

func isQuote(word string) bool { return word == `"` || word == "'" || word == "`" }
