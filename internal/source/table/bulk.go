package table

import (
	"context"
	"slices"
)

// bulk decides whether the rows of a chunk go to the table by COPY, which is
// faster than an insert and refuses all of them if one is there. A chunk of which
// all rows were new is likely to be followed by another one; after the first
// refusal nothing is copied any more, so that a run writes at most one chunk for
// nothing.
type bulk struct {
	likely  bool // all rows of the chunk before were new
	refused bool
}

// bulkRows is from how many rows on it pays.
const bulkRows = 200

// copyDB is a database that may have a faster way than inserts; *store.Tx is one.
type copyDB interface {
	CopyRows(ctx context.Context, table string, columns []string, n int, row func(i int) ([]any, error)) (bool, error)
}

// insert adds the rows of a chunk that are not there, and tells how many were not.
func (w *pageWriter) insert(ctx context.Context, rows *chunk) (fresh int, err error) {
	n, b := rows.len(), &w.plan.bulk
	if n == 0 {
		return 0, nil
	}
	if db, ok := w.db.(copyDB); ok && n >= bulkRows && b.likely && !b.refused && w.shape.isOurs() {
		copied, err := w.copy(ctx, db, rows)
		if copied || err != nil {
			return n, err
		}
		b.refused = true
	}
	fresh, err = execAll(ctx, w.db, w.plan.sql.insert(w.shape, w.share, rows))
	b.likely = fresh == n
	return fresh, err
}

// copy adds all rows of a chunk, or none.
func (w *pageWriter) copy(ctx context.Context, db copyDB, rows *chunk) (bool, error) {
	given := w.share.args()
	values := make([]any, 0, len(w.shape.own)+rows.width)
	for _, c := range w.shape.own {
		values = append(values, given[argument(c)-1])
	}
	own := len(values)
	var names []string
	for _, c := range slices.Concat(w.shape.own, w.shape.columns) {
		names = append(names, c.name)
	}
	return db.CopyRows(ctx, w.shape.name, names, rows.len(), func(i int) ([]any, error) {
		values = append(values[:own], rows.row(i)...)
		return values, nil
	})
}

// isOurs reports whether all columns have the types that Pawl gives: what others
// need is cast by the insert.
func (s *shape) isOurs() bool {
	return !slices.ContainsFunc(slices.Concat(s.own, s.columns), func(c column) bool { return c.found != "" })
}
