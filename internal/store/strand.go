package store

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A list that is filtered in several ways has no one index. It is put together
// from strands, each of which goes down one.

// Place is how far a list was read: the last row of a page.
type Place struct {
	CreatedAt time.Time
	ID        string
}

func scanPlace(row Scanner) (c Place, err error) {
	var at int64
	err = row.Scan(&at, &c.ID)
	c.CreatedAt = FromMillis(at)
	return c, err
}

// Compare orders places by time, then by id.
func (c Place) Compare(d Place) int {
	return cmp.Or(c.CreatedAt.Compare(d.CreatedAt), cmp.Compare(c.ID, d.ID))
}

// Strand is a part of a list of runs that goes down one index: base is what the
// index answers, rest is looked for in it.
type Strand struct{ Base, Rest Where }

// Look adds a column to what is looked for. It is compared row by row: as it stands it
// could be in another index, and SQLite, which does not know how many rows have a value,
// would go down that one, through everything that there is.
func (s *Strand) Look(column, value string) { s.Rest.Add(column+" || '' = ?", value) }

// Order is a direction in which runs are listed.
type Order struct {
	SQL          string
	beyond, upTo string // comparisons of places
	sign         int
}

// NewestFirst goes back in time.
func NewestFirst() Order { return Order{"created_at desc, id desc", "<", ">=", -1} }

// OldestFirst goes forward in time.
func OldestFirst() Order { return Order{"created_at, id", ">", "<=", 1} }

// MergeStrands reads a window of every strand and puts them together, up to
// where the first of the windows ends.
func MergeStrands[T any](strands []Strand, o Order, want int, placeOf func(T) Place, lookAt func(Strand) (Window[T, Place], error)) (all Window[T, Place], err error) {
	for _, s := range strands {
		l, err := lookAt(s)
		if err != nil {
			return all, err
		}
		all.Rows = append(all.Rows, l.Rows...)
		if l.Cut && (!all.Cut || o.sign*l.Floor.Compare(all.Floor) < 0) {
			all.Cut, all.Floor = true, l.Floor
		}
	}
	slices.SortFunc(all.Rows, func(a, b T) int { return o.sign * placeOf(a).Compare(placeOf(b)) })
	if all.Cut {
		all.Rows = slices.DeleteFunc(all.Rows, func(r T) bool { return o.sign*placeOf(r).Compare(all.Floor) > 0 })
	}
	if len(all.Rows) > want {
		all.Rows = all.Rows[:want]
	}
	return all, nil
}

// Narrow are the conditions of a window of a strand.
func Narrow[T any](ctx context.Context, tx *Tx, table string, s Strand, o Order, from Place) (c *Where, l Window[T, Place], err error) {
	c = s.Base.Clone()
	if from.ID != "" {
		c.Add("(created_at, id) "+o.beyond+" (?, ?)", Millis(from.CreatedAt), from.ID)
	}
	if len(s.Rest.Texts) > 0 {
		if l.Floor, l.Cut, err = WindowEnd(ctx, tx, "created_at, id", table, o.SQL, c, scanPlace); err != nil {
			return nil, l, err
		}
		c.Join(&s.Rest)
		if l.Cut {
			c.Add("(created_at, id) "+o.upTo+" (?, ?)", Millis(l.Floor.CreatedAt), l.Floor.ID)
		}
	}
	return c, l, nil
}
