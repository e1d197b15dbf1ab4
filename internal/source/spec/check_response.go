package spec

import (
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// response checks how rows are read.
func (c checker) response() {
	r := c.d.Response
	if r.DataPath != "" && r.DataPath != "." && c.needsJSON("/response/dataPath") {
		c.path("/response/dataPath", r.DataPath)
	}
	if r.ErrorWhen != nil && c.needsJSON("/response/errorWhen") {
		c.path("/response/errorWhen/path", r.ErrorWhen.Path)
	}
	if r.MaxTotalBytes < 0 || r.MaxTotalBytes > mostBytes {
		c.add("/response/maxTotalBytes", "maxTotalBytes must be from 1 to %d", int64(mostBytes))
	}
	if len(r.Fields) == 0 && !r.Raw {
		c.add("/response/fields", "fields are missing: they say which values of a row go to which columns, such as response: {fields: [{source: id, target: id}]}")
	}
	c.fields(r.Fields)
}

func (c checker) fields(fields []Field) {
	first := map[string]int{} // by target in small letters
	for i, field := range fields {
		pointer := definition.Pointer("response", "fields", i)
		c.rowPath(pointer+"/source", field.Source)
		target := strings.ToLower(field.Target)
		before, twice := first[target]
		if problem := columnProblem(field.Target); problem != "" {
			c.add(pointer+"/target", "%s", problem)
		} else if twice {
			c.add(pointer+"/target", "the target %s is already that of fields[%d]", pawl.Quote(field.Target), before)
		}
		first[target] = i
	}
}

// needsJSON reports whether answers are JSON documents, in which there are
// paths; it notes a fault if they are not.
func (c checker) needsJSON(pointer string) bool {
	if c.d.Response.Format == JSON || c.faults.At("/response/format") {
		return true
	}
	c.add(pointer, "%s needs answers in the format json: %s is nothing but rows", pointer[strings.LastIndexByte(pointer, '/')+1:], c.d.Response.Format)
	return false
}

// rowPath checks where a value is found in a row: a path, or the name of a
// column of CSV, which may be anything.
func (c checker) rowPath(pointer, path string) {
	if c.d.Response.Format != CSV {
		c.path(pointer, path)
		return
	}
	if path == "" || !printable(path) {
		c.add(pointer, "%s is not the name of a column", pawl.Quote(path))
	}
}

// path checks a dotted path.
func (c checker) path(pointer, path string) {
	switch {
	case path == "" || slices.Contains(strings.Split(path, "."), ""):
		c.add(pointer, "%s is not a path: it has names with a dot between them, such as data.items", pawl.Quote(path))
	case strings.HasPrefix(path, "$") || strings.ContainsAny(path, "[]"):
		c.add(pointer, "%s is not a path: write names with a dot between them and places in lists as numbers, such as data.items.0", pawl.Quote(path))
	case strings.ContainsFunc(path, unicode.IsControl):
		c.add(pointer, "%s has control characters", pawl.Quote(path))
	}
}
