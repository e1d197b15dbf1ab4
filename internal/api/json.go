package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// init makes field names exact: huma would take "RunAt" for "runAt", and what
// is accepted by accident must be accepted for ever. And it has huma say what is
// wrong as we do.
func init() {
	huma.ValidateStrictCasing = true
	setMessages()
}

// jsonFormat is how bodies are read and written.
func jsonFormat() huma.Format {
	return huma.Format{
		Marshal: func(w io.Writer, v any) error {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			return enc.Encode(v)
		},
		Unmarshal: decode,
	}
}

// decode reads a body. huma calls it twice: first into an any, to compare it
// with the schema, and then into the struct. The first time the text itself is
// checked: it must be UTF-8, one JSON value with nothing behind it, and no
// object may name a key twice.
func decode(data []byte, into any) error {
	if _, first := into.(*any); first {
		if err := checkText(data); err != nil {
			return err
		}
	}
	err := json.Unmarshal(data, into)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return at(data, int(e.Offset), strings.TrimPrefix(e.Error(), "json: "))
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return fmt.Errorf("/%s must not be the JSON %s", strings.ReplaceAll(e.Field, ".", "/"), e.Value)
	}
	return err
}

func checkText(data []byte) error {
	if !utf8.Valid(data) {
		for i := 0; i < len(data); {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				return at(data, i+1, "a byte that is not UTF-8")
			}
			i += size
		}
	}
	if !json.Valid(data) {
		return nil // told by json.Unmarshal, with its place
	}
	return checkKeys(data)
}

// checkKeys finds keys that an object names twice: which of the two counts is
// decided differently by every reader.
func checkKeys(data []byte) error {
	type level struct {
		keys    map[string]bool // nil in an array
		wantKey bool
	}
	var levels []level
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		top := len(levels) - 1
		if key, ok := token.(string); ok && top >= 0 && levels[top].wantKey {
			if levels[top].keys[key] {
				return at(data, int(dec.InputOffset()), fmt.Sprintf("the key %q is named twice in one object", key))
			}
			levels[top].keys[key] = true
			levels[top].wantKey = false
			continue
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}, wantKey: true})
			continue
		case json.Delim('['):
			levels = append(levels, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:top]
		}
		if n := len(levels); n > 0 && levels[n-1].keys != nil { // a value ended
			levels[n-1].wantKey = true
		}
	}
}

// at says where in the text a fault is. offset counts the bytes up to and with
// the one that is wrong.
func at(data []byte, offset int, msg string) error {
	offset = min(max(offset, 1), len(data))
	before := data[:max(offset-1, 0)]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("line %d, column %d (byte %d): %s", line, column, offset, msg)
}
