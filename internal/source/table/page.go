package table

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// byName is the order of columns for rowDigest.
func byName(columns []column) []int {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(columns[a].name, columns[b].name) })
	return order
}

// pageWriter writes one page.
type pageWriter struct {
	plan     *Plan
	db       DB
	shape    *shape
	share    constants
	places   []int // of the identity
	order    []int // of the columns in a digest; nil: there is none
	lastWins bool
	want     bool
	rows     *chunk
	read     int // rows of the page so far
	buffer   []byte
	values   []any
	result   Result
}

func (w *pageWriter) all(ctx context.Context, rows iter.Seq2[[]any, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		w.read++
		if err := w.take(row); err != nil {
			return err
		}
		if w.rows.full() {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return w.flush(ctx)
}

// take puts a row into the chunk, or rejects it.
func (w *pageWriter) take(row []any) error {
	fields := w.plan.fields
	if len(row) != len(fields) {
		return &pawl.Error{Code: pawl.CodeInternal, Msg: fmt.Sprintf("row %d has %d values for %d columns", w.read, len(row), len(fields))}
	}
	w.values = w.values[:0]
	for i, v := range row {
		n, reason := normal(w.plan.sql, fields[i].kind, v)
		if reason != "" {
			w.reject(fields[i].name + " " + reason)
			return nil
		}
		if text, ok := n.(string); ok {
			w.rows.bytes += len(text)
		}
		w.values = append(w.values, n)
	}
	if w.order != nil {
		var text string
		text, w.buffer = rowDigest(w.buffer, fields, w.order, w.values)
		w.values = append(w.values, text)
	}
	w.buffer = w.buffer[:0]
	for _, i := range w.places {
		if w.values[i] == nil {
			w.reject("has no value for the key column " + w.shape.columns[i].name)
			return nil
		}
		w.buffer = appendValue(w.buffer, w.values[i])
	}
	switch {
	case !w.lastWins && !w.want: // the unique index leaves the others out
		w.rows.add(w.values)
	case !w.rows.addOnce(w.buffer, w.values, w.lastWins):
		w.result.Same++
	}
	return nil
}

func (w *pageWriter) reject(reason string) {
	w.result.Rejected = append(w.result.Rejected, Rejected{w.read, reason})
}

// flush writes the chunk and begins another.
func (w *pageWriter) flush(ctx context.Context) error {
	defer w.rows.clear()
	switch {
	case w.rows.len() == 0:
		return nil
	case w.want:
		return w.flushKnown(ctx)
	}
	n := w.rows.len()
	fresh, err := w.insert(ctx, w.rows)
	if err != nil {
		return err
	}
	changed := 0
	if fresh < n && w.updates() {
		if changed, err = execAll(ctx, w.db, w.plan.sql.update(w.shape, w.share, w.rows)); err != nil {
			return err
		}
	}
	w.count(fresh, changed, n)
	return nil
}

// updates tells whether rows that are there can change.
func (w *pageWriter) updates() bool { return w.lastWins && len(w.shape.compared()) > 0 }

func (w *pageWriter) count(fresh, changed, of int) {
	w.result.New += fresh
	w.result.Changed += changed
	w.result.Same += of - fresh - changed
}

// flushKnown finds out which rows are new or changed and writes just them.
func (w *pageWriter) flushKnown(ctx context.Context) error {
	states, err := w.compare(ctx)
	if err != nil {
		return err
	}
	var fresh, changed []int
	for i, s := range states {
		switch {
		case s == rowNew:
			fresh = append(fresh, i)
		case s == rowChanged && w.updates():
			changed = append(changed, i)
		default:
			continue
		}
		if err := w.record(i, s == rowNew); err != nil {
			return err
		}
	}
	if _, err := w.insert(ctx, w.rows.pick(fresh)); err != nil {
		return err
	}
	if len(changed) > 0 {
		if _, err := execAll(ctx, w.db, w.plan.sql.update(w.shape, w.share, w.rows.pick(changed))); err != nil {
			return err
		}
	}
	w.count(len(fresh), len(changed), w.rows.len())
	return nil
}

// rowState is what a row is to the table.
type rowState byte

const (
	rowNew rowState = iota
	rowSame
	rowChanged
)

// compare looks the rows of the chunk up, without writing.
func (w *pageWriter) compare(ctx context.Context) ([]rowState, error) {
	states := make([]rowState, w.rows.len())
	for _, st := range w.plan.sql.compare(w.shape, w.share, w.rows) {
		err := each(ctx, w.db, st, func(scan func(...any) error) error {
			var place, differs int
			if err := scan(&place, &differs); err != nil {
				return err
			}
			states[place] = rowSame
			if differs == 1 {
				states[place] = rowChanged
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}

// tell adds a row to the result.
func (w *pageWriter) record(i int, isNew bool) error {
	c, err := changedRow(w.shape, w.rows.row(i), isNew)
	if err != nil {
		return err
	}
	w.result.Rows = append(w.result.Rows, c)
	return nil
}

func changedRow(s *shape, values []any, isNew bool) (Changed, error) {
	key, err := jsonKey(s, values)
	if err != nil {
		return Changed{}, err
	}
	row, err := jsonRow(s.columns, values)
	return Changed{Key: key, Row: row, New: isNew}, err
}
