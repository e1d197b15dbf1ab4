package table

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// LastRow is when the newest row of a source was created (B-20); zero when
// there is none.
func (p *Plan) LastRow(ctx context.Context, db DB, sourceName string) (time.Time, error) {
	created, err := p.present(ctx, db, []column{{name: colCreated, kind: instant}})
	if err != nil || len(created) == 0 {
		return time.Time{}, err
	}
	var last any
	st := statement{p.sql.last(quote(p.shape.name), p.sql.read(created[0], quote(colCreated))), []any{sourceName}}
	err = each(ctx, db, st, func(scan func(...any) error) error { return scan(&last) })
	if err != nil || last == nil {
		return time.Time{}, err
	}
	at, ok := scanned(instant, last).(time.Time)
	if !ok {
		return at, fmt.Errorf("read newest row of %s: created_at %v is not a time", p.shape.name, last)
	}
	return at, nil
}

// present keeps the columns that the table has, with their types. There are
// none when there is no table, or one that no source can have written to.
func (p *Plan) present(ctx context.Context, db DB, columns []column) ([]column, error) {
	found, err := inspect(ctx, db, p.sql, p.shape.name)
	if err != nil || found == nil {
		return nil, err
	}
	var out []column
	for _, c := range slices.Concat([]column{{name: colSource}, {name: colCreated}}, columns) {
		there, ok := found.find(p.sql, c.name)
		if !ok && (c.name == colSource || c.name == colCreated) {
			return nil, nil
		}
		if ok {
			c.found = there.typ
			out = append(out, c)
		}
	}
	return out[2:], nil
}

// DeleteRows deletes at most limit rows of a source and returns how many; fewer
// than limit means that none is left.
func (p *Plan) DeleteRows(ctx context.Context, db DB, sourceName string, limit int) (int64, error) {
	found, err := p.present(ctx, db, []column{{name: colSource, kind: spec.Text}})
	if err != nil {
		return 0, fmt.Errorf("delete rows of %s: %w", p.shape.name, err)
	}
	var n int64
	if len(found) > 0 {
		if n, err = db.Exec(ctx, p.sql.remove(quote(p.shape.name)), sourceName, limit); err != nil {
			return 0, fmt.Errorf("delete rows of %s: %w", p.shape.name, err)
		}
	}
	if n < int64(limit) && p.mode == spec.Replace {
		if _, err := execAll(ctx, db, []statement{dropped(p.staging())}); err != nil {
			return 0, fmt.Errorf("delete rows of %s: %w", p.shape.name, err)
		}
	}
	return n, nil
}

// pageQuery asks for rows of a source that come after a place, if there is one.
type pageQuery struct {
	source  string
	limit   int
	created string
	place   string
}

// Sample lists rows of a source, newest first, at most limit. before is where
// to go on, empty at first; next is empty at the end. The values are nil,
// string, int64, float64, bool, time.Time and json.RawMessage; dates are text.
func (p *Plan) Sample(ctx context.Context, db DB, sourceName, before string, limit int) (rows []map[string]any, next string, err error) {
	own := []column{{name: colCreated, kind: instant}, {name: colUpdated, kind: instant}, {name: colRun, kind: spec.Text}}
	columns, err := p.present(ctx, db, slices.Concat(own, p.fields))
	if err != nil || len(columns) == 0 {
		return nil, "", err
	}
	q := pageQuery{source: sourceName, limit: limit + 1}
	if before != "" {
		var ok bool
		if q.created, q.place, ok = strings.Cut(before, "@"); !ok {
			return nil, "", badCursor()
		}
	}
	reads := make([]string, len(columns))
	for i, c := range columns {
		reads[i] = p.sql.read(c, quote(c.name))
	}
	st, err := p.sql.page(quote(p.shape.name), strings.Join(reads, ", "), columns[0], q)
	if err != nil {
		return nil, "", err
	}
	err = each(ctx, db, st, func(scan func(...any) error) error {
		var created, place string
		values := make([]any, len(columns))
		if err := scan(slices.Concat([]any{&created, &place}, pointersTo(values))...); err != nil {
			return err
		}
		if len(rows) < limit {
			rows = append(rows, shown(columns, values))
			q.created, q.place = created, place
		} else {
			next = q.created + "@" + q.place
		}
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list rows of %s: %w", p.shape.name, err)
	}
	return rows, next, nil
}

func badCursor() error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "list rows", Msg: "the cursor is not one of this list"}
}

func shown(columns []column, values []any) map[string]any {
	row := make(map[string]any, len(columns))
	for i, c := range columns {
		v := scanned(c.kind, values[i])
		switch x := v.(type) {
		case string:
			if (c.kind == spec.Object || c.kind == rawText) && json.Valid([]byte(x)) {
				v = json.RawMessage(x)
			}
		case time.Time:
			if c.kind == spec.Date {
				v = x.Format(dateText)
			}
		}
		row[c.name] = v
	}
	return row
}

// scanned turns what a driver answered back into what normal made of a value.
// What is none of that, in a table of somebody else, stays as it is.
func scanned(kind spec.Type, v any) any {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	switch x := v.(type) {
	case int64:
		if kind == spec.Boolean {
			return x != 0
		}
		if kind == spec.Number {
			return float64(x)
		}
	case time.Time:
		return x.UTC()
	case string:
		if kind != spec.Timestamp && kind != spec.Date && kind != instant {
			return x
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", dateText} {
			if t, err := time.Parse(layout, x); err == nil {
				return t.UTC()
			}
		}
	}
	return v
}
