package connector

import "github.com/pawlrun/pawl/internal/definition"

// Suggest asks whether the known name nearest to what was written was meant;
// if none is near, it returns the other text.
func Suggest(written string, known []string, other string) string {
	return definition.Suggest(written, known, other)
}

// Quote shows what somebody wrote: quoted, without control characters, and
// not endless.
func Quote(written string) string { return definition.Quote(written) }
