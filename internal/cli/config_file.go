package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// fileValue is one value of a config file.
type fileValue struct {
	texts []string
	place string // file:line:column: key
}

// parseConfigFile reads a config file, by key. Every key must be known and
// every value of the right type, whether or not it will count.
func parseConfigFile(name string, text []byte) (map[string]fileValue, error) {
	entries, err := topEntries(name, text)
	if err != nil {
		return nil, err
	}
	known := map[string]setting{}
	for _, def := range settings() {
		if def.key != "" {
			known[def.key] = def
		}
	}
	found := map[string]fileValue{}
	for _, entry := range entries {
		key, at := entry.Key.GetToken().Value, position(name, entry.Key.GetToken())
		def, ok := known[key]
		if !ok {
			return nil, unknownKey(at, key)
		}
		place := position(name, entry.Value.GetToken()) + ": " + key
		texts, err := readValue(def, entry.Value)
		if err == nil {
			err = def.set(&values{}, texts)
		}
		if err != nil {
			return nil, misplaced(place, err)
		}
		found[key] = fileValue{texts: texts, place: place}
	}
	return found, nil
}

// topEntries parses the file down to the entries of its one mapping.
func topEntries(name string, text []byte) ([]*ast.MappingValueNode, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		if e, ok := errors.AsType[yaml.Error](err); ok {
			return nil, usageError("", "%s: %s", position(name, e.GetToken()), e.GetMessage())
		}
		return nil, usageError("", "%s: %s", name, err)
	}
	var entries []*ast.MappingValueNode
	for i, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.NullNode:
		case *ast.MappingNode:
			entries = append(entries, body.Values...)
		case *ast.MappingValueNode:
			entries = append(entries, body)
		default:
			return nil, usageError("Write one setting a line, such as workers: 8.", "%s: a config file is a list of keys and values", position(name, body.GetToken()))
		}
		if i > 0 && doc.Body != nil {
			return nil, usageError("", "%s: a config file is one document", position(name, doc.Body.GetToken()))
		}
	}
	return entries, nil
}

func unknownKey(at, key string) error {
	if key == "token" {
		return usageError("Use tokenFile: PATH, or the variable PAWL_TOKEN.", "%s: token: a config file holds no secrets", at)
	}
	hint := didYouMean(key, fileKeys())
	if hint == "" {
		hint = "pawl serve --help lists the settings; in the file their names are camelCase."
	}
	return usageError(hint, "%s: unknown key %q", at, key)
}

// readValue turns a node into texts, if it is of a type that the setting takes.
func readValue(def setting, node ast.Node) ([]string, error) {
	target := def.at(&values{})
	if _, isList := target.(*[]string); !isList {
		text, err := readScalar(target, node)
		return []string{text}, err
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		text, err := readScalar(new(string), node)
		if err != nil {
			return nil, errors.New("a list of texts is needed")
		}
		return []string{text}, nil
	}
	texts := []string{}
	for _, item := range list.Values {
		text, err := readScalar(new(string), item)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, errors.New("the list is empty; leave the key out instead")
	}
	return texts, nil
}

func readScalar(target any, node ast.Node) (string, error) {
	_, isText := target.(*string)
	switch n := node.(type) {
	case *ast.StringNode:
		if _, isNumber := target.(*int); isNumber {
			return "", fmt.Errorf("a whole number is needed, not the text %q", n.Value)
		}
		return n.Value, nil
	case *ast.IntegerNode:
		if !isText {
			return fmt.Sprint(n.Value), nil
		}
	}
	return "", fmt.Errorf("%s is needed", wanted(target))
}

func wanted(target any) string {
	switch target.(type) {
	case *int:
		return "a whole number"
	case *int64:
		return "a size such as 128MiB"
	case *time.Duration:
		return "a length of time such as 300s"
	}
	return "a text"
}

// position is file:line:column.
func position(name string, t *token.Token) string {
	if t == nil || t.Position == nil {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, t.Position.Line, t.Position.Column)
}
