package outbound

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesOfHeadersAreTokens(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Key": true, "a": true, "!#$%&'*+-.^_`|~09azAZ": true, strings.Repeat("x", longestHeaderName): true,
		"": false, "a b": false, "a:": false, "a\r\nHost": false, "ä": false, "a\x00": false, "(a)": false, strings.Repeat("x", longestHeaderName+1): false,
	} {
		if got := IsHeaderName(name); got != want {
			t.Errorf("%q is the name of a header: %v", name, got)
		}
	}
}

// What is accepted stays one header on the wire.
func TestAcceptedHeadersAddNoLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, value := rapid.StringN(1, 20, -1).Draw(t, "name"), rapid.String().Draw(t, "value")
		if !IsHeaderName(name) || !IsHeaderValue(value) {
			return
		}
		req := httptest.NewRequest(http.MethodGet, "http://example.com", nil)
		req.Header = http.Header{name: {value}}
		var out strings.Builder
		if err := req.Header.Write(&out); err != nil || strings.Count(out.String(), "\n") != 1 || strings.Count(out.String(), "\r") != 1 {
			t.Fatalf("%q: %q is written as %q, %v", name, value, out.String(), err)
		}
	})
	for _, value := range []string{"a\nb", "a\rb", "a\x00", "a\x7f", "a\u0085"} {
		if IsHeaderValue(value) {
			t.Errorf("%q is accepted", value)
		}
	}
}
