package workflow

import (
	"fmt"

	"github.com/pawlrun/pawl/internal/terms"
)

// keep reads for how long the workflow's own things are kept.
func (c *checker) keep(root object) map[string]string {
	const hint = `write keep: { runs: "7d", reads: "1d" }`
	if !root.has("keep") {
		return nil
	}
	o, ok := root.get("keep").object()
	if !ok {
		c.fault([]string{"keep"}, hint, "keep must be an object, not %s", root.get("keep").kind())
		return nil
	}
	keep := map[string]string{}
	for _, kind := range o.names {
		age, ok := o.get(kind).text()
		if !ok {
			c.fault([]string{"keep", kind}, hint, "keep: %s must be a string, not %s", quoted(kind), o.get(kind).kind())
			continue
		}
		keep[kind] = age
	}
	terms.CheckKeep(keep, c.term)
	if len(keep) == 0 {
		return nil
	}
	return keep
}

// term tells a fault of the terms.
func (c *checker) term(path []any, message, hint string) {
	steps := make([]string, len(path))
	for i, step := range path {
		steps[i] = fmt.Sprint(step)
	}
	c.fault(steps, hint, "%s: %s", steps[0], message)
}
