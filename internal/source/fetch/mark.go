package fetch

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/when"
)

// maxMark is the longest incremental cursor that is kept, in bytes.
const maxMark = 512

// mark is an incremental cursor with what it means, read once.
type mark struct {
	text    string
	kind    markKind
	integer int64
	number  float64
	instant time.Time
}

type markKind int

const (
	markNone markKind = iota
	markInteger
	markNumber
	markInstant
	markText
)

func readMark(text []byte) mark {
	m := mark{kind: markText}
	if v, ok := shortInteger(text); ok && len(text) <= 18 {
		m.kind, m.integer, m.number = markInteger, v, float64(v)
	} else if at, ok := parseInstant(text); ok {
		m.kind, m.instant = markInstant, at
	} else if looksNumeric(text) {
		if v, err := strconv.ParseFloat(string(text), 64); err == nil {
			m.kind, m.number = markNumber, v
		}
	}
	return m
}

// raise makes m the greater of itself and text. What could not be stored or
// sent is no mark.
func (m *mark) raise(text []byte) {
	if len(text) == 0 || len(text) > maxMark || string(text) == m.text ||
		!utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
		return
	}
	other := readMark(text)
	if m.kind == markNone || compareMarks(other, *m, string(text)) > 0 {
		other.text = string(text)
		*m = other
	}
}

// compareMarks orders a, whose text is given, and b.
func compareMarks(a, b mark, aText string) int {
	switch {
	case a.kind == markInteger && b.kind == markInteger:
		return cmp.Compare(a.integer, b.integer)
	case a.isNumber() && b.isNumber():
		if c := cmp.Compare(a.number, b.number); c != 0 {
			return c
		}
		return compareDigits(aText, b.text)
	case a.kind == markInstant && b.kind == markInstant:
		return a.instant.Compare(b.instant)
	}
	return cmp.Compare(aText, b.text)
}

func (m mark) isNumber() bool { return m.kind == markInteger || m.kind == markNumber }

// compareDigits orders integers that are too long for a float to tell apart;
// for all else it sees no difference.
func compareDigits(a, b string) int {
	if strings.Trim(a, "0123456789") != "" || strings.Trim(b, "0123456789") != "" {
		return 0
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// Greater is the order of incremental marks: that of numbers, if both are
// numbers, that of instants, if both are instants, else that of their text.
func Greater(a, b string) bool {
	left, right := readMark([]byte(a)), readMark([]byte(b))
	right.text = b
	return compareMarks(left, right, a) > 0
}

// Since returns what to ask for: the initial value if there is no mark yet,
// else the mark less the lookback, written as the mark is. The lookback is an
// interval, or a plain number for marks that are numbers; an interval taken
// off an integer takes it for seconds or milliseconds since 1970.
func Since(inc spec.Incremental, mark string) (string, error) {
	if mark == "" {
		return inc.Initial, nil
	}
	if inc.Lookback == "" {
		return mark, nil
	}
	m := readMark([]byte(mark))
	if n, err := strconv.ParseInt(inc.Lookback, 10, 64); err == nil && m.kind == markInteger {
		return strconv.FormatInt(m.integer-n, 10), nil
	}
	back, err := when.ParseInterval(inc.Lookback)
	if err != nil {
		return "", err
	}
	switch m.kind {
	case markInstant:
		return m.instant.Add(-back).Format(layoutOf(mark)), nil
	case markInteger:
		if m.integer > mostSeconds {
			return strconv.FormatInt(m.integer-back.Milliseconds(), 10), nil
		}
		return strconv.FormatInt(m.integer-int64(back/time.Second), 10), nil
	case markNumber:
		return strconv.FormatFloat(m.number-back.Seconds(), 'f', -1, 64), nil
	default:
		return "", &pawl.Error{
			Code: pawl.CodeInvalid, Op: "go back from the incremental mark",
			Msg:  "the mark is neither an instant nor a number, so there is no way back from it",
			Hint: "remove incremental.lookback, or choose another incremental.cursorPath",
		}
	}
}

// layoutOf returns the layout for time.Format in which an instant is written.
func layoutOf(text string) string {
	switch {
	case len(text) == 8:
		return "20060102"
	case len(text) == 10:
		return "2006-01-02"
	}
	layout := "2006-01-02" + text[10:11] + "15:04"
	rest := text[16:]
	if strings.HasPrefix(rest, ":") {
		layout, rest = layout+":05", rest[3:]
	}
	if strings.HasPrefix(rest, ".") {
		digits := len(rest[1:]) - len(strings.TrimLeft(rest[1:], "0123456789"))
		layout, rest = layout+"."+strings.Repeat("0", digits), rest[1+digits:]
	}
	zone := strings.TrimPrefix(rest, " ")
	layout += rest[:len(rest)-len(zone)]
	switch {
	case zone == "" || zone == "UTC" || zone == "z":
		return layout + zone // letters that are no part of a layout stand for themselves
	case len(zone) == 3:
		return layout + "-07"
	case len(zone) == 5:
		return layout + "-0700"
	case zone == "Z":
		return layout + "Z07:00"
	}
	return layout + "-07:00"
}
