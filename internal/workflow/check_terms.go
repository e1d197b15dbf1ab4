package workflow

import (
	"encoding/json"
	"fmt"
	"strconv"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
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

// needs reads the sources that must be fresh before something starts.
func (c *checker) needs(root object) (list []client.Need) {
	const hint = `write needs: [{ source: "prices", maxAge: "1h", wait: "30m" }]`
	if !root.has("needs") {
		return nil
	}
	values, ok := root.get("needs").list()
	if !ok {
		c.fault([]string{"needs"}, hint, "needs must be a list, not %s", root.get("needs").kind())
		return nil
	}
	before := len(c.faults)
	for i, v := range values {
		at := []string{"needs", strconv.Itoa(i)}
		o, ok := v.object()
		if !ok {
			c.fault(at, hint, "needs has %s, not an object", v.kind())
			continue
		}
		c.fields(at, "needs: ", o, "source", "maxAge", "wait")
		var n client.Need
		for name, into := range map[string]*string{"source": &n.Source, "maxAge": &n.MaxAge, "wait": &n.Wait} {
			if *into, ok = o.get(name).text(); !ok && o.has(name) {
				c.fault(below(at, name), hint, "needs: %s must be a string, not %s", name, o.get(name).kind())
			}
		}
		list = append(list, n)
	}
	if len(c.faults) > before {
		return nil
	}
	terms.CheckNeeds(list, c.term)
	return list
}

// expect reads what is expected of the workflow, whose producers are known.
func (c *checker) expect(root object, config Config) *client.Expect {
	const hint = `write expect: { freshWithin: "2h", doneBy: "07:00", onTime: 99.5 }`
	if !root.has("expect") {
		return nil
	}
	o, ok := root.get("expect").object()
	if !ok {
		c.fault([]string{"expect"}, hint, "expect must be an object, not %s", root.get("expect").kind())
		return nil
	}
	before := len(c.faults)
	c.fields([]string{"expect"}, "expect: ", o, terms.FreshWithin, terms.DoneBy, terms.Rows, terms.OnTime)
	var e client.Expect
	for name, into := range map[string]any{terms.FreshWithin: &e.FreshWithin, terms.DoneBy: &e.DoneBy, terms.Rows: &e.Rows, terms.OnTime: &e.OnTime} {
		if v := o.get(name); o.has(name) && json.Unmarshal(v.raw, into) != nil {
			c.fault([]string{"expect", name}, hint, "expect: %s cannot be %s", name, v.kind())
		}
	}
	if len(c.faults) > before || e.Empty() {
		return nil
	}
	terms.CheckExpect(&e, aboutOf(config), c.term)
	return &e
}

// aboutOf is what of a workflow decides whether it makes sense to expect something.
func aboutOf(config Config) terms.About {
	a := terms.About{Kind: pawl.KindWorkflow, Scheduled: len(config.Producers) > 0}
	for _, p := range config.Producers {
		s, err := p.Schedule.Spec()
		if err != nil { // which is told already
			continue
		}
		if s.Interval() == 0 {
			a.Every = 0
			break
		}
		a.Every = max(a.Every, s.Interval())
	}
	return a
}

// term tells a fault of the terms.
func (c *checker) term(path []any, message, hint string) {
	steps := make([]string, len(path))
	for i, step := range path {
		steps[i] = fmt.Sprint(step)
	}
	c.fault(steps, hint, "%s: %s", steps[0], message)
}
