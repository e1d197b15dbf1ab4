package table

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// normal gives a value the one Go type of its kind, or the reason why it cannot
// be stored: text and JSON are string, instants and dates time.Time in UTC to
// the microsecond. A NULL is nil.
func normal(sql dialect, kind spec.Type, v any) (any, string) {
	switch x := v.(type) {
	case nil:
		return nil, ""
	case string:
		if kind == spec.Date {
			t, err := time.Parse(dateText, x)
			if err != nil {
				return nil, fmt.Sprintf("%q is not a date", x)
			}
			return t, ""
		}
		if kind == spec.Text || kind == spec.Object || kind == rawText {
			return storable(sql, kind, x)
		}
	case json.RawMessage:
		if kind == spec.Object || kind == rawText {
			return storable(sql, kind, string(x))
		}
	case int64:
		if kind == spec.Integer {
			return v, ""
		}
		if kind == spec.Number {
			return float64(x), ""
		}
	case float64:
		if kind == spec.Number && !math.IsNaN(x) && !math.IsInf(x, 0) {
			return v, ""
		}
	case bool:
		if kind == spec.Boolean {
			return v, ""
		}
	case time.Time:
		if kind == spec.Timestamp {
			return x.UTC().Truncate(time.Microsecond), ""
		}
		if kind == spec.Date {
			return time.Date(x.Year(), x.Month(), x.Day(), 0, 0, 0, 0, time.UTC), ""
		}
	}
	return nil, fmt.Sprintf("%T is not of type %s", v, kind)
}

func storable(sql dialect, kind spec.Type, text string) (any, string) {
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return nil, "has a NUL character or is not UTF-8"
	}
	if reason := sql.refuse(kind, text); reason != "" {
		return nil, reason
	}
	return text, ""
}

// appendValue writes a value so that different values have different bytes.
func appendValue(b []byte, v any) []byte {
	switch x := v.(type) {
	case string:
		b = binary.AppendUvarint(append(b, 's'), uint64(len(x)))
		return append(b, x...)
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(x))
	case float64:
		if x == 0 { // also -0, which databases hold for the same
			x = 0
		}
		return binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(x))
	case bool:
		if x {
			return append(b, 't')
		}
		return append(b, 'u')
	case time.Time:
		return binary.BigEndian.AppendUint64(append(b, 'd'), uint64(x.UnixMicro()))
	}
	return append(b, 'n')
}

// rowDigest is what colRow holds, in 16 characters: 96 bits of SHA-256 over the values that are
// not NULL, with their columns in the order given, which is that of their
// names: a column that is added and empty changes no digest.
func rowDigest(buffer []byte, columns []column, order []int, values []any) (text string, used []byte) {
	b := buffer[:0]
	for _, i := range order {
		if values[i] != nil {
			b = append(append(b, columns[i].name...), 0)
			b = appendValue(b, values[i])
		}
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:12]), b
}

// instantJSON is how JSON shows instants.
const instantJSON = "2006-01-02T15:04:05.999999Z"

// jsonValue is a value as JSON.
func jsonValue(kind spec.Type, v any) ([]byte, error) {
	switch x := v.(type) {
	case string:
		if kind == spec.Object || kind == rawText {
			return []byte(x), nil
		}
	case time.Time:
		if kind == spec.Date {
			v = x.Format(dateText)
		} else {
			v = x.Format(instantJSON)
		}
	}
	return json.Marshal(v)
}

// jsonRow is a row as a JSON object of the fields of the definition.
func jsonRow(columns []column, values []any) (json.RawMessage, error) {
	out := []byte{'{'}
	for i, c := range columns {
		if c.name == colRow || c.name == colRaw {
			continue
		}
		v, err := jsonValue(c.kind, values[i])
		if err != nil {
			return nil, fmt.Errorf("encode column %s: %w", c.name, err)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, err := json.Marshal(c.name)
		if err != nil {
			return nil, fmt.Errorf("encode column %s: %w", c.name, err)
		}
		out = append(append(append(out, name...), ':'), v...)
	}
	return append(out, '}'), nil
}

// jsonKey is the identity of a row: its digest, or the JSON array of its key.
func jsonKey(s *shape, values []any) (string, error) {
	places := s.positions()
	if s.digested() {
		return values[places[0]].(string), nil
	}
	out := []byte{'['}
	for n, i := range places {
		if n > 0 {
			out = append(out, ',')
		}
		v, err := jsonValue(s.columns[i].kind, values[i])
		if err != nil {
			return "", fmt.Errorf("encode key: %w", err)
		}
		out = append(out, v...)
	}
	return string(append(out, ']')), nil
}
