package mail

import (
	"strings"
	"testing"
)

// FuzzParseAddress: no address that is accepted can end a line of the dialogue with a
// server, or be more than one.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"a@b.example", "Ada <ada@b.example>", "a@b.example\r\nDATA", "<a@b>, <c@d>", "\"a b\"@c", "a@[127.0.0.1]", "=?utf-8?q?a=0D=0A?= <a@b.example>", "a@b\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, fault := ParseAddress(text)
		if fault == "" && (strings.ContainsAny(a.Address, " \r\n<>,\x00") || strings.Count(a.Address, "@") != 1 || strings.ContainsAny(a.Name, "\r\n\x00")) {
			t.Fatalf("%q is %q <%q>", text, a.Name, a.Address)
		}
	})
}
