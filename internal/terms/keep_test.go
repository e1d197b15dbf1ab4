package terms

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One meaning has one form, whatever way it was written in.
func TestAgesHaveOneForm(t *testing.T) {
	for _, c := range []struct {
		keep        map[string]string
		text, words string
	}{
		{nil, "", ""},
		{map[string]string{}, "", ""},
		{map[string]string{"reads": "24h", "runs": "1w"}, "runs=7d,reads=1d", "runs 7d, reads 1d"},
		{map[string]string{"slots": "forever"}, "slots=forever", "slots forever"},
	} {
		if got := KeepText(c.keep); got != c.text {
			t.Errorf("%v is %q, want %q", c.keep, got, c.text)
		}
		if got := KeepWords(c.keep); got != c.words {
			t.Errorf("%v is %q, want %q", c.keep, got, c.words)
		}
	}
	if diff := cmp.Diff(map[string]string{"runs": "7d", "reads": "1d"}, ParseKeep("runs=7d,reads=1d")); diff != "" || ParseKeep("") != nil {
		t.Error(diff)
	}
}
