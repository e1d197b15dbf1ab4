// Package calendar keeps the calendars: days that schedules leave out together.
//
// A calendar belongs to everybody. Each change is a version that stays. Whoever
// leaves out its days keeps the number of the version that it was planned with,
// so that what was in force can be told later, and no start has to look a
// calendar up. A change tells everybody who uses the calendar, in its own
// transaction: when it is committed, all of them are planned anew.
package calendar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/calendar/spec"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/calendarstore"
	"github.com/pawlrun/pawl/internal/when"
)

// User is a kind whose lanes leave out the days of calendars.
type User interface {
	// UsersOf names the lanes of an owner that leave out the days of a calendar,
	// such as schedule nightly-backup, and counts those of everybody. An empty
	// owner is everybody.
	UsersOf(ctx context.Context, tx *store.Tx, calendar, owner string) (names []string, all int, err error)
	// CalendarChanged plans them anew. An error takes the change back.
	CalendarChanged(ctx context.Context, tx *store.Tx, calendar string, revision int64, by string) error
}

// Book has the calendars. The zero Book is ready to use.
type Book struct {
	users []User

	mu    sync.Mutex
	known map[version]when.Calendar // guarded by mu
}

type version struct {
	name     string
	revision int64
}

// mostKnown is how many versions a process remembers.
const mostKnown = 1000

// Use makes a kind known whose lanes are to be planned anew. It must be called
// before anything changes.
func (b *Book) Use(u User) { b.users = append(b.users, u) }

// Find reads a version of a calendar. Versions never change, so each is read once
// by a process.
func (b *Book) Find(ctx context.Context, tx *store.Tx, name string, revision int64) (when.Calendar, error) {
	v := version{name, revision}
	b.mu.Lock()
	c, ok := b.known[v]
	b.mu.Unlock()
	if ok {
		return c, nil
	}
	days, err := calendarstore.In(tx).Version(ctx, name, revision)
	if errors.Is(err, pawl.ErrNotFound) && Assumed(ctx, name) {
		return when.Calendar{}, nil
	}
	if err != nil {
		return c, err
	}
	if c, err = when.NewCalendar(days); err != nil {
		return c, err
	}
	tx.AfterCommit(func() { b.remember(v, c) }) // what is taken back gives its number to another one
	return c, nil
}

// Assumed reports whether a dry run takes a calendar to be there. Its days are not known.
func Assumed(ctx context.Context, name string) bool { return lane.Assumed(ctx, spec.Kind, name) }

func (b *Book) remember(v version, c when.Calendar) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= mostKnown || b.known == nil {
		b.known = map[version]when.Calendar{}
	}
	b.known[v] = c
}

// Share finds the version that a calendar has now, and keeps it from being
// changed until the transaction ends.
func (b *Book) Share(ctx context.Context, tx *store.Tx, name string) (int64, error) {
	c, err := calendarstore.In(tx).Share(ctx, name)
	return c.Revision, err
}

// Current is Share for whoever changes nothing.
func (b *Book) Current(ctx context.Context, tx *store.Tx, name string) (int64, error) {
	c, err := calendarstore.In(tx).Get(ctx, name)
	return c.Revision, err
}

// What applying a definition did.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// Apply makes a calendar or changes it, and plans whatever uses it anew, in the
// caller's transaction. The same days change nothing.
func (b *Book) Apply(ctx context.Context, tx *store.Tx, in client.CalendarRequest, by string) (what string, was, now calendarstore.Calendar, err error) {
	if !when.IsCalendarName(in.Name) {
		return "", was, now, &pawl.Error{Code: pawl.CodeInvalid, Op: "apply calendar", Msg: "the calendar is not valid", Fields: []pawl.Field{{
			Pointer: "/name", Message: "must begin with a letter or digit and have at most 128 letters, digits, dots, hyphens and underscores",
		}}}
	}
	if _, err := when.NewCalendar(in.Days); err != nil {
		return "", was, now, err
	}
	was, err = calendarstore.In(tx).Hold(ctx, in.Name)
	what = Updated
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		what = Created
	case err != nil:
		return "", was, now, err
	case slices.Equal(was.Days, in.Days):
		return Unchanged, was, was, nil
	}
	if in.Days == nil {
		in.Days = []string{}
	}
	if now, err = calendarstore.In(tx).Put(ctx, in.Name, in.Days, by); err != nil {
		return "", was, now, err
	}
	for _, u := range b.users {
		if err := u.CalendarChanged(ctx, tx, in.Name, now.Revision, by); err != nil {
			return "", was, now, err
		}
	}
	return what, was, now, tx.Audit(ctx, by, "calendar."+what, "calendar:"+in.Name, map[string]any{"days": len(in.Days), "revision": now.Revision})
}

// mostNamed is how many users of a calendar a refusal names.
const mostNamed = 5

// Delete takes a calendar out of use, in the caller's transaction. One that is
// used stays; the refusal names what the owner may see.
func (b *Book) Delete(ctx context.Context, tx *store.Tx, name, owner, by string) error {
	if _, err := calendarstore.In(tx).Hold(ctx, name); err != nil {
		return err
	}
	used, all, err := b.UsersOf(ctx, tx, name, owner)
	if err != nil {
		return err
	}
	if all > 0 {
		used = used[:min(len(used), mostNamed)]
		if others := all - len(used); others > 0 {
			used = append(used, fmt.Sprintf("%d others", others))
		}
		return lane.Refuse("delete calendar", "calendar_used", fmt.Sprintf("the calendar %q is used by %s", name, strings.Join(used, ", ")), "Take it out of their except: first.")
	}
	if err := calendarstore.In(tx).Delete(ctx, name); err != nil {
		return err
	}
	return tx.Audit(ctx, by, "calendar.delete", "calendar:"+name, nil)
}

// UsersOf names what of an owner leaves out the days of a calendar, and counts
// what of everybody does; see User.
func (b *Book) UsersOf(ctx context.Context, tx *store.Tx, name, owner string) (names []string, all int, err error) {
	for _, u := range b.users {
		more, n, err := u.UsersOf(ctx, tx, name, owner)
		if err != nil {
			return nil, 0, err
		}
		names, all = append(names, more...), all+n
	}
	return names, all, nil
}
