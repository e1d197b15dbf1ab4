package cli

import (
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	document "github.com/pawlrun/pawl/internal/definition"
)

// fileValue is one value of a config file.
type fileValue struct {
	texts []string
	place string // file:line:column: key
}

// parseConfigFile reads a config file, by key. Every key must be known and
// every value of the right type, whether or not it will count.
func parseConfigFile(name string, text []byte) (map[string]fileValue, error) {
	doc, err := document.ReadSettings(name, text)
	if faults := document.FieldsOf(err); len(faults) > 0 {
		return nil, usageError("", "%s", faults[0])
	}
	known := map[string]setting{}
	for _, def := range settings() {
		if def.key != "" {
			known[def.key] = def
		}
	}
	found := map[string]fileValue{}
	for key, value := range doc.Values() {
		def, ok := known[key]
		if !ok {
			return nil, unknownKey(doc.NamePlace(key), key)
		}
		at, texts, err := document.Pointer(key), []string(nil), error(nil)
		if def.merged && value.Shape() == document.Mapping {
			texts, at, err = readPairs(def, value, at)
		} else if texts, err = readValue(def, value); err == nil {
			err = def.set(&values{}, texts)
		}
		place := fmt.Sprintf("%s: %s", doc.Place(at), key)
		if err != nil {
			return nil, misplaced(place, err)
		}
		found[key] = fileValue{texts: texts, place: place}
	}
	return found, nil
}

func unknownKey(at pawl.Place, key string) error {
	if key == "token" {
		return usageError("Use tokenFile: PATH, or the variable PAWL_TOKEN.", "%s: token: a config file holds no secrets", at)
	}
	hint := pawl.Suggest(key, fileKeys(), "pawl serve --help lists the settings; in the file their names are camelCase.")
	return usageError(hint, "%s: unknown key %q", at, key)
}

// readValue turns a value into texts, if it is of a type that the setting takes.
func readValue(def setting, value document.Value) ([]string, error) {
	target := def.at(&values{})
	if def.amount && value.Shape() == document.Number {
		return []string{value.Written()}, nil
	}
	if _, isList := target.(*[]string); !isList {
		text, err := readScalar(target, value)
		return []string{text}, err
	}
	if value.Shape() != document.List {
		text, err := readScalar(new(string), value)
		if err != nil {
			return nil, errors.New("a list of texts is needed")
		}
		return []string{text}, nil
	}
	texts := []string{}
	for _, item := range value.Items() {
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

// readPairs turns the mapping at a pointer into texts of the form NAME=VALUE, and
// says where the first one is that is wrong.
func readPairs(def setting, value document.Value, pointer string) (texts []string, at string, err error) {
	for name, v := range value.Fields() {
		at := pointer + document.Pointer(name)
		switch v.Shape() {
		case document.Text, document.Number, document.Flag:
		case document.Null, document.List, document.Mapping:
			return nil, at, fmt.Errorf("%s: a text is needed", name)
		}
		pair := name + "=" + v.Written()
		if err := def.set(&values{}, []string{pair}); err != nil {
			return nil, at, err
		}
		texts = append(texts, pair)
	}
	if len(texts) == 0 {
		return nil, pointer, errors.New("the mapping is empty; leave the key out instead")
	}
	return texts, pointer, nil
}

func readScalar(target any, value document.Value) (string, error) {
	_, isText := target.(*string)
	_, isNumber := target.(*int)
	_, isSwitch := target.(*bool)
	switch {
	case isSwitch && value.Shape() == document.Flag:
		return value.Written(), nil
	case isSwitch:
	case value.Shape() == document.Text && isNumber:
		return "", fmt.Errorf("a whole number is needed, not the text %q", value.Text())
	case value.Shape() == document.Text, value.Shape() == document.Number && !isText:
		return value.Written(), nil
	}
	return "", fmt.Errorf("%s is needed", wanted(target))
}

func wanted(target any) string {
	switch target.(type) {
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *int64:
		return "a size such as 128MiB"
	case *time.Duration:
		return "a length of time such as 300s"
	}
	return "a text"
}
