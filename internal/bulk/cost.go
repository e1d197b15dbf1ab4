package bulk

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Cost is what a statement did, measured while it ran on real rows.
type Cost struct {
	// Scans are the tables that are read whole, without an index.
	Scans []string
	// Steps is how much was done: instructions of SQLite's machine, or rows that
	// PostgreSQL looked at.
	Steps int64
	// Pages is how many pages of the database were looked at, from memory or from
	// the disk. It also counts what is not a step: rows that are dead, and a count
	// of a whole table, which is one instruction of SQLite's machine.
	Pages int64
	Plan  string
}

// Meter runs statements and tells what they cost. What they change is undone.
type Meter interface {
	Cost(ctx context.Context, sql string, args []any) (Cost, error)
	Close()
}

// NewMeter makes the meter of the database with this URL.
func NewMeter(ctx context.Context, url string) (Meter, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return newLiteMeter(strings.TrimPrefix(path, "//"))
	}
	return newPostgresMeter(ctx, url)
}

// plain turns an argument into what both drivers make of it: nil, a whole
// number or a text.
func plain(arg any) (any, error) {
	switch v := arg.(type) {
	case nil, string, int64, []int, []int64, []*int64, []string, []*string: // lists are PostgreSQL's own
		return v, nil
	case int:
		return int64(v), nil
	case *string:
		if v == nil {
			return nil, nil //nolint:nilnil // this is how NULL is told
		}
		return *v, nil
	case *int64:
		if v == nil {
			return nil, nil //nolint:nilnil // this is how NULL is told
		}
		return *v, nil
	case time.Time:
		return nil, fmt.Errorf("instants are stored as numbers")
	case fmt.Stringer:
		return v.String(), nil
	}
	return fmt.Sprint(arg), nil // named kinds of text
}
