// Package terms has what the definition of a lane may say about it beside what it
// runs, in the same words for every kind: for how long its things are kept.
package terms

import (
	"errors"
	"maps"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
)

// Fault is told what is wrong with a part of the terms, and what to do about it;
// the path of names and indexes leads there from the definition.
type Fault func(path []any, message, hint string)

// CheckKeep finds what is wrong with the ages that a definition sets for its lane.
func CheckKeep(keep map[string]string, fault Fault) {
	for _, kind := range slices.Sorted(maps.Keys(keep)) {
		if _, err := retention.ParseLane([]string{kind + "=" + keep[kind]}); err != nil {
			e, _ := errors.AsType[*pawl.Error](err) // it returns nothing else
			fault([]any{"keep", kind}, e.Msg, e.Hint)
		}
	}
}

// KeepText is the form in which the ages of a lane are stored: one for each meaning,
// empty if there are none. They must have been checked.
func KeepText(keep map[string]string) string {
	var texts []string
	for kind, age := range keep {
		texts = append(texts, kind+"="+age)
	}
	ages, err := retention.ParseLane(texts)
	if err != nil {
		return ""
	}
	return strings.Join(ages.Texts(), ",")
}

// ParseKeep is what KeepText was given; nil if there is nothing.
func ParseKeep(text string) map[string]string {
	if text == "" {
		return nil
	}
	keep := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		kind, age, _ := strings.Cut(part, "=")
		keep[kind] = age
	}
	return keep
}

// KeepWords is the ages of a lane for people, in the order of the kinds.
func KeepWords(keep map[string]string) string {
	return strings.ReplaceAll(strings.ReplaceAll(KeepText(keep), "=", " "), ",", ", ")
}
