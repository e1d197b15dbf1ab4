package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Rowset makes rows that one statement reads as a table v: what many want to read
// or change is one statement with it. Columns are such as "id text, at bigint";
// a text is a string or *string, a bigint an int64 or *int64. The arguments follow
// those given.
func (tx *Tx) Rowset(before []any, columns string, rows [][]any) (table string, args []any) {
	list := strings.Split(columns, ", ")
	names, types := make([]string, len(list)), make([]string, len(list))
	for i, c := range list {
		names[i], types[i], _ = strings.Cut(c, " ")
	}
	return tx.db.dialect.rowset(before, names, types, rows)
}

// columnOf is a column of rows that either has no null or may have.
func columnOf[T any](rows [][]any, i int) []*T {
	out := make([]*T, len(rows))
	for k, row := range rows {
		switch v := row[i].(type) {
		case T:
			out[k] = &v
		case *T:
			out[k] = v
		default:
			panic(fmt.Sprintf("column %d of a row set has a %T", i, v))
		}
	}
	return out
}

// ErrSetRefused ends a transaction of many of which one cannot be done as it was
// planned. Each may still be done by itself.
var ErrSetRefused = errors.New("one of many cannot be done together with the others")

// ChangeAll runs a statement that must change so many rows, else the transaction
// fails with ErrSetRefused.
func (tx *Tx) ChangeAll(ctx context.Context, rows int, op, sql string, args ...any) error {
	if err := tx.Expect(ctx, rows, fmt.Errorf("%s: %w", op, ErrSetRefused), sql, args...); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// goByIndex keeps PostgreSQL from reading whole tables for the rows of a set, which
// pays off only while they are small: every statement for a set has its index. A
// plan that was made while a table was small may be a bad one for long, so that
// those of large sets are made anew.
const goByIndex = `select set_config('plan_cache_mode', $1, true), set_config(name, 'off', true) from unnest(array['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_material', 'enable_bitmapscan', 'jit']) name`

// planSets is from how many rows on it pays to make a plan.
const planSets = 16

// GoByIndex begins a transaction of statements for sets that are not small: each
// has its index, whatever PostgreSQL knows of the tables yet.
func (tx *Tx) GoByIndex() {
	if t, ok := tx.conn.(*pgTx); ok {
		t.post(posted{command: command{goByIndex, []any{"auto"}}})
	}
}

// FenceAll is Fence for all of these, which may have a bucket in common. It begins
// a transaction of statements for sets.
func (tx *Tx) FenceAll(ctx context.Context, fences []Fence) error {
	var rows [][]any
	var buckets []int
	seen := map[Fence]bool{}
	for _, f := range fences {
		if !seen[f] {
			seen[f] = true
			rows, buckets = append(rows, []any{int64(f.Bucket), f.Node, f.Epoch}), append(buckets, f.Bucket)
		}
	}
	if t, ok := tx.conn.(*pgTx); ok {
		mode := "auto"
		if len(fences) > planSets {
			mode = "force_custom_plan"
		}
		t.post(posted{command: command{goByIndex, []any{mode}}})
		t.post(posted{command: command{lockShared, []any{buckets}}})
	}
	table, args := tx.Rowset(nil, "bucket bigint, node text, epoch bigint", rows)
	return tx.Expect(ctx, len(rows), errLeaseLost(), `select 1 from `+table+` cross join buckets b where b.id = v.bucket and b.node = v.node and b.epoch = v.epoch`, args...)
}
