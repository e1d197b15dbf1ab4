package script

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// wellFormed makes valid JSON safe to store and to pass on: it is valid UTF-8,
// and no escape stands for half of a surrogate pair, which JavaScript strings
// can hold and databases refuse. What is wrong becomes U+FFFD.
func wellFormed(text []byte) []byte {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		escape := escapeAt(text[i:])
		unit := codeUnit(escape)
		switch {
		case unit < 0xD800 || unit > 0xDFFF:
			out = append(out, escape...)
		case unit < 0xDC00 && isLowSurrogate(text[i+len(escape):]):
			pair := text[i : i+2*len(escape)]
			out, escape = append(out, pair...), pair
		default:
			out = append(out, `\ufffd`...)
		}
		i += len(escape)
	}
	return out
}

// escapeAt returns the escape sequence that text begins with.
func escapeAt(text []byte) []byte {
	if len(text) >= 6 && text[1] == 'u' {
		return text[:6]
	}
	return text[:min(2, len(text))]
}

// codeUnit returns the code unit of a \uXXXX escape, and -1 for another.
func codeUnit(escape []byte) int64 {
	if len(escape) != 6 {
		return -1
	}
	unit, err := strconv.ParseInt(string(escape[2:]), 16, 32)
	if err != nil {
		return -1
	}
	return unit
}

func isLowSurrogate(text []byte) bool {
	if len(text) < 6 || text[0] != '\\' {
		return false
	}
	unit := codeUnit(escapeAt(text))
	return unit >= 0xDC00 && unit <= 0xDFFF
}
