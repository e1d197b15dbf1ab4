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
	WindowRows  = 2500 // that are looked at in one statement
	pageWindows = 4    // that are looked at for one page
)

// Window is what was found in a window.
type Window[T, P any] struct {
	Rows  []T
	Floor P    // the place of the last row of the window
	Cut   bool // there may be more behind it
}

// PageThrough looks at windows until a page is full, nothing is left, or enough
// was looked at. find reads up to want rows behind a place. more says that the
// list goes on behind next.
func PageThrough[T, P any](from P, limit int, placeOf func(T) P, find func(behind P, want int) (Window[T, P], error)) (page []T, next P, more bool, err error) {
	for range pageWindows {
		l, err := find(from, limit+1-len(page))
		if err != nil {
			return nil, next, false, err
		}
		page = append(page, l.Rows...)
		if len(page) > limit {
			page = page[:limit]
			return page, placeOf(page[limit-1]), true, nil
		}
		if !l.Cut {
			return page, next, false, nil
		}
		from = l.Floor
	}
	return page, from, true, nil
}

// Where gathers what a WHERE asks for, with the arguments.
type Where struct {
	Texts []string // with ? for arguments
	Args  []any
}

// Add appends a condition; each ? in it takes the next argument.
func (c *Where) Add(text string, args ...any) {
	c.Texts, c.Args = append(c.Texts, text), append(c.Args, args...)
}

// Join appends the conditions of another one.
func (c *Where) Join(d *Where) {
	c.Texts, c.Args = append(c.Texts, d.Texts...), append(c.Args, d.Args...)
}

// String numbers the arguments. Those that are added to args by hand follow.
func (c *Where) String() string {
	var b strings.Builder
	n := 0
	for i, part := range strings.Split(strings.Join(c.Texts, " and "), "?") {
		if i > 0 {
			n++
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// BelowID picks what comes after a row in the order of a column of ids, the newest
// first; empty picks all. No id is after all others: that depends on how the database
// sorts.
func BelowID(column, before string) *Where {
	c := &Where{}
	if before != "" {
		c.Add(column+" < ?", before)
	}
	return c
}

// Clone copies conditions, so that others can be added to each.
func (c *Where) Clone() *Where {
	return &Where{Texts: slices.Clone(c.Texts), Args: slices.Clone(c.Args)}
}

// WindowEnd reads the place of the last row of a window: of the rows that the
// conditions pick, in the given order. The columns, which give the place, and
// the conditions have to be in one index.
func WindowEnd[P any](ctx context.Context, tx *Tx, columns, from, order string, c *Where, scan func(Scanner) (P, error)) (end P, cut bool, err error) {
	c = c.Clone()
	c.Args = append(c.Args, WindowRows-1)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from %s where %s order by %s limit 1 offset $%d`, columns, from, c, order, len(c.Args)), c.Args...)
	found, err := ScanAll(rows, err, "look ahead", scan)
	if err != nil || len(found) == 0 {
		return end, false, err
	}
	return found[0], true, nil
}

// Limit is the clause that ends a statement, with its argument.
func (c *Where) Limit(n int) string {
	c.Args = append(c.Args, n)
	return " limit $" + strconv.Itoa(len(c.Args))
}
