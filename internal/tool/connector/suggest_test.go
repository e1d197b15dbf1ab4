package connector

import (
	"strings"
	"testing"
)

func TestSuggestFindsTheNearestName(t *testing.T) {
	known := []string{"append", "list", "read", "write"}
	for written, want := range map[string]string{
		"apend": "append", "appned": "append", "Write": "write", "wrtie": "write", "raed": "read", "lists": "list",
		"delete": "", "": "", "x": "", "re": "", strings.Repeat("append", 20): "",
	} {
		text := "other"
		if want != "" {
			text = "Did you mean " + want + "?"
		}
		if got := Suggest(written, known, "other"); got != text {
			t.Errorf("Suggest(%q) = %q, want %q", written, got, text)
		}
	}
}

func TestQuoteIsShortAndPrintable(t *testing.T) {
	if got := Quote("a\x00\u202e\n"); got != `"a\x00\u202e\n"` {
		t.Error(got)
	}
	if got := Quote(strings.Repeat("é", 100)); len(got) > 90 || !strings.HasSuffix(got, `é"...`) {
		t.Error(got)
	}
	if got := Quote("x" + strings.Repeat("é", 100)); !strings.HasSuffix(got, `é"...`) {
		t.Errorf("a character was cut: %s", got)
	}
}
