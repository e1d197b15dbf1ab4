// Package timing is when a lane runs, as its row keeps it: the calendars and the
// anchor that its rule was planned with, and which of the instants that came due
// late it runs for.
package timing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/calendar"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// Plan is what the instants of a rule depend on besides what is written.
type Plan struct {
	Anchor    int64            `json:"anchor,omitempty"`    // where the interval counts from, in milliseconds; 0: from the run before
	Since     int64            `json:"since,omitempty"`     // instants before it were never promised, in milliseconds
	Calendars map[string]int64 `json:"calendars,omitempty"` // the versions that it was planned with
}

// Decode reads what Encode wrote.
func Decode(text string) (p Plan, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read the plan of a schedule: %w", err)
	}
	return p, nil
}

// Encode is the text of a row, empty if there is nothing.
func (p Plan) Encode() string {
	raw, _ := json.Marshal(p) // of types that can be JSON
	if string(raw) == "{}" {
		return ""
	}
	return string(raw)
}

// Compile makes the schedule of a rule. The seed tells the jitter of one lane from
// that of another.
func (p Plan) Compile(ctx context.Context, tx *store.Tx, book *calendar.Book, seed string, rule when.Rule) (when.Schedule, error) {
	c := when.Context{Seed: seed, Calendar: func(name string) (when.Calendar, error) {
		return book.Find(ctx, tx, name, p.Calendars[name])
	}}
	if p.Anchor != 0 {
		c.Anchor = time.UnixMilli(p.Anchor).UTC()
	}
	return rule.Schedule(c)
}

// Hold notes the versions of the calendars that a rule names, which nobody can
// change until the transaction ends, or with dry those of now. Those that are not
// there are faults.
func (p *Plan) Hold(ctx context.Context, tx *store.Tx, book *calendar.Book, rule when.Rule, dry bool) (faults []pawl.Field, err error) {
	p.Calendars = nil
	find := book.Share
	if dry {
		find = book.Current
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(rule.Calendars()))) {
		revision, err := find(ctx, tx, name)
		if errors.Is(err, pawl.ErrNotFound) && calendar.Assumed(ctx, name) {
			continue
		}
		if errors.Is(err, pawl.ErrNotFound) {
			at := slices.IndexFunc(rule.Except, func(e string) bool { return strings.TrimSpace(e) == when.CalendarPrefix+name })
			faults = append(faults, pawl.Field{Pointer: fmt.Sprintf("/except/%d", at), Message: fmt.Sprintf("there is no calendar %s", pawl.Quote(name))})
			continue
		}
		if err != nil {
			return nil, err
		}
		if p.Calendars == nil {
			p.Calendars = map[string]int64{}
		}
		p.Calendars[name] = revision
	}
	return faults, nil
}

// What lanes call the times that they run at.
const (
	Slot    = "slot"    // of a schedule
	Instant = "instant" // of a source or a producer
)

// Fixed reports whether the interval of a source or a producer counts from when it is
// planned: one whose definition says what becomes of missed instants does.
func Fixed(rule when.Rule, missed bool) bool {
	return rule.Interval != "" && rule.From == "" && missed
}

// Foresee is NeverRuns for what no server has planned yet, by the calendars at hand.
// One that is not at hand leaves out nothing. A rule that is not valid is for others
// to refuse.
func Foresee(rule when.Rule, fixed bool, calendars map[string]when.Calendar, now time.Time, one string) (why pawl.Field, never bool) {
	c := when.Context{Calendar: func(name string) (when.Calendar, error) { return calendars[name], nil }}
	if fixed {
		c.Anchor = now
	}
	times, err := rule.Schedule(c)
	if err != nil {
		return why, false
	}
	return NeverRuns(rule, times, now, one)
}

// NeverRuns says why a rule has no instant to come; false: it has one. one is what a
// lane calls an instant.
func NeverRuns(rule when.Rule, times when.Schedule, now time.Time, one string) (why pawl.Field, never bool) {
	if _, ok := times.Next(now); ok {
		return why, false
	}
	return neverRuns(rule, times, now, one), true
}

func neverRuns(rule when.Rule, times when.Schedule, now time.Time, one string) pawl.Field {
	switch _, ever := times.Next(time.Time{}); {
	case rule.At != "" && ever:
		return pawl.Field{Pointer: "/at", Message: fmt.Sprintf("it never runs: %s is in the past (it is %s now)", rule.At, pawl.FormatTime(now))}
	case rule.Until != "" && (ever || rule.From == "" && len(rule.Except) == 0): // an interval that counts from now has no past
		return pawl.Field{Pointer: "/until", Message: fmt.Sprintf("it never runs: nothing is left before %s", rule.Until)}
	case len(rule.Except) == 0:
		return pawl.Field{Pointer: "/until", Message: fmt.Sprintf("it never runs: no %s is between %s and %s", one, rule.From, rule.Until)}
	}
	return pawl.Field{Pointer: "/except", Message: "it never runs: the exceptions leave out every " + one}
}

// Replan is a plan with another version of a calendar, and the schedule that it
// makes. It fails if the lane would never run again because of it; who names the
// lane in the refusal.
func (p Plan) Replan(ctx context.Context, tx *store.Tx, book *calendar.Book, c Change) (next Plan, times when.Schedule, err error) {
	next = p
	next.Calendars = map[string]int64{c.Calendar: c.Revision}
	for name, revision := range p.Calendars {
		if name != c.Calendar {
			next.Calendars[name] = revision
		}
	}
	before, err := p.Compile(ctx, tx, book, c.Seed, c.Rule)
	if err != nil {
		return next, times, err
	}
	if times, err = next.Compile(ctx, tx, book, c.Seed, c.Rule); err != nil {
		return next, times, err
	}
	_, had := before.Next(tx.Now)
	if _, has := times.Next(tx.Now); had && !has {
		return next, times, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "apply calendar", Msg: "with these days something that uses the calendar never runs",
			Hint:   "Leave days on which it can run, or delete it first.",
			Fields: []pawl.Field{{Pointer: "/days", Message: fmt.Sprintf("the %s never runs: the exceptions leave out every instant", c.Who)}},
		}
	}
	return next, times, nil
}

// Change is a calendar that changed, for a lane that uses it.
type Change struct {
	Calendar string
	Revision int64
	Seed     string
	Rule     when.Rule
	Who      string // the lane, such as schedule 0190...
}
