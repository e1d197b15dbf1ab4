package store

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrBudget says that more text was read than the budget of a context allows.
var ErrBudget = errors.New("more was read than may be")

type budgetKey struct{}

// WithBudget lets the queries of a context read this many bytes of text
// together. The one that passes the limit fails with ErrBudget, while it reads:
// what a list answers, and what it needs on the way, is bounded whatever is in
// its rows.
func WithBudget(ctx context.Context, bytes int64) context.Context {
	left := &atomic.Int64{}
	left.Store(bytes)
	return context.WithValue(ctx, budgetKey{}, left)
}

// budgeted counts what is read if the context has a budget.
func budgeted(ctx context.Context, rows Rows, err error) (Rows, error) {
	left, ok := ctx.Value(budgetKey{}).(*atomic.Int64)
	if !ok || err != nil {
		return rows, err
	}
	return countedRows{rows, left}, nil
}

type countedRows struct {
	Rows
	left *atomic.Int64
}

func (r countedRows) Scan(dest ...any) error {
	if err := r.Rows.Scan(dest...); err != nil {
		return err
	}
	var n int
	for _, d := range dest {
		n += textLength(d)
	}
	if r.left.Add(-int64(n)) < 0 {
		return ErrBudget
	}
	return nil
}

// textLength is the length of a text that was scanned; other values are small.
func textLength(dest any) int {
	switch d := dest.(type) {
	case *string:
		return len(*d)
	case **string:
		if *d != nil {
			return len(**d)
		}
	case *[]byte:
		return len(*d)
	case *any:
		switch v := (*d).(type) {
		case string:
			return len(v)
		case []byte:
			return len(v)
		}
	}
	return 0
}
