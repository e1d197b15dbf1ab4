package linediff

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Few different lines make texts that share much, where a comparison can go
// wrong most easily.
func texts() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "-", "+", " x"}), 0, 40)
}

// sides are the texts that a comparison says it is of.
func sides(edits []Edit) (before, after []string, changed int) {
	for _, e := range edits {
		if e.Op != '+' {
			before = append(before, e.Line)
		}
		if e.Op != '-' {
			after = append(after, e.Line)
		}
		if e.Op != ' ' {
			changed++
		}
	}
	return before, after, changed
}

func TestApplyingTheEditsGivesTheNewText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := texts().Draw(t, "before"), texts().Draw(t, "after")
		edits := Lines(before, after)
		if from, to, _ := sides(edits); !slices.Equal(from, before) || !slices.Equal(to, after) {
			t.Fatalf("%q leads from %q to %q", edits, from, to)
		}
	})
}

func TestEqualTextsHaveNoEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		if _, _, changed := sides(Lines(text, slices.Clone(text))); changed != 0 {
			t.Fatalf("%d edits", changed)
		}
	})
	if edits := Lines(nil, nil); len(edits) != 0 {
		t.Errorf("two empty texts have the edits %q", edits)
	}
}

func TestThereAreNoMoreEditsThanNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := texts().Draw(t, "before"), texts().Draw(t, "after")
		_, _, changed := sides(Lines(before, after))
		if want := len(before) + len(after) - 2*commonLines(before, after); changed != want {
			t.Fatalf("%d edits, want %d", changed, want)
		}
	})
}

// Whatever is compared, the memory it takes grows with the length of the texts
// and not with its square.
func TestHostileTextsAreComparedAtABoundedCost(t *testing.T) {
	const n = 50_000
	numbered := func(prefix string) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprint(prefix, i))
		}
		return lines
	}
	repeated := func(pattern string) []string { return strings.Split(strings.Repeat(pattern, n/len(pattern)), "") }
	for name, pair := range map[string][2][]string{
		"nothing shared":     {numbered("old "), numbered("new ")},
		"everything shifted": {numbered("x"), append(numbered("y"), numbered("x")...)},
		"long runs":          {repeated("aab"), repeated("aba")},
		"reversed":           {numbered("x"), func() []string { r := numbered("x"); slices.Reverse(r); return r }()},
		"one long one short": {repeated("ab"), {"b"}},
	} {
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		edits := Lines(pair[0], pair[1])
		runtime.ReadMemStats(&end)
		if from, to, _ := sides(edits); !slices.Equal(from, pair[0]) || !slices.Equal(to, pair[1]) {
			t.Errorf("%s: the edits do not lead from one text to the other", name)
		}
		if used := end.TotalAlloc - start.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: it took %d MiB", name, used>>20)
		}
	}
}

// commonLines is the length of the longest common subsequence, by the table
// that every textbook has.
func commonLines(a, b []string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}
	return table[len(a)][len(b)]
}
