package workflow

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// declaredTopics reads the topics, an object or a list, and remembers them for
// what refers to them.
func (c *checker) declaredTopics(root object) []string {
	const hint = `write topics: { "mail.received": {} }`
	v := root.get("topics")
	options, isObject := v.object()
	elements, isList := v.list()
	switch n := len(options.names) + len(elements); {
	case !root.has("topics"):
		c.fault(nil, hint, "the workflow has no topics")
		return nil
	case !isObject && !isList:
		c.fault([]string{"topics"}, hint, "topics must be an object, not %s", v.kind())
		return nil
	case n > maxTopics:
		c.fault([]string{"topics"}, "", "the workflow has %d topics; at most %d are allowed", n, maxTopics)
		return nil
	}
	names := append(c.topicOptions(options), c.topicNames(elements)...)
	c.topics = map[string]bool{}
	for _, name := range names {
		c.topics[name] = true
	}
	slices.Sort(names)
	return names
}

func (c *checker) topicOptions(o object) []string {
	names := []string{} // never nil, which JSON would write as null
	for _, name := range o.names {
		path := []string{"topics", name}
		who := "topic " + quoted(name) + ": "
		if problem := nameProblem(name); problem != "" {
			c.fault(path, nameHint, "%sits name %s", who, problem)
		}
		options, ok := o.get(name).object()
		if !ok {
			c.fault(path, "write {}", "%sit must be an object, not %s", who, o.get(name).kind())
		}
		c.fields(path, who, options, "description")
		names = append(names, name)
	}
	return names
}

func (c *checker) topicNames(elements []value) []string {
	var names []string
	for i, element := range elements {
		path := []string{"topics", strconv.Itoa(i)}
		name, ok := element.text()
		if !ok {
			c.fault(path, "", "topics[%d] must be a string, not %s", i, element.kind())
			continue
		}
		if problem := nameProblem(name); problem != "" {
			c.fault(path, nameHint, "topic %s: its name %s", quoted(name), problem)
		}
		if slices.Contains(names, name) {
			c.fault(path, "", "topic %s: it is declared twice", quoted(name))
			continue
		}
		names = append(names, name)
	}
	return names
}

// topic checks one element of a list of topics; seen are those before it.
func (c *checker) topic(h declaredHandler, field string, i int, element value, seen []string) string {
	path := h.at(field, strconv.Itoa(i))
	name, ok := element.text()
	switch {
	case !ok:
		c.fault(path, "", "%s%s[%d] must be a string, not %s", h.who(), field, i, element.kind())
	case slices.Contains(seen, name):
		c.fault(path, "", "%s%s names topic %s twice", h.who(), field, quoted(name))
	case c.topics != nil && !c.topics[name]:
		c.fault(path, cmp.Or(didYouMean(name, c.declared()), "add it to topics"),
			"%s%s names topic %s, which is not declared", h.who(), field, quoted(name))
	}
	return name
}

// declared returns the declared topics, sorted.
func (c *checker) declared() []string { return slices.Sorted(maps.Keys(c.topics)) }

// topicList checks a list of declared topics. One that is required must have
// an element.
func (c *checker) topicList(h declaredHandler, field string, required bool) []string {
	before := len(c.faults)
	defer func() { c.unsure = c.unsure || field == "subscribe" && len(c.faults) > before }()
	example := "write " + field + `: ["mail.received"]`
	v := h.fields.get(field)
	elements, ok := v.list()
	switch {
	case !h.fields.has(field) && !required:
		return nil
	case !h.fields.has(field):
		c.fault(h.at(), example, "%s%s is missing", h.who(), field)
	case !ok:
		if one, isText := v.text(); isText {
			example = "write " + field + ": [" + quoted(one) + "]"
		}
		c.fault(h.at(field), example, "%s%s must be a list, not %s", h.who(), field, v.kind())
	case len(elements) == 0 && required:
		c.fault(h.at(field), example, "%s%s is empty", h.who(), field)
	case len(elements) > maxTopics:
		c.fault(h.at(field), "", "%s%s has %d topics; at most %d are allowed", h.who(), field, len(elements), maxTopics)
		return nil
	}
	var topics []string
	for i, element := range elements {
		topics = append(topics, c.topic(h, field, i, element, topics))
	}
	return topics
}
