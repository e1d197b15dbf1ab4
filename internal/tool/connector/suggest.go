package connector

import (
	"strconv"
	"strings"

	"github.com/pawlrun/pawl"
)

// Suggest asks whether the known name nearest to what was written was meant;
// if none is near, it returns the other text.
func Suggest(written string, known []string, other string) string {
	const furthest = 64 // bytes; nobody mistypes a name into something longer
	if len(written) > furthest {
		return other
	}
	best, least := "", 2+len(written)/4
	for _, name := range known {
		if d := pawl.Slips(strings.ToLower(written), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return other
	}
	return "Did you mean " + best + "?"
}

// Quote shows what somebody wrote: quoted, without control characters, and
// not endless.
func Quote(written string) string {
	const longest = 80 // bytes
	if len(written) > longest {
		return strconv.Quote(strings.ToValidUTF8(written[:longest], "")) + "..."
	}
	return strconv.Quote(written)
}
