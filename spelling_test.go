package pawl_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

func TestSlipsCountsWhatAPersonMistypes(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     int
	}{
		{"", "", 0}, {"jobs", "jobs", 0}, {"", "jobs", 4},
		{"job", "jobs", 1}, {"jobss", "jobs", 1}, {"jabs", "jobs", 1},
		{"ojbs", "jobs", 1}, // swapped
		{"zürich", "zurich", 1}, {"workfows", "workflows", 1}, {"abc", "xyz", 3},
	} {
		if got := pawl.EditDistance(test.from, test.to); got != test.want || pawl.EditDistance(test.to, test.from) != test.want {
			t.Errorf("from %q to %q: %d, not %d", test.from, test.to, got, test.want)
		}
	}
}

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
		if got := pawl.Suggest(written, known, "other"); got != text {
			t.Errorf("Suggest(%q) = %q, want %q", written, got, text)
		}
	}
}

func TestQuoteIsShortAndPrintable(t *testing.T) {
	if got := pawl.Quote("a\x00\u202e\n"); got != `"a\x00\u202e\n"` {
		t.Error(got)
	}
	if got := pawl.Quote(strings.Repeat("é", 100)); len(got) > 90 || !strings.HasSuffix(got, `é"...`) {
		t.Error(got)
	}
	if got := pawl.Quote("x" + strings.Repeat("é", 100)); !strings.HasSuffix(got, `é"...`) {
		t.Errorf("a character was cut: %s", got)
	}
}
