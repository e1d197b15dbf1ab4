package fetch

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// node is a place in a JSON value that is wanted, or that leads to wanted
// ones. The nodes of a tree are numbered from 0, the root.
type node struct {
	id       int
	children []edge
	byName   map[string]int // of children, when there are many
}

// edge leads from a node to a child: by name in objects, by index in arrays.
type edge struct {
	name  string
	index int // -1: the name is no index
	to    *node
}

// many is the number of children from which on a map is faster than a search.
const many = 8

// tree is the set of wanted paths, so that one walk finds all of them.
type tree struct {
	root  *node
	count int
}

func newTree() *tree { return &tree{root: &node{}, count: 1} }

// add returns the node of a path, which it makes if need be.
func (t *tree) add(path string) (*node, error) {
	names, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	at := t.root
	for _, name := range names {
		at = t.child(at, name)
	}
	return at, nil
}

func (t *tree) child(at *node, name string) *node {
	for _, e := range at.children {
		if e.name == name {
			return e.to
		}
	}
	e := edge{name: name, index: -1, to: &node{id: t.count}}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 {
		e.index = i
	}
	t.count++
	at.children = append(at.children, e)
	if len(at.children) > many {
		at.fillMap()
	}
	return e.to
}

func (n *node) fillMap() {
	if n.byName == nil {
		n.byName = make(map[string]int, 2*len(n.children))
	}
	for i, e := range n.children {
		n.byName[e.name] = i
	}
}

// find returns the number of the child with a name, or -1. Objects of one kind
// mostly have one order, so the guess, the child after the last one found, is
// looked at first.
func (n *node) find(name []byte, guess int) int {
	if guess < len(n.children) && n.children[guess].name == string(name) {
		return guess
	}
	if n.byName != nil {
		if i, ok := n.byName[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range n.children {
		if n.children[i].name == string(name) {
			return i
		}
	}
	return -1
}

// at returns the child for an index of an array, or nil.
func (n *node) at(index int) *node {
	for i := range n.children {
		if n.children[i].index == index {
			return n.children[i].to
		}
	}
	return nil
}

// splitPath cuts a dotted path into names. A dot that belongs to a name is
// written \. and the empty path, like a single dot, is the value itself.
func splitPath(path string) ([]string, error) {
	if path == "" || path == "." {
		return nil, nil
	}
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			name.WriteByte(path[i])
		case c == '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(c)
		}
	}
	names = append(names, name.String())
	if slices.Contains(names, "") {
		return nil, errors.New("the path " + strconv.Quote(path) + " has an empty part")
	}
	return names, nil
}
