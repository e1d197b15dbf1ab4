package cli

import (
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// didYouMean is a question that proposes the known name nearest to what was
// written, or "" when none is near.
func didYouMean(written string, known []string) string {
	best, distance := "", 1+len([]rune(written))/3
	written = strings.ToLower(written)
	for _, name := range known {
		if d := pawl.EditDistance(written, strings.ToLower(name)); d <= distance && (best == "" || d < distance) {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "Did you mean " + best + "?"
}
