package store

import (
	"context"
	"slices"
	"testing"
)

// Statement is one that was sent to the database.
type Statement struct {
	Text string
	Args []any
}

// recorder notes the statements that pass through it.
type recorder struct {
	conn
	sent []Statement
}

func (r *recorder) exec(ctx context.Context, sql string, args []any) (int64, error) {
	r.sent = append(r.sent, Statement{sql, args})
	return r.conn.exec(ctx, sql, args)
}

func (r *recorder) query(ctx context.Context, sql string, args []any) (Rows, error) {
	r.sent = append(r.sent, Statement{sql, args})
	return r.conn.query(ctx, sql, args)
}

// Statements runs fn and tells which statements it sent.
func Statements(t testing.TB, db *DB, fn Func) []Statement {
	t.Helper()
	var sent []Statement
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		r := &recorder{conn: tx.conn}
		tx.conn = r
		err := fn(ctx, tx)
		sent = r.sent
		return err
	})
	return sent
}

func TestBatchesCoverTheListInFewSizes(t *testing.T) {
	sizes := map[int]bool{}
	for n := range 3000 {
		list := make([]int, n)
		for i := range list {
			list[i] = i
		}
		var got []int
		for batch := range Batches(list) {
			sizes[len(batch)] = true
			got = append(got, batch...)
		}
		if !slices.Equal(got, list) {
			t.Fatalf("%d elements came back as %d", n, len(got))
		}
	}
	if len(sizes) > 24 || sizes[0] || !sizes[rowsAtOnce] {
		t.Errorf("%d sizes: %v", len(sizes), sizes)
	}
	for range Batches([]int{1, 2, 3}) {
		break // a caller may stop
	}
}

func TestValuesAreNumberedThroughout(t *testing.T) {
	v := Values{}
	v.Row("a", 1)
	v.Row("b", 2)
	if v.String() != "($1,$2),($3,$4)" || !slices.Equal(v.Args, []any{"a", 1, "b", 2}) {
		t.Errorf("%s with %v", v.String(), v.Args)
	}
	text, args := In([]any{"x"}, []int64{7, 8})
	if text != "($2,$3)" || !slices.Equal(args, []any{"x", int64(7), int64(8)}) {
		t.Errorf("%s with %v", text, args)
	}
}
