package mail

import (
	"bytes"
	"encoding/base64"
	netmail "net/mail"
	"strings"
	"unicode/utf8"
)

const (
	// lineLength is where lines of the head are folded, in bytes.
	lineLength = 76
	// longestWord is what fits on a line of mail, which may have 998 bytes,
	// when it cannot be folded.
	longestWord = 900
	// wordBytes is how much text fits into one encoded word of 75 bytes.
	wordBytes = 45
)

// writeHeader writes one header, folded at spaces.
func writeHeader(out *bytes.Buffer, name, value string) {
	out.WriteString(name + ":")
	length := len(name) + 1
	for i, word := range strings.Fields(value) {
		if i > 0 && length+1+len(word) > lineLength {
			out.WriteString("\r\n")
			length = 0
		}
		out.WriteString(" " + word)
		length += 1 + len(word)
	}
	out.WriteString("\r\n")
}

func writeAddresses(out *bytes.Buffer, name string, addresses []netmail.Address) {
	if len(addresses) == 0 {
		return
	}
	texts := make([]string, len(addresses))
	for i, address := range addresses {
		texts[i] = address.String()
	}
	writeHeader(out, name, strings.Join(texts, ", "))
}

// encodeWords writes a text of a header. What is not plain ASCII, or would be
// taken for something encoded, is encoded (RFC 2047).
func encodeWords(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	plain := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) && !strings.Contains(text, "=?")
	for word := range strings.FieldsSeq(text) {
		plain = plain && len(word) <= longestWord
	}
	if plain {
		return text
	}
	var words []string
	for text != "" {
		end := min(len(text), wordBytes)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(text[:end]))+"?=")
		text = text[end:]
	}
	return strings.Join(words, " ")
}
