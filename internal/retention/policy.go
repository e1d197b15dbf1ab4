package retention

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// Ages say for how long each kind is kept; Forever is zero.
type Ages map[Kind]time.Duration

// Default are the ages of who says nothing.
func Default() Ages {
	out := Ages{}
	for _, r := range rules() {
		out[r.kind] = r.standard
	}
	return out
}

// Untouched are the ages of a lane of which nothing is removed.
func Untouched() Ages {
	out := Ages{}
	for _, r := range rules() {
		if r.ofLanes {
			out[r.kind] = Forever
		}
	}
	return out
}

// With are the ages with others in their place.
func (a Ages) With(other Ages) Ages {
	out := maps.Clone(a)
	maps.Copy(out, other)
	return out
}

// Texts writes the ages as Parse reads them, in the order of the kinds.
func (a Ages) Texts() []string {
	var out []string
	for _, k := range Kinds() {
		if age, ok := a[k]; ok {
			out = append(out, string(k)+"="+FormatAge(age))
		}
	}
	return out
}

// Parse reads ages such as runs=30d. Of two for one kind the last counts.
func Parse(texts []string) (Ages, error) {
	return parse(texts, func(rule) bool { return true })
}

// ParseLane is Parse for what a definition says of its own lane: only of what
// lanes have.
func ParseLane(texts []string) (Ages, error) {
	return parse(texts, func(r rule) bool { return r.ofLanes })
}

func parse(texts []string, may func(rule) bool) (Ages, error) {
	out := Ages{}
	for _, text := range texts {
		name, age, found := strings.Cut(text, "=")
		if !found {
			return nil, invalid("Write KIND=AGE, such as runs=30d.", "%s has no age", pawl.Quote(text))
		}
		r, err := find(strings.TrimSpace(name), may)
		if err != nil {
			return nil, err
		}
		if out[r.kind], err = r.age(strings.TrimSpace(age)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func find(name string, may func(rule) bool) (rule, error) {
	var names []string
	for _, r := range rules() {
		switch {
		case !may(r) && string(r.kind) == name:
			return rule{}, invalid("Set it with --keep "+name+"=AGE when you start the server.", "%s are not those of one lane", name)
		case !may(r):
		case string(r.kind) == name:
			return r, nil
		default:
			names = append(names, string(r.kind))
		}
	}
	return rule{}, invalid(pawl.Suggest(name, names, "")+" Kinds: "+strings.Join(names, ", ")+".", "there is nothing called %s to keep", pawl.Quote(name))
}

// longest bounds ages, so that an instant can be computed from every one.
const longest = 36500 * day

// shortest bounds ages below: what is shorter is a slip of a unit, and would have things
// removed before anybody can look at them.
const shortest = time.Second

// age reads the age of a kind, and refuses what its rules cannot live with.
func (r rule) age(text string) (time.Duration, error) {
	if text == "forever" {
		return Forever, nil
	}
	d, err := ParseAge(text)
	switch {
	case err != nil:
		return 0, invalid("Write an age such as 12h, 30d or 2w, or forever.", "%s: %s is not an age", r.kind, pawl.Quote(text))
	case d <= 0:
		return 0, invalid("Write an age above zero, or forever.", "%s: %s keeps nothing", r.kind, pawl.Quote(text))
	case d > longest:
		return 0, invalid("Write forever.", "%s: %s is longer than 100 years", r.kind, pawl.Quote(text))
	case d < shortest:
		return 0, invalid("Write an age such as 12h, 30d or 2w; the shortest is "+FormatAge(shortest)+".", "%s: %s is too short", r.kind, pawl.Quote(text))
	case d < r.least:
		return 0, invalid(fmt.Sprintf("Keep them for %s or longer: %s.", FormatAge(r.least), r.why), "%s: %s is too short", r.kind, pawl.Quote(text))
	}
	return d, nil
}

func invalid(hint, format string, values ...any) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "read ages", Msg: fmt.Sprintf(format, values...), Hint: strings.TrimSpace(hint)}
}

var errAge = errors.New("not an age")

// units are those that time.ParseDuration lacks; a day has 24 hours.
func units() map[string]time.Duration {
	return map[string]time.Duration{"d": day, "w": 7 * day}
}

// ParseAge reads 90s, 12h, 30d, 2w, or several such as 1d12h.
func ParseAge(text string) (time.Duration, error) {
	var total time.Duration
	for rest := text; rest != "" || text == ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		word := len(rest[digits:]) - len(strings.TrimLeft(rest[digits:], "abcdefghijklmnopqrstuvwxyzµ"))
		if digits == 0 || word == 0 {
			return negative(text)
		}
		part, err := parsePart(rest[:digits], rest[digits:digits+word])
		if err != nil {
			return 0, err
		}
		if total += part; total < 0 || total > 2*longest {
			total = 2 * longest
		}
		rest = rest[digits+word:]
	}
	return total, nil
}

// negative tells an age below zero from what is no age at all.
func negative(text string) (time.Duration, error) {
	if less, ok := strings.CutPrefix(text, "-"); ok && !strings.HasPrefix(less, "-") {
		d, err := ParseAge(less)
		return -d, err
	}
	return 0, errAge
}

func parsePart(number, unit string) (time.Duration, error) {
	length, ok := units()[unit]
	if !ok {
		return time.ParseDuration(number + unit)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n > float64(2*longest/length) {
		return 2 * longest, err
	}
	return time.Duration(n * float64(length)), nil
}

// FormatAge writes an age as people do.
func FormatAge(d time.Duration) string {
	switch {
	case d == Forever:
		return "forever"
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return d.String()
}

// Lane names a lane: its kind and its lane.
type Lane struct {
	Kind pawl.Kind
	Lane string
}

// Policy is what is kept for how long: the ages of all, and those of lanes whose
// definitions say something else.
type Policy struct {
	All   Ages
	Lanes map[Lane]Ages
}

// Of are the ages of one lane.
func (p Policy) Of(l Lane) Ages { return p.All.With(p.Lanes[l]) }

// Special are the lanes that have an age of their own for a kind, sorted.
func (p Policy) Special(k Kind) []Lane {
	var out []Lane
	for l, ages := range p.Lanes {
		if _, ok := ages[k]; ok {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Lane) int { return strings.Compare(string(a.Kind)+" "+a.Lane, string(b.Kind)+" "+b.Lane) })
	return out
}
