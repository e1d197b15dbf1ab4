package definition

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// Decode puts the fields of the document into a struct and returns every fault
// in the order of the file; none means that all is well. See Check, which is
// for those who look closer at the values afterwards.
func (d Document) Decode(into any) []pawl.Field { return d.Check(into).Fields() }

// Check puts the fields of the document into a struct, whose fields have json
// tags; the field kind need not be among them. Names are taken in exactly this
// spelling. A null is as good as no field at all. The types may be string,
// bool, int, int64, float64, json.RawMessage (any value, as JSON with sorted
// names), time.Duration (30s), Size (4MiB), Secret, Scalar, Custom, structs,
// slices, maps by string, and pointers to any of these, which stay nil if there
// is nothing. A tag may say more:
//
//	definition:"required"          the field must be there, and a text must not be empty
//	definition:"nonempty"          if it is there, it must not be empty
//	definition:"scalar"            the text may also be written as a number, or as true or false
//	definition:"seconds"           the number may also be written as a length of time such as 5m
//	definition:"oneof=json|csv"    the text must be one of these; a missing one stays empty
//	definition:"also=api_key"      another name that means the same
//	definition:"default=30s"       what a missing field is
//	definition:"min=1,max=100"     limits of a number, a length of time or a size;
//	                               max also of the bytes of a text and of the length of a list;
//	                               min of a text is for the schema alone
//
// Several are separated by commas. A text must match the expression of the tag
// pattern, if the tag is says what it is then: "a name of small letters". The
// tag doc describes the field; see Schema. What has a fault keeps its old value.
func (d Document) Check(into any) *Faults {
	r := d.Open()
	r.Read(into)
	r.Unknown()
	return &r.Faults
}

// Has reports whether there is a value, other than null, at a JSON pointer.
func (d Document) Has(pointer string) bool {
	found, _ := d.root.find(pointer)
	return found != nil && found.shape != Null
}

// Text is the text at a JSON pointer; empty if there is none.
func (d Document) Text(pointer string) string {
	if found, _ := d.root.find(pointer); found != nil && found.shape == Text {
		return found.text
	}
	return ""
}

// JSON is the whole document as JSON, with sorted names.
func (d Document) JSON() json.RawMessage { return d.root.json() }

// Place is where the value at a JSON pointer is; the zero Place after ReadJSON.
func (d Document) Place(pointer string) pawl.Place {
	_, at := d.root.find(pointer)
	return at.in(d.File)
}

// NamePlace is where the name of a field of the document is.
func (d Document) NamePlace(name string) pawl.Place {
	if field := d.root.field(name); field != nil {
		return field.place.in(d.File)
	}
	return d.Place("")
}

// Fault is one fault in the value at a JSON pointer.
func (d Document) Fault(pointer, format string, values ...any) pawl.Field {
	return pawl.Field{Place: d.Place(pointer), Pointer: pointer, Message: fmt.Sprintf(format, values...)}
}

// decoder puts nodes into Go values and notes what does not fit.
type decoder struct{ reading *Reading }

func (d decoder) refuse(n *node, pointer, format string, values ...any) {
	d.reading.addAt(n.place, pointer, format, values...)
}

func (d decoder) value(n *node, into reflect.Value, pointer string) {
	if custom, ok := reflect.TypeAssert[Custom](into.Addr()); ok {
		custom.ReadValue(Value{node: n, pointer: pointer, decoder: d})
		return
	}
	if raw, ok := reflect.TypeAssert[*json.RawMessage](into.Addr()); ok {
		*raw = n.json()
		return
	}
	switch into.Type() {
	case reflect.TypeFor[time.Duration]():
		d.duration(n, into, pointer)
		return
	case reflect.TypeFor[Size]():
		d.size(n, into, pointer)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		inner := reflect.New(into.Type().Elem())
		d.value(n, inner.Elem(), pointer)
		into.Set(inner)
	case reflect.Struct:
		if d.shaped(n, Mapping, pointer) {
			d.structure(n, into, pointer)
		}
	case reflect.Slice:
		d.slice(n, into, pointer)
	case reflect.Map:
		d.table(n, into, pointer)
	case reflect.String:
		if d.shaped(n, Text, pointer) {
			into.SetString(n.meant())
		}
	case reflect.Bool:
		if d.shaped(n, Flag, pointer) {
			into.SetBool(n.text == "true")
		}
	case reflect.Int, reflect.Int64:
		d.integer(n, into, pointer)
	case reflect.Float64:
		if d.shaped(n, Number, pointer) {
			f, _ := strconv.ParseFloat(n.text, 64) // was parsed before
			into.SetFloat(f)
		}
	default:
		panic(fmt.Sprintf("definition: decode into %s", into.Type()))
	}
}

