package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml"
)

// toYAML writes JSON as YAML with its fields in the same order. It reads the
// JSON as JSON: not all of it is YAML, escaped emoji for one are not.
func toYAML(raw json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	value, err := ordered(decoder)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return text, nil
}

// ordered reads the next value; objects keep the order of their fields.
func ordered(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Number:
		return number(t), nil
	case json.Delim:
		if t == '[' {
			return orderedList(decoder)
		}
		return orderedObject(decoder)
	}
	return token, nil
}

func orderedList(decoder *json.Decoder) (any, error) {
	list := []any{}
	for decoder.More() {
		value, err := ordered(decoder)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := decoder.Token() // the closing bracket
	return list, err
}

func orderedObject(decoder *json.Decoder) (any, error) {
	object := yaml.MapSlice{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := ordered(decoder)
		if err != nil {
			return nil, err
		}
		object = append(object, yaml.MapItem{Key: name, Value: value})
	}
	_, err := decoder.Token() // the closing brace
	return object, err
}

// number keeps integers whole.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return n.String()
}
