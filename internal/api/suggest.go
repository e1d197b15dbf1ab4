package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// choicesHint names the choices there are, and the one that was probably meant.
func choicesHint(written, what string, choices []string) string {
	all := "There are no " + what + "."
	if len(choices) > 0 {
		all = fmt.Sprintf("The %s are %s.", what, strings.Join(choices, ", "))
	}
	if near := nearest(written, choices); near != "" {
		return fmt.Sprintf("Did you mean %q? %s", near, all)
	}
	return all
}

// nearest is the choice that is at most two slips away from what was written,
// or empty.
func nearest(written string, choices []string) string {
	const slips = 2
	best, found := slips+1, ""
	for _, choice := range choices {
		if len(written) > len(choice)+slips { // nobody mistypes that
			continue
		}
		if d := pawl.EditDistance(strings.ToLower(written), strings.ToLower(choice)); d < best && d < len(choice) {
			best, found = d, choice
		}
	}
	return found
}
