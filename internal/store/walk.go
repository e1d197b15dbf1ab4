package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A list goes down an index, and what it is filtered by is mostly in that index
// or common. Where it is neither, a page would be looked for among everything
// there is. So a list looks at a window of rows at a time and at some windows
// for a page; after that the page ends early, and its cursor goes on behind the
// last row that was looked at. Nothing is left out, and no page costs more than
// the windows.
const (
	windowRows  = 2500 // that are looked at in one statement
	pageWindows = 8    // that are looked at for one page
)

// look is what was found in a window.
type look[T, P any] struct {
	rows  []T
	floor P    // the place of the last row of the window
	cut   bool // there may be more behind it
}

// pageThrough looks at windows until a page is full, nothing is left, or enough
// was looked at. find reads up to want rows behind a place. more says that the
// list goes on behind next.
func pageThrough[T, P any](from P, limit int, placeOf func(T) P, find func(behind P, want int) (look[T, P], error)) (page []T, next P, more bool, err error) {
	for range pageWindows {
		l, err := find(from, limit+1-len(page))
		if err != nil {
			return nil, next, false, err
		}
		page = append(page, l.rows...)
		if len(page) > limit {
			page = page[:limit]
			return page, placeOf(page[limit-1]), true, nil
		}
		if !l.cut {
			return page, next, false, nil
		}
		from = l.floor
	}
	return page, from, true, nil
}

// conditions gathers what a WHERE asks for, with the arguments.
type conditions struct {
	texts []string // with ? for arguments
	args  []any
}

// add appends a condition; each ? in it takes the next argument.
func (c *conditions) add(text string, args ...any) {
	c.texts, c.args = append(c.texts, text), append(c.args, args...)
}

// join appends the conditions of another one.
func (c *conditions) join(d *conditions) {
	c.texts, c.args = append(c.texts, d.texts...), append(c.args, d.args...)
}

// String numbers the arguments. Those that are added to args by hand follow.
func (c *conditions) String() string {
	var b strings.Builder
	n := 0
	for i, part := range strings.Split(strings.Join(c.texts, " and "), "?") {
		if i > 0 {
			n++
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// clone copies conditions, so that others can be added to each.
func (c *conditions) clone() *conditions {
	return &conditions{texts: slices.Clone(c.texts), args: slices.Clone(c.args)}
}

// windowEnd reads the place of the last row of a window: of the rows that the
// conditions pick, in the given order. The columns, which give the place, and
// the conditions have to be in one index.
func windowEnd[P any](ctx context.Context, tx *Tx, columns, from, order string, c *conditions, scan func(interface{ Scan(dest ...any) error }) (P, error)) (end P, cut bool, err error) {
	c = c.clone()
	c.args = append(c.args, windowRows-1)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from %s where %s order by %s limit 1 offset $%d`, columns, from, c, order, len(c.args)), c.args...)
	found, err := scanAll(rows, err, "look ahead", scan)
	if err != nil || len(found) == 0 {
		return end, false, err
	}
	return found[0], true, nil
}

// limit is the clause that ends a statement, with its argument.
func (c *conditions) limit(n int) string {
	c.args = append(c.args, n)
	return " limit $" + strconv.Itoa(len(c.args))
}
