package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDiffLooksLikeThatOfDiffU(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n"
	after := "a\nb\nX\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm"
	want := `--- old
+++ new
@@ -1,6 +1,6 @@
 a
 b
-c
+X
 d
 e
 f
@@ -10,3 +10,4 @@
 j
 k
 l
+m
\ No newline at end of file
`
	if diff := cmp.Diff(want, unifiedDiff("old", "new", before, after)); diff != "" {
		t.Error(diff)
	}
}

func TestDiffOfTheSameTextIsEmpty(t *testing.T) {
	for _, text := range []string{"", "a", "a\nb\n"} {
		if got := unifiedDiff("old", "new", text, text); got != "" {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestDiffNamesTheLineBeforeAnEmptyHunk(t *testing.T) {
	if got := unifiedDiff("old", "new", "", "a\n"); !strings.Contains(got, "@@ -0,0 +1,1 @@\n+a\n") {
		t.Error(got)
	}
	if got := unifiedDiff("old", "new", "a\n", ""); !strings.Contains(got, "@@ -1,1 +0,0 @@\n-a\n") {
		t.Error(got)
	}
}

// Few different lines make texts that share much, where a comparison can go
// wrong most easily.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "-", "+", "@@", " x"}), 0, 40).Draw(t, "lines")
		text := strings.Join(lines, "\n")
		if text != "" && rapid.Bool().Draw(t, "feed") {
			text += "\n"
		}
		return text
	})
}

func TestApplyingTheDiffGivesTheNewText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := texts().Draw(t, "before"), texts().Draw(t, "after")
		diff := unifiedDiff("old", "new", before, after)
		got, err := patch(before, diff)
		if err != nil || got != after {
			t.Fatalf("%v: from %q to %q, got %q by\n%s", err, before, after, got, diff)
		}
	})
}

func TestTextsThatShareNothingAreReplaced(t *testing.T) {
	var before, after strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&before, "old %d\n", i)
		fmt.Fprintf(&after, "new %d\n", i)
	}
	got, err := patch(before.String(), unifiedDiff("old", "new", before.String(), after.String()))
	if err != nil || got != after.String() {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}

// patch applies a unified diff, checking everything that it says about the old
// text.
func patch(before, diff string) (string, error) {
	old := slices.Collect(strings.Lines(before))
	lines := slices.Collect(strings.Lines(diff))
	if len(lines) == 0 {
		return before, nil
	}
	var out strings.Builder
	at := 0
	for i := 2; i < len(lines); {
		var start, count, newStart, newCount int
		if _, err := fmt.Sscanf(lines[i], "@@ -%d,%d +%d,%d @@", &start, &count, &newStart, &newCount); err != nil {
			return "", fmt.Errorf("line %d: %w", i, err)
		}
		if count > 0 {
			start--
		}
		for ; at < start; at++ {
			out.WriteString(old[at])
		}
		for i++; count > 0 || newCount > 0; i++ {
			op, line := lines[i][0], lines[i][1:]
			if i+1 < len(lines) && strings.HasPrefix(lines[i+1], `\ No newline`) {
				line = strings.TrimSuffix(line, "\n")
			}
			if op != '+' {
				if at >= len(old) || old[at] != line {
					return "", fmt.Errorf("line %d is not that of the old text", i)
				}
				at++
				count--
			}
			if op != '-' {
				out.WriteString(line)
				newCount--
			}
			if !strings.HasSuffix(line, "\n") {
				i++
			}
		}
	}
	for ; at < len(old); at++ {
		out.WriteString(old[at])
	}
	return out.String(), nil
}
