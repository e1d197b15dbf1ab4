package definition

import (
	"reflect"
	"strings"
)

// rule is what the tags of a field say.
type rule struct {
	names    []string // the first is the best
	required bool
	oneof    []string
}

// ruleOf reads the tags of a field; not ok for those that are no part of a
// definition.
func ruleOf(field reflect.StructField) (r rule, ok bool) {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" || name == "-" || !field.IsExported() {
		return rule{}, false
	}
	r.names = []string{name}
	for part := range strings.SplitSeq(field.Tag.Get("definition"), ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "":
		case "required":
			r.required = true
		case "oneof":
			r.oneof = strings.Split(value, "|")
		case "also":
			r.names = append(r.names, value)
		default:
			panic("definition: unknown tag " + part)
		}
	}
	return r, true
}
