package table

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// PageWrite is one page of rows.
type PageWrite struct {
	// Rows have a value for each field of the definition in its order: nil,
	// string, int64, float64, bool, time.Time or json.RawMessage; then, if the
	// definition keeps rows as they came, the row as json.RawMessage. They are
	// read once, and none is kept.
	Rows        iter.Seq2[[]any, error]
	At          time.Time // created_at of new rows, updated_at of changed ones
	RunID       string
	WantChanged bool // Result.Rows is wanted; it costs a look at each row
}

// Rows adapts rows of another named type.
func Rows[R ~[]any](rows iter.Seq2[R, error]) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range rows {
			if !yield(row, err) {
				return
			}
		}
	}
}

// Result says what became of rows. Rows of one identity in one page count once
// as what they became, and the others as the same.
type Result struct {
	New, Changed, Same int
	Removed            int       // rows of the source that a replace deleted
	Rows               []Changed // the new and the changed ones, if they were wanted
	Rejected           []Rejected
}

// Changed is a row that is new or has changed.
type Changed struct {
	Key string          // JSON array of the key's values; the digest of the row if there is no key
	Row json.RawMessage // object of the definition's fields
	New bool
}

// Rejected is a row that cannot be stored.
type Rejected struct {
	Row    int // within the page, from 1
	Reason string
}

// WritePage writes the rows of one page; a page that was written before changes
// nothing. The rows of a replace gather in the staging table and are counted by
// Finish.
func (p *Plan) WritePage(ctx context.Context, db DB, w PageWrite) (Result, error) {
	target := p.shape
	if p.mode == spec.Replace {
		target = p.staging()
	}
	pw := &pageWriter{
		plan: p, db: db, shape: &target, rows: newChunk(target.columns), places: target.positions(), lastWins: p.mode != spec.Append,
		want:  w.WantChanged && p.mode != spec.Replace,
		share: constants{p.source, p.sql.bind(instant, w.At.UTC().Truncate(time.Millisecond)), w.RunID},
	}
	if target.digested() {
		pw.order = byName(p.fields)
	}
	if err := pw.all(ctx, w.Rows); err != nil {
		return Result{}, fmt.Errorf("write rows to %s: %w", p.shape.name, err)
	}
	if p.mode == spec.Replace {
		return Result{Rejected: pw.result.Rejected}, nil
	}
	return pw.result, nil
}

// execAll runs statements and adds up the rows they changed.
func execAll(ctx context.Context, db DB, statements []statement) (int, error) {
	total := 0
	for _, st := range statements {
		n, err := db.Exec(ctx, st.sql, st.args...)
		if err != nil {
			return 0, err
		}
		total += int(n)
	}
	return total, nil
}

// each calls back for every row of an answer.
func each(ctx context.Context, db DB, st statement, row func(scan func(...any) error) error) error {
	rows, err := db.Query(ctx, st.sql, st.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
