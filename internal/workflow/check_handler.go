package workflow

import "strings"

// declaredHandler is a producer or a consumer as the script declares it.
type declaredHandler struct {
	group  string // "producers" or "consumers"
	name   string
	fields object // functions included
}

// who begins the messages about a handler.
func (h declaredHandler) who() string {
	return strings.TrimSuffix(h.group, "s") + " " + quoted(h.name) + ": "
}

// at is the path of the handler, or of something inside of it.
func (h declaredHandler) at(names ...string) []string {
	return below([]string{h.group, h.name}, names...)
}

// handlers reads one of the two groups. It reports false for a group that is
// no object.
func (c *checker) handlers(root object, group string) ([]declaredHandler, bool) {
	if !root.has(group) {
		return nil, true
	}
	named, ok := root.get(group).object()
	if !ok {
		c.fault([]string{group}, "write "+group+": { name: { ... } }", "%s must be an object, not %s", group, root.get(group).kind())
		c.unsure = c.unsure || group == "consumers"
		return nil, false
	}
	if len(named.names) > maxHandlers {
		return make([]declaredHandler, len(named.names)), true // too many, whatever they are
	}
	functions := c.functions(group, &named)
	var list []declaredHandler
	for _, name := range named.names {
		h := declaredHandler{group: group, name: name}
		if problem := nameProblem(name); problem != "" {
			c.fault(h.at(), nameHint, "%sits name %s", h.who(), problem)
		}
		list = append(list, h)
		if h.fields, ok = named.get(name).object(); !ok {
			c.fault(h.at(), "", "%sit must be an object, not %s", h.who(), named.get(name).kind())
			c.unsure = c.unsure || group == "consumers"
			continue
		}
		for _, field := range functions[name] {
			h.fields.set(field, value{function: true})
		}
		list[len(list)-1] = h
	}
	return list, true
}

// functions returns the fields of each handler of a group that are functions.
// A handler that is a function itself is added to the group.
func (c *checker) functions(group string, named *object) map[string][]string {
	fields := map[string][]string{}
	names := named.names
	for _, path := range c.description.Functions {
		rest, ok := strings.CutPrefix(path, group+".")
		if !ok {
			continue
		}
		if name, found := ownerOf(rest, names); found {
			fields[name] = append(fields[name], rest[len(name)+1:])
		} else {
			named.set(rest, value{function: true})
		}
	}
	return fields
}

// ownerOf finds the handler in NAME.FIELD. Both may have dots: the longest
// name is taken, as the script's host does.
func ownerOf(path string, names []string) (owner string, found bool) {
	for _, name := range names {
		if len(path) > len(name) && path[len(name)] == '.' && path[:len(name)] == name && (!found || len(name) > len(owner)) {
			owner, found = name, true
		}
	}
	return owner, found
}

// producer checks one producer.
func (c *checker) producer(h declaredHandler) Producer {
	p := Producer{Name: h.name}
	if h.fields.fields == nil {
		return p // it is no object, which has been told
	}
	c.fields(h.at(), h.who(), h.fields, "publishes", "schedule", "handler", "description")
	c.function(h, "handler", true)
	p.Publishes = c.topicList(h, "publishes", true)
	p.Schedule = c.schedule(h)
	return p
}

// consumer checks one consumer.
func (c *checker) consumer(h declaredHandler) Consumer {
	k := Consumer{Name: h.name}
	if h.fields.fields == nil {
		return k // it is no object, which has been told
	}
	c.fields(h.at(), h.who(), h.fields, "subscribe", "publishes", "partition", "partitionLimit", "prepare", "mutate", "next", "description")
	k.Subscribe = c.topicList(h, "subscribe", true)
	k.Publishes = c.topicList(h, "publishes", false)
	c.partition(h, &k)
	c.function(h, "prepare", true)
	k.HasMutate = c.function(h, "mutate", false)
	k.HasNext = c.function(h, "next", false)
	if len(k.Publishes) > 0 && !h.fields.has("next") {
		c.fault(h.at("publishes"), "add next, which is what publishes, or remove publishes", "%sit has publishes but no next", h.who())
	}
	return k
}

// function checks a field that must be a function, and reports whether it is.
func (c *checker) function(h declaredHandler, field string, required bool) bool {
	v := h.fields.get(field)
	switch {
	case v.function:
		return true
	case h.fields.has(field):
		c.fault(h.at(field), "", "%s%s must be a function, not %s", h.who(), field, v.kind())
	case required:
		c.fault(h.at(), "add async "+field+"(ctx, state) { ... }", "%s%s is missing", h.who(), field)
	}
	return false
}
