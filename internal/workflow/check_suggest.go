package workflow

import (
	"strings"
)

// didYouMean is a hint that proposes the known name nearest to what was
// written, or "" when none is near.
func didYouMean(written string, known []string) string {
	if len(written) > mostName {
		return ""
	}
	best, distance := "", 1+len(written)/3
	for _, name := range known {
		if d := edits(strings.ToLower(written), strings.ToLower(name)); d <= distance && (best == "" || d < distance) {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + quoted(best) + "?"
}

// unknownField explains a field that an object does not have.
func unknownField(written string, known []string) string {
	if hint := didYouMean(written, known); hint != "" {
		return hint
	}
	return "the fields are " + strings.Join(known, ", ")
}

// edits counts the bytes to add, drop or change, and the neighbours to swap,
// that turn one text into the other.
func edits(a, b string) int {
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
