package fetch

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// Why text cannot be stored.
const (
	hasNUL  = "has a NUL character"
	notUTF8 = "is not valid UTF-8"
)

// encoder appends typed values to a row in the form of the spool. A method
// that cannot returns why, as a phrase that follows the name of the field; it
// may have appended something then.
type encoder struct {
	scratch []byte // for text without its escapes
}

// json appends a JSON value as written.
func (e *encoder) json(b []byte, t spec.Type, raw []byte) ([]byte, string) {
	if t == spec.Object && raw[0] != 'n' {
		return appendJSON(b, raw)
	}
	switch raw[0] {
	case 'n':
		return append(b, tagNull), ""
	case '"':
		return e.string(b, t, raw)
	case 't', 'f':
		return appendBoolean(b, t, raw)
	case '{', '[':
		return b, structure(raw) + ", which does not match the type " + string(t)
	}
	return appendNumeral(b, t, raw)
}

// string appends a JSON string as written.
func (e *encoder) string(b []byte, t spec.Type, raw []byte) ([]byte, string) {
	text, why := e.unquote(raw)
	if why != "" {
		return b, why
	}
	if t == spec.Text && len(text) == len(raw)-2 && isUTF8(text) { // no escapes, so no NUL
		return appendText(b, tagText, text), ""
	}
	return e.text(b, t, text)
}

// text appends a value that came as text: a JSON string, or a cell of CSV.
func (e *encoder) text(b []byte, t spec.Type, text []byte) ([]byte, string) {
	if t != spec.Text {
		text = bytes.TrimSpace(text)
	}
	switch t {
	case spec.Integer, spec.Number:
		if !looksNumeric(text) {
			return b, unfit(text, t)
		}
		return appendNumeral(b, t, text)
	case spec.Boolean:
		return appendFlag(b, text)
	case spec.Timestamp, spec.Date:
		return appendInstant(b, t, text)
	case spec.Object: // only a cell; a JSON string is stored as it is
		if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return b, unfit(text, t)
		}
		return appendJSON(b, text)
	default:
		return appendPlain(b, text)
	}
}

func appendPlain(b, text []byte) ([]byte, string) {
	if bytes.IndexByte(text, 0) >= 0 {
		return b, hasNUL
	}
	if !isUTF8(text) {
		return b, notUTF8
	}
	return appendText(b, tagText, text), ""
}

// unquote returns the text of a JSON string; it is valid until the next call.
func (e *encoder) unquote(raw []byte) ([]byte, string) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], ""
	}
	text, err := jsontext.AppendUnquote(e.scratch[:0], raw)
	if err != nil {
		return nil, notUTF8 // what else is wrong was found by the decoder
	}
	e.scratch = text
	return text, ""
}

func appendJSON(b, raw []byte) ([]byte, string) {
	if why := storable(raw); why != "" {
		return b, why
	}
	return appendText(b, tagJSON, raw), ""
}

// appendBoolean appends true or false, as a boolean or as text.
func appendBoolean(b []byte, t spec.Type, raw []byte) ([]byte, string) {
	switch t {
	case spec.Boolean:
		return appendFlag(b, raw)
	case spec.Text:
		return appendText(b, tagText, raw), ""
	default:
		return b, unfit(raw, t)
	}
}

// appendFlag reads what people write for true and false.
func appendFlag(b, text []byte) ([]byte, string) {
	switch {
	case string(text) == "1" || bytes.EqualFold(text, []byte("true")):
		return append(b, tagTrue), ""
	case string(text) == "0" || bytes.EqualFold(text, []byte("false")):
		return append(b, tagFalse), ""
	}
	return b, unfit(text, spec.Boolean)
}

// appendNumeral appends a number, as written, as a value of the type.
func appendNumeral(b []byte, t spec.Type, num []byte) ([]byte, string) {
	switch t {
	case spec.Integer:
		v, why := exactInteger(num)
		if why != "" {
			return b, why
		}
		return binary.AppendVarint(append(b, tagInteger), v), ""
	case spec.Number:
		v, err := strconv.ParseFloat(string(num), 64)
		if err != nil {
			if math.IsInf(v, 0) {
				return b, show(num) + " is too large for a number"
			}
			return b, unfit(num, t)
		}
		return binary.LittleEndian.AppendUint64(append(b, tagNumber), math.Float64bits(v)), ""
	case spec.Boolean:
		return appendFlag(b, num)
	case spec.Timestamp, spec.Date:
		return appendUnix(b, t, num)
	default:
		return appendText(b, tagText, num), ""
	}
}

// looksNumeric keeps what strconv takes beyond decimal numbers away: inf, nan,
// hexadecimal digits and underscores.
func looksNumeric(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	for _, c := range text {
		if (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}

// exactInteger reads an integer; 1.0 and 1e3 are integers, 1.5 is none.
func exactInteger(num []byte) (int64, string) {
	if len(num) <= 18 { // cannot overflow
		if v, ok := shortInteger(num); ok {
			return v, ""
		}
	}
	if v, err := strconv.ParseInt(string(num), 10, 64); err == nil {
		return v, ""
	}
	digits, ok := wholeDigits(num)
	if !ok {
		return 0, unfit(num, spec.Integer)
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, show(num) + " is too large for an integer"
	}
	return v, ""
}

func shortInteger(num []byte) (v int64, ok bool) {
	i := 0
	if len(num) > 0 && num[0] == '-' {
		i = 1
	}
	if i == len(num) {
		return 0, false
	}
	for _, c := range num[i:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if i == 1 {
		v = -v
	}
	return v, true
}

// wholeDigits writes a number with a point or an exponent without them, or
// says that it is no integer. What has more digits than any integer comes back
// with 20 of them.
func wholeDigits(num []byte) (string, bool) {
	mantissa, tail := num, []byte("0")
	if at := bytes.IndexAny(num, "eE"); at >= 0 {
		mantissa, tail = num[:at], num[at+1:]
	}
	exponent, err := strconv.Atoi(string(tail))
	if err != nil {
		return "", false
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	sign := ""
	if len(whole) > 0 && (whole[0] == '-' || whole[0] == '+') {
		sign, whole = string(whole[:1]), whole[1:]
	}
	digits := string(whole) + string(fraction)
	if digits == "" || bytes.ContainsAny([]byte(digits), "+-.") {
		return "", false
	}
	exponent -= len(fraction)
	for exponent < 0 && len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	switch {
	case digits == "":
		return "0", true
	case exponent < 0:
		return "", false
	}
	for ; exponent > 0 && len(digits) < 20; exponent-- {
		digits += "0"
	}
	return sign + digits, true
}

func isUTF8(b []byte) bool { return utf8.Valid(b) }

// structure names a JSON value that is not a scalar.
func structure(raw []byte) string {
	if raw[0] == '{' {
		return "is an object"
	}
	return "is an array"
}

// unfit is the reason for text that is not of a type.
func unfit(text []byte, t spec.Type) string {
	article := " is not a "
	if t == spec.Integer {
		article = " is not an "
	}
	what := string(t)
	if t == spec.Object {
		article, what = " is not ", "JSON"
	}
	return show(text) + article + what
}

// show quotes a value of the outside for a reason, cut and in printable
// characters.
func show(text []byte) string {
	const limit = 60
	if len(text) > limit {
		return strconv.QuoteToGraphic(string(text[:limit])) + "..."
	}
	return strconv.QuoteToGraphic(string(text))
}
