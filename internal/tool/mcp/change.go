package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
)

// describeChange tells people, in short, how a tool differs from what was
// pinned.
func describeChange(old, now definition) string {
	var parts []string
	if old.Description != now.Description {
		parts = append(parts, "the description was "+excerpt(old.Description, now.Description)+" and is "+excerpt(now.Description, old.Description))
	}
	if !bytes.Equal(compact(old.InputSchema), compact(now.InputSchema)) {
		parts = append(parts, "the input schema changed: "+schemaChange(old.InputSchema, now.InputSchema))
	}
	parts = append(parts, hintChanges(old.Annotations, now.Annotations)...)
	if len(parts) == 0 { // the record of the pin was edited
		return "it does not match its pin"
	}
	return strings.Join(parts, "; ")
}

// excerpt is the part of a text in which it differs from the other one.
func excerpt(text, other string) string {
	const before, longest = 20, 100 // runes
	runes, others := []rune(text), []rune(other)
	same := 0
	for same < min(len(runes), len(others)) && runes[same] == others[same] {
		same++
	}
	start := max(0, same-before)
	end := min(len(runes), start+longest)
	shown := string(runes[start:end])
	if start > 0 {
		shown = "..." + shown
	}
	if end < len(runes) {
		shown += "..."
	}
	return fmt.Sprintf("%q", shown)
}

func hintChanges(old, now annotations) (parts []string) {
	for _, hint := range []struct {
		name     string
		old, now any
	}{
		{"readOnlyHint", old.ReadOnly, now.ReadOnly},
		{"destructiveHint", old.Destructive, now.Destructive},
		{"idempotentHint", old.Idempotent, now.Idempotent},
		{"openWorldHint", old.OpenWorld, now.OpenWorld},
	} {
		if hint.old != hint.now {
			parts = append(parts, fmt.Sprintf("%s was %v and is %v", hint.name, hint.old, hint.now))
		}
	}
	if old.Title != now.Title {
		parts = append(parts, "the title was "+excerpt(old.Title, now.Title)+" and is "+excerpt(now.Title, old.Title))
	}
	return parts
}

// schemaChange names the arguments that were added, removed and changed.
func schemaChange(old, now json.RawMessage) string {
	type schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	var was, is schema
	if json.Unmarshal(old, &was) != nil || json.Unmarshal(now, &is) != nil {
		return "it has another form"
	}
	var added, removed, changed []string
	for _, name := range slices.Sorted(maps.Keys(is.Properties)) {
		before, known := was.Properties[name]
		switch {
		case !known:
			added = append(added, name)
		case !bytes.Equal(compact(before), compact(is.Properties[name])) || slices.Contains(was.Required, name) != slices.Contains(is.Required, name):
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		if _, still := is.Properties[name]; !still {
			removed = append(removed, name)
		}
	}
	var parts []string
	for _, list := range []struct {
		what  string
		names []string
	}{{"added", added}, {"removed", removed}, {"changed", changed}} {
		if len(list.names) > 0 {
			parts = append(parts, list.what+" "+someNames(list.names))
		}
	}
	if len(parts) == 0 {
		return "not in the arguments themselves"
	}
	return strings.Join(parts, ", ")
}

func someNames(names []string) string {
	const most = 5
	var shown []string
	for _, name := range names[:min(most, len(names))] {
		shown = append(shown, pawl.Quote(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// compact is JSON without spaces; what is not JSON stays as it is.
func compact(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}
