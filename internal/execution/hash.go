package execution

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// requestHash is what makes two requests the same: the graph, the grant and
// the input in canonical form. The order of keys, spaces and the spelling of
// numbers and texts do not count.
func requestHash(graphID, grantID string, input json.RawMessage) (string, error) {
	canonical, err := canonicalJSON(input)
	if err != nil {
		return "", fmt.Errorf("read input: %w", err)
	}
	h := sha256.New()
	// Each part with its length, so that no two requests give the same bytes.
	for _, part := range [][]byte{[]byte(graphID), []byte(grantID), canonical} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// canonicalJSON writes a JSON value in one form: no spaces, keys sorted by
// their bytes (of two equal ones the last counts), numbers by their exact
// decimal value.
func canonicalJSON(raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one JSON value")
	}
	var out bytes.Buffer
	writeCanonical(&out, v)
	return out.Bytes(), nil
}

func writeCanonical(out *bytes.Buffer, v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		out.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, key)
			out.WriteByte(':')
			writeCanonical(out, v[key])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			writeCanonical(out, item)
		}
		out.WriteByte(']')
	case json.Number:
		out.WriteString(canonicalNumber(v.String()))
	case string:
		writeText(out, v)
	default: // true, false, null
		fmt.Fprint(out, map[any]string{true: "true", false: "false", nil: "null"}[v])
	}
}

func writeText(out *bytes.Buffer, s string) {
	text, _ := json.Marshal(s) // a string always can be
	out.Write(text)
}

// canonicalNumber writes a JSON number as its digits without zeros at the
// ends, an e and the power of ten, by text alone: 100, 1e2 and 100.0 are 1e2.
// A float would make different large numbers the same.
func canonicalNumber(text string) string {
	mantissa, exponent, found := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	}
	power := int64(0)
	if found {
		n, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return text // an absurd exponent; equal to its own spelling only
		}
		power = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= int64(len(fraction))
	trimmed := strings.TrimRight(digits, "0")
	power += int64(len(digits) - len(trimmed))
	if trimmed == "" {
		return "0"
	}
	return sign + trimmed + "e" + strconv.FormatInt(power, 10)
}
