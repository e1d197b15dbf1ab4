package workflow

import (
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// didYouMean is a hint that proposes the known name nearest to what was
// written, or "" when none is near.
func didYouMean(written string, known []string) string {
	best := pawl.Nearest(written, known)
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
