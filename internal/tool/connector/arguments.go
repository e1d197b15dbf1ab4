package connector

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
)

// DecodeArguments reads the arguments of a call into a struct whose fields
// all have a json tag. Absent arguments are an empty object. It refuses more
// than limit bytes, what is not an object, names that no field has in exactly
// this spelling, and values of another type. Its errors are *Error.
func DecodeArguments(raw json.RawMessage, limit int, into any) error {
	if len(raw) > limit {
		return BadArguments("Split it into several calls.", "the arguments have %d bytes, more than the %d allowed", len(raw), limit)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	known := argumentNames(into)
	hint := "The arguments are " + strings.Join(known, ", ") + "."
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return BadArguments(hint, "the arguments are not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return BadArguments(pawl.Suggest(name, known, hint), "unknown argument %s", pawl.Quote(name))
		}
	}
	err := json.Unmarshal(raw, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return BadArguments(hint, "%s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return BadArguments(hint, "the arguments cannot be read")
	}
	return nil
}

// argumentNames are the names in the json tags of a pointer to a struct.
func argumentNames(into any) []string {
	var names []string
	for field := range reflect.TypeOf(into).Elem().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