// meant is a text without the end of the block that it is written in.
func (n *node) meant() string {
	if n.block {
		return strings.TrimRight(n.text, "\n")
	}
	return n.text
}

// shaped reports whether a node has a shape, and notes a fault if not.
func (d decoder) shaped(n *node, want Shape, pointer string) bool {
	if n.shape == want {
		return true
	}
	hint := ""
	if want == Text && (n.shape == Number || n.shape == Flag) {
		hint = ": put it in quotes"
	}
	if want == Mapping {
		want = "a mapping of names and values"
	}
	d.refuse(n, pointer, "%s must be %s%s", last(pointer), want, hint)
	return false
}

// last is the last name of a pointer, for messages; a number is shown with the
// name of its list.
func last(pointer string) string {
	steps := strings.Split(pointer, "/")
	name := unescape(steps[len(steps)-1])
	if _, err := strconv.Atoi(name); err == nil && len(steps) > 2 {
		return fmt.Sprintf("%s[%s]", unescape(steps[len(steps)-2]), name)
	}
	if len(name) > 64 {
		return pawl.Quote(name)
	}
	return name
}

func (d decoder) integer(n *node, into reflect.Value, pointer string) {
	i, err := strconv.ParseInt(n.text, 10, 64)
	if n.shape != Number || err != nil || into.Kind() == reflect.Int && (i > math.MaxInt || i < math.MinInt) {
		d.refuse(n, pointer, "%s must be a whole number", last(pointer))
		return
	}
	into.SetInt(i)
}

func (d decoder) slice(n *node, into reflect.Value, pointer string) {
	want := List
	if into.Type().Elem().Kind() == reflect.String {
		want = "a list of texts"
	}
	if n.shape != List {
		d.refuse(n, pointer, "%s must be %s", last(pointer), want)
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.value(item, list.Index(i), pointer+Pointer(i))
	}
	into.Set(list)
}

func (d decoder) table(n *node, into reflect.Value, pointer string) {
	if !d.shaped(n, Mapping, pointer) {
		return
	}
	table := reflect.MakeMapWithSize(into.Type(), len(n.named))
	for _, field := range n.named {
		value := reflect.New(into.Type().Elem()).Elem()
		d.value(field.value, value, pointer+Pointer(field.name))
		table.SetMapIndex(reflect.ValueOf(field.name).Convert(into.Type().Key()), value)
	}
	into.Set(table)
}

func (d decoder) structure(n *node, into reflect.Value, pointer string) {
	d.unknown(n, d.members(n, into, pointer), pointer)
}

// members reads the fields of a struct and returns their names.
func (d decoder) members(n *node, into reflect.Value, pointer string) (known []string) {
	for field, value := range into.Fields() {
		if rule, ok := ruleOf(field); ok {
			known = append(known, rule.names...)
			d.member(n, rule, value, pointer)
		}
	}
	return known
}

// member reads one field of a struct.
func (d decoder) member(n *node, rule rule, into reflect.Value, pointer string) {
	var given []named
	for _, name := range rule.names {
		if field := n.field(name); field != nil && field.value.shape != Null {
			given = append(given, *field)
		}
	}
	rule.fill(into, true)
	if len(given) == 0 {
		if rule.required {
			d.reading.addAt(n.place, pointer+Pointer(rule.names[0]), "%s is missing", rule.names[0])
		}
		return
	}
	field := given[0]
	below := pointer + Pointer(field.name)
	if len(given) > 1 {
		d.reading.addAt(given[1].place, pointer+Pointer(given[1].name), "%s and %s mean the same: keep one of them", field.name, given[1].name)
	}
	switch {
	case rule.scalar:
		d.scalar(field.value, into, below)
	case rule.seconds && field.value.shape == Text:
		d.seconds(field.value, into, below)
	default:
		d.value(field.value, into, below)
	}
	if fault := rule.fault(field.name, field.value, into); fault != "" {
		d.refuse(field.value, below, "%s", fault)
	}
}

func (d decoder) pointed(n *node, into any, pointer string) {
	d.value(n, reflect.ValueOf(into).Elem(), pointer)
}
