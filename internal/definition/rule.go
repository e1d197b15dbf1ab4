package definition

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl"
)

// rule is what the tags of a field say.
type rule struct {
	names              []string // the first is the best
	required, nonempty bool
	scalar, seconds    bool
	oneof              []string
	normal             string // the default
	least, most        string // empty if there is no limit
	pattern, is        string
	doc                string
}

// What tags say and how patterns are compiled is the same for as long as the
// process lives, and each is asked for with every definition that is read.
var (
	rules    sync.Map //nolint:gochecknoglobals // reflect.StructTag: *rule
	patterns sync.Map //nolint:gochecknoglobals // string: *regexp.Regexp
)

// ruleOf reads the tags of a field; not ok for those that are no part of a
// definition.
func ruleOf(field reflect.StructField) (r rule, ok bool) {
	if !field.IsExported() {
		return rule{}, false
	}
	known, ok := rules.Load(field.Tag)
	if !ok {
		known, _ = rules.LoadOrStore(field.Tag, readRule(field.Tag))
	}
	if r := known.(*rule); r != nil {
		return *r, true
	}
	return rule{}, false
}

// compiled is a pattern of a tag.
func compiled(pattern string) *regexp.Regexp {
	known, ok := patterns.Load(pattern)
	if !ok {
		known, _ = patterns.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return known.(*regexp.Regexp)
}

// readRule is nil for a field that is no part of a definition.
func readRule(tag reflect.StructTag) *rule {
	name, _, _ := strings.Cut(tag.Get("json"), ",")
	if name == "" || name == "-" {
		return nil
	}
	r := &rule{names: []string{name}, pattern: tag.Get("pattern"), is: tag.Get("is"), doc: tag.Get("doc")}
	for part := range strings.SplitSeq(tag.Get("definition"), ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "":
		case "required":
			r.required = true
		case "nonempty":
			r.nonempty = true
		case "scalar":
			r.scalar = true
		case "seconds":
			r.seconds = true
		case "oneof":
			r.oneof = strings.Split(value, "|")
		case "also":
			r.names = append(r.names, value)
		case "default":
			r.normal = value
		case "min":
			r.least = value
		case "max":
			r.most = value
		default:
			panic("definition: unknown tag " + part)
		}
	}
	return r
}

// Fill gives its default to every field of a struct that is zero, in what it
// holds as well. A zero that could have been written stays.
func Fill(into any) { fill(reflect.ValueOf(into).Elem(), false) }

// fill descends to the fields that may have defaults; missing says that they
// are known not to be written.
func fill(into reflect.Value, missing bool) {
	switch into.Kind() { //nolint:exhaustive // the others hold no fields
	case reflect.Struct:
		for field, value := range into.Fields() {
			if rule, ok := ruleOf(field); ok {
				rule.fill(value, missing)
			}
		}
	case reflect.Pointer:
		if !into.IsNil() && !missing {
			fill(into.Elem(), missing)
		}
	case reflect.Slice:
		for i := range into.Len() {
			fill(into.Index(i), missing)
		}
	}
}

func (r rule) fill(into reflect.Value, missing bool) {
	switch {
	case r.normal == "":
		fill(into, missing)
	case !into.IsZero(), !missing && r.least == "0":
	case into.Kind() == reflect.String:
		into.SetString(r.normal)
	case into.Kind() == reflect.Bool:
		into.SetBool(r.normal == "true")
	default:
		into.SetInt(measured(into.Type(), r.normal))
	}
}

// measured is a number, a length of time or a size of a tag.
func measured(t reflect.Type, text string) int64 {
	if t == reflect.TypeFor[time.Duration]() {
		if d, err := time.ParseDuration(text); err == nil {
			return int64(d)
		}
	} else if n, ok := ParseSize(text); ok {
		return n
	}
	panic("definition: " + text + " in a tag")
}

// fault is what is wrong with a value that could be read; empty if nothing is.
func (r rule) fault(name string, n *node, into reflect.Value) string {
	switch into.Kind() { //nolint:exhaustive // the others have no rules
	case reflect.String:
		if n.shape == Text {
			return r.textFault(name, n.meant())
		}
	case reflect.Int, reflect.Int64:
		return r.rangeFault(name, into)
	case reflect.Slice, reflect.Map:
		if into.Type().Elem().Kind() == reflect.Uint8 {
			return "" // any value, as JSON
		}
		if into.Len() == 0 && (r.required || r.nonempty) {
			return name + " is empty"
		}
		if r.most != "" && int64(into.Len()) > measured(reflect.TypeFor[int](), r.most) {
			return fmt.Sprintf("there are %d %s; at most %s are allowed", into.Len(), name, r.most)
		}
	}
	return ""
}

func (r rule) textFault(name, text string) string {
	switch {
	case (r.required || r.nonempty) && strings.TrimSpace(text) == "":
		return name + " is empty"
	case len(r.oneof) > 0 && !slices.Contains(r.oneof, text):
		return fmt.Sprintf("%s %s is not known. %s", name, pawl.Quote(text), pawl.Suggest(text, r.oneof, "It is one of "+strings.Join(r.oneof, ", ")+"."))
	case r.is != "" && !compiled(r.pattern).MatchString(text):
		return pawl.Quote(text) + " is not " + r.is
	case r.most != "" && int64(len(text)) > measured(reflect.TypeFor[int](), r.most):
		return fmt.Sprintf("the text has %d bytes; at most %s are allowed", len(text), r.most)
	}
	return ""
}

func (r rule) rangeFault(name string, into reflect.Value) string {
	if r.least == "" || r.most == "" {
		return ""
	}
	if n := into.Int(); n < measured(into.Type(), r.least) || n > measured(into.Type(), r.most) {
		return fmt.Sprintf("%s must be from %s to %s", name, r.least, r.most)
	}
	return ""
}
