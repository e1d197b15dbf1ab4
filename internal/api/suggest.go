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
	if near := pawl.Nearest(written, choices); near != "" {
		return fmt.Sprintf("Did you mean %q? %s", near, all)
	}
	return all
}
