package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
		if d := distance(strings.ToLower(written), strings.ToLower(choice), slips); d < best && d < len(choice) {
			best, found = d, choice
		}
	}
	return found
}

// distance counts the letters to change, add or remove between two words; it
// gives up beyond most.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
