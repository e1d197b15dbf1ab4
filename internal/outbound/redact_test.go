package outbound

import (
	"net/url"
	"testing"
)

func TestRedactHidesUserinfoAndValues(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com/a/b":                         "https://example.com/a/b",
		"https://user:pass@example.com:8443/a?key=s3&n=1": "https://example.com:8443/a?key=***&n=***",
		"https://example.com/?s3cret":                     "https://example.com/?***",
		"https://example.com/?a=1;token=2":                "https://example.com/?a=***",
		"https://example.com/?a=1&b&=c":                   "https://example.com/?a=***&***&=***",
		"https://example.com/x#token=1":                   "https://example.com/x",
		"https://example.com/a%2Fb?q=%20":                 "https://example.com/a%2Fb?q=***",
		"mailto:someone@example.com":                      "mailto:***",
		"/only/path?k=v":                                  "/only/path?k=***",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		before := *u
		if got := Redact(u); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if *u != before {
			t.Errorf("%s was changed", in)
		}
	}
	if got := Redact(nil); got != "" {
		t.Errorf("nil: got %q", got)
	}
}
