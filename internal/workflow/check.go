package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
)

const (
	maxHandlers = 100
	maxTopics   = 100
	maxLabels   = 100

	// mostFaults is how many are told. Up to mostCollected are looked at, so
	// that those are the first ones of the source.
	mostFaults    = 20
	mostCollected = 500
)

// Check turns what a script declares into a Config, or says everything that is
// wrong with it: each fault with its place in the source and the name of the
// handler that it is about. file is the name in messages.
//
// The error is a *pawl.Error with script.Diagnostics, as that of a source that
// does not compile.
func Check(file, source string, d script.Description) (Config, error) {
	c := &checker{description: d}
	config := c.check()
	if len(c.faults) > 0 {
		return Config{}, c.report(file, source)
	}
	return config, nil
}

// checker collects the faults of one description.
type checker struct {
	description script.Description
	topics      map[string]bool // declared; nil when they could not be read
	unsure      bool            // not all subscriptions could be read
	faults      []fault
}

// fault is one thing that is wrong. The path leads to it from the default
// export; what is missing has the path of where it belongs.
type fault struct {
	path          []string
	message, hint string
	offset        int // in the source, in bytes
}

func (c *checker) fault(path []string, hint, format string, args ...any) {
	if len(c.faults) < mostCollected {
		c.faults = append(c.faults, fault{path: path, hint: hint, message: fmt.Sprintf(format, args...)})
	}
}

const exampleHint = `write export default workflow({ name: "my-workflow", topics: { "mail.received": {} }, producers: { ... }, consumers: { ... } })`

func (c *checker) check() Config {
	root, ok := value{raw: c.description.Config}.object()
	switch kind := c.description.Kind; {
	case kind == "undefined":
		c.fault(nil, exampleHint, "the script has no default export")
		return Config{}
	case kind != "object":
		c.fault(nil, exampleHint, "the default export must be an object, not %s", exportKind(kind))
		return Config{}
	case !ok:
		c.fault(nil, "remove toJSON from the default export", "the default export hides what it is from JSON")
		return Config{}
	}
	for _, path := range c.description.Functions {
		if !strings.HasPrefix(path, "producers.") && !strings.HasPrefix(path, "consumers.") {
			root.set(path, value{function: true})
		}
	}
	c.fields(nil, "", root, "name", "description", "topics", "producers", "consumers", "labels", "keep", "expect", "needs")
	config := Config{Name: c.workflowName(root), Labels: c.labels(root), Topics: c.declaredTopics(root), Keep: c.keep(root), Needs: c.needs(root)}
	producers, readable := c.handlers(root, "producers")
	consumers, alsoReadable := c.handlers(root, "consumers")
	if n := len(producers) + len(consumers); n > maxHandlers {
		c.fault(nil, "split the workflow", "the workflow has %d producers and consumers; at most %d are allowed", n, maxHandlers)
		return config
	} else if n == 0 && readable && alsoReadable {
		c.fault(nil, "add a producer with a schedule, or a consumer of a topic", "the workflow has neither a producer nor a consumer")
	}
	for _, h := range producers {
		config.Producers = append(config.Producers, c.producer(h))
	}
	for _, h := range consumers {
		config.Consumers = append(config.Consumers, c.consumer(h))
	}
	config.Expect = c.expect(root, config)
	c.checkAcrossHandlers(config)
	return config
}

// exportKind names what JavaScript calls the type of the default export.
func exportKind(kind string) string {
	switch kind {
	case "null":
		return "null"
	case "array":
		return "an array"
	}
	return "a " + cutText(kind, mostQuoted)
}

// checkAcrossHandlers checks what no handler can get wrong alone.
func (c *checker) checkAcrossHandlers(config Config) {
	for _, k := range config.Consumers {
		if _, taken := config.Producer(k.Name); taken {
			h := declaredHandler{"consumers", k.Name, object{}}
			c.fault(h.at(), "give one of them another name", "%sa producer has the same name", h.who())
		}
	}
	c.checkPartitions(config)
	if c.topics == nil || c.unsure {
		return // one mistake in a consumer would be told of every producer too
	}
	for _, p := range config.Producers {
		c.subscribed(declaredHandler{"producers", p.Name, object{}}, p.Publishes, config)
	}
}

// subscribed refuses topics that a producer publishes for nobody: nothing would
// ever come of its inputs. What a consumer tells after its work may be for
// nobody yet, as the last step of a workflow is.
func (c *checker) subscribed(h declaredHandler, publishes []string, config Config) {
	for i, topic := range publishes {
		if c.topics[topic] && len(config.Subscribers(topic)) == 0 {
			c.fault(h.at("publishes", strconv.Itoa(i)), "subscribe a consumer to it, or do not publish it",
				"%sit publishes to topic %s, to which no consumer subscribes", h.who(), quoted(topic))
		}
	}
}

// fields refuses fields that an object must not have. who begins the messages:
// the handler and a colon, if the object belongs to one.
func (c *checker) fields(path []string, who string, o object, known ...string) {
	for _, name := range o.unknown(known) {
		if len(c.faults) >= mostCollected {
			return // a script can have very many
		}
		c.fault(below(path, name), unknownField(name, known), "%sunknown field %s", who, quoted(name))
	}
	if d := o.get("description"); o.has("description") && slices.Contains(known, "description") {
		if _, ok := d.text(); !ok {
			c.fault(below(path, "description"), "", "%sdescription must be a string, not %s", who, d.kind())
		}
	}
}

// below is the path of something inside of what another path leads to.
func below(path []string, names ...string) []string {
	return append(slices.Clone(path), names...)
}

// report makes the error of the faults: those that come first in the source,
// in its order.
func (c *checker) report(file, source string) error {
	places := newLocator(source)
	for i := range c.faults {
		c.faults[i].offset = places.offset(c.faults[i].path)
	}
	slices.SortStableFunc(c.faults, func(a, b fault) int { return cmp.Compare(a.offset, b.offset) })
	e := &pawl.Error{Code: pawl.CodeInvalid, Op: "check " + file, Msg: "the script has errors"}
	var list script.Diagnostics
	for _, f := range c.faults[:min(len(c.faults), mostFaults)] {
		d := script.Diagnostic{Message: f.message, Hint: f.hint}
		d.File = file
		d.Line, d.Column, d.Text = places.place(f.offset)
		list = append(list, d)
		e.Fields = append(e.Fields, pawl.Field{Pointer: "/script", Message: d.String()})
	}
	e.Hint, e.Err = list[0].Hint, list
	return e
}
