package definition

import (
	"math"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pawlrun/pawl"
)

// converter turns the nodes of the parser into those of this package, and
// notes what is not allowed.
type converter struct {
	before int // lines of the file before the document
	faults *Faults
}

func (c converter) value(from ast.Node, pointer string) *node {
	at := c.place(from.GetToken())
	switch from := from.(type) {
	case *ast.MappingNode:
		return c.mapping(from.Values, at, pointer)
	case *ast.MappingValueNode:
		return c.mapping([]*ast.MappingValueNode{from}, at, pointer)
	case *ast.SequenceNode:
		list := &node{shape: List, place: at}
		for i, item := range from.Values {
			list.items = append(list.items, c.value(item, pointer+Pointer(i)))
		}
		return list
	case *ast.AnchorNode: // harmless without an alias
		if from.Value != nil {
			return c.value(from.Value, pointer)
		}
	case *ast.StringNode:
		if from.GetToken().Type == token.StringType && jsonNumber.MatchString(from.Value) {
			return c.number(from.GetToken(), at, pointer) // to the parser, long numbers are texts
		}
		return &node{shape: Text, text: from.Value, place: at}
	case *ast.LiteralNode:
		return &node{shape: Text, text: from.Value.Value, block: true, place: at}
	case *ast.BoolNode:
		return &node{shape: Flag, text: strconv.FormatBool(from.Value), place: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return c.number(from.GetToken(), at, pointer)
	case *ast.AliasNode:
		c.faults.addAt(at, pointer, "aliases (*name) are not supported: write the value out")
	case *ast.TagNode:
		c.faults.addAt(at, pointer, "tags such as !!str are not supported: for a text, put the value in quotes")
	case nil, *ast.NullNode, *ast.CommentGroupNode:
	default:
		c.faults.addAt(at, pointer, "this kind of YAML is not supported here")
	}
	return &node{shape: Null, place: at}
}

func (c converter) mapping(values []*ast.MappingValueNode, at place, pointer string) *node {
	mapping := &node{shape: Mapping, place: at}
	if len(values) > 0 {
		mapping.place = c.place(values[0].Key.GetToken())
	}
	first := make(map[string]place, len(values))
	for _, entry := range values {
		name, ok := c.name(entry.Key, pointer)
		if !ok {
			continue
		}
		field := named{name: name, place: c.place(entry.Key.GetToken())}
		below := pointer + Pointer(name)
		if before, twice := first[name]; twice {
			c.faults.addAt(field.place, below, "%s is given twice, first in line %d", pawl.Quote(name), before.line)
			continue
		}
		first[name] = field.place
		field.value = c.value(entry.Value, below)
		mapping.named = append(mapping.named, field)
	}
	return mapping
}

// name is the name of a field, which must be a plain or quoted text.
func (c converter) name(key ast.MapKeyNode, pointer string) (string, bool) {
	at := c.place(key.GetToken())
	switch key := key.(type) {
	case *ast.StringNode:
		return key.Value, true
	case *ast.MergeKeyNode:
		c.faults.addAt(at, pointer+"/<<", "merge keys (<<) are not supported: write the fields out")
	default:
		c.faults.addAt(at, pointer+Pointer(key.GetToken().Value), "the name of a field must be a text: put it in quotes")
	}
	return "", false
}

// jsonNumber is how numbers are written. YAML has more ways, which its
// versions read differently (010, 0x10, 1_000), so that none is taken.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (c converter) number(t *token.Token, at place, pointer string) *node {
	if fault := numberFault(t.Value); fault != "" {
		c.faults.addAt(at, pointer, "%s", fault)
		return &node{shape: Null, place: at}
	}
	return &node{shape: Number, text: t.Value, place: at}
}

func numberFault(text string) string {
	if !jsonNumber.MatchString(text) {
		return pawl.Quote(text) + " is not a number such as 42 or -1.5; for a text, put it in quotes"
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) {
		return "the number is too large; for a text, put it in quotes"
	}
	return ""
}

func (c converter) place(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{c.before + 1, 1}
	}
	return place{c.before + t.Position.Line, t.Position.Column}
}
