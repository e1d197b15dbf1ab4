package fetch

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// signals are the values of an answer that steer the fetch: the next cursor or
// link, whether there is more, how many rows there are, and whether it is an
// error at all.
type signals struct {
	tree   *tree
	data   *node // of the rows
	paths  map[string]*node
	found  [][]byte // by the id of a node, as written; nil: absent
	picker *picker
	names  []string // of the outermost object, for messages
}

func newSignals(d spec.Definition) (*signals, error) {
	s := &signals{tree: newTree(), paths: map[string]*node{}}
	data, err := s.tree.add(d.Response.DataPath)
	if err != nil {
		return nil, faultf(CodeBadPath, "response.dataPath: %s", err)
	}
	s.data = data
	for _, path := range steeringPaths(d) {
		if path == "" {
			continue
		}
		if s.paths[path], err = s.tree.add(path); err != nil {
			return nil, faultf(CodeBadPath, "%s", err)
		}
	}
	s.found = make([][]byte, s.tree.count)
	s.picker = newPicker(s.tree)
	return s, nil
}

func steeringPaths(d spec.Definition) []string {
	var paths []string
	if p := d.OffsetPagination; p != nil {
		paths = append(paths, p.HasMorePath, p.TotalPath)
	}
	if p := d.CursorPagination; p != nil {
		paths = append(paths, p.NextCursorPath)
	}
	if p := d.LinkPagination; p != nil {
		paths = append(paths, p.NextPath)
	}
	if p := d.Response.ErrorWhen; p != nil {
		paths = append(paths, p.Path)
	}
	return paths
}

// any reports whether there is a value to look for.
func (s *signals) any() bool { return len(s.paths) > 0 }

// at returns the value at a path, or nil.
func (s *signals) at(path string) []byte {
	if n, ok := s.paths[path]; ok {
		return s.found[n.id]
	}
	return nil
}

// note keeps a value. Two values at one place leave open which is meant.
func (s *signals) note(n *node, value []byte) error {
	if s.found[n.id] != nil {
		return faultf(CodeBadPath, "the answer has one of the wanted names twice")
	}
	s.found[n.id] = bytes.Clone(value)
	return nil
}

// noteBelow keeps what is wanted within a value that is itself at n.
func (s *signals) noteBelow(n *node, value []byte) {
	if len(n.children) == 0 {
		return
	}
	s.picker.pick(n, value)
	for id := range s.found {
		if found := s.picker.at(id); found != nil && id != n.id {
			s.found[id] = bytes.Clone(found)
		}
	}
}

// noteName keeps the names of the outermost object, as many as fit a message.
func (s *signals) noteName(name string) {
	const enough = 10
	if len(s.names) < enough {
		s.names = append(s.names, show([]byte(name)))
	}
}

// failure returns the value by which the answer says that it is an error, or
// nil.
func (s *signals) failure(when *spec.ErrorWhen) []byte {
	if when == nil {
		return nil
	}
	value := s.at(when.Path)
	switch {
	case value == nil:
		return nil
	case len(when.Equals) > 0:
		if sameJSON(value, when.Equals) {
			return value
		}
		return nil
	case isSomething(value):
		return value
	}
	return nil
}

func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// isSomething tells values that mean something from null, false, 0, "" and
// what is empty.
func isSomething(value []byte) bool {
	switch value[0] {
	case 'n', 'f':
		return false
	case 't':
		return true
	case '"':
		return len(value) > 2
	case '{', '[':
		return len(bytes.Trim(value, "{}[] \t\r\n")) > 0
	}
	v, err := strconv.ParseFloat(string(value), 64)
	return err != nil || v != 0
}

// scalar returns the text of a string or a number, "" for what is not there,
// and false for anything else.
func scalar(value []byte) (string, bool) {
	if value == nil || value[0] == 'n' || value[0] == 'f' {
		return "", true
	}
	switch value[0] {
	case '"':
		var e encoder
		text, why := e.unquote(value)
		return string(text), why == ""
	case '{', '[', 't':
		return "", false
	}
	return string(value), true
}
