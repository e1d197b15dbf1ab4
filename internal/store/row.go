package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// What the rows of every aggregate are read and written with.

// Scanner is a row that can be read: of QueryRow, or one of Query.
type Scanner interface{ Scan(dest ...any) error }

// AskAll asks for rows, which are appended to out when they are there.
func AskAll[T any](ctx context.Context, tx *Tx, out *[]T, op string, scan func(Scanner) (T, error), sql string, args ...any) error {
	return tx.Ask(ctx, func(rows Rows, err error) error {
		found, err := ScanAll(rows, err, op, scan)
		*out = append(*out, found...)
		return err
	}, sql, args...)
}

// ScanAll reads every row of a query.
func ScanAll[T any](rows Rows, err error, op string, scan func(row Scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return out, nil
}

func ScanID(row Scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}

func ScanText(row Scanner) (s string, err error) {
	err = row.Scan(&s)
	return s, err
}

func FromNullJSON(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

func NullJSON(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return string(raw)
}

// idBefore turns the zero of "from the beginning" into a bound.
func IDBefore(id int64) int64 {
	if id == 0 {
		return math.MaxInt64
	}
	return id
}

// Instants are stored as UTC milliseconds.

// Millis turns an instant into its stored form.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// MillisOrZero turns the zero time into 0.
func MillisOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return Millis(t)
}

// NullMillis turns the zero time into NULL.
func NullMillis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	v := t.UnixMilli()
	return &v
}

// FromMillis turns a stored instant back.
func FromMillis(v int64) time.Time { return time.UnixMilli(v).UTC() }

func FromNullMillis(v *int64) time.Time {
	if v == nil {
		return time.Time{}
	}
	return FromMillis(*v)
}

// NullText stores the empty string as NULL.
func NullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func FromNullText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Also scans more columns behind those that a scan asks for.
func Also(row Scanner, more ...any) Scanner {
	return longRow{row, more}
}

type longRow struct {
	row  Scanner
	more []any
}

func (r longRow) Scan(dest ...any) error { return r.row.Scan(append(dest, r.more...)...) }

// ScanFunc is a Scanner that asks somebody else: so one row is read as two things.
type ScanFunc func(dest ...any) error

// Scan calls it.
func (f ScanFunc) Scan(dest ...any) error { return f(dest...) }

// Prefixed are the columns of a table that has another name in a statement.
func Prefixed(alias, columns string) string {
	list := strings.Split(columns, ",")
	for i, name := range list {
		list[i] = alias + "." + strings.TrimSpace(name)
	}
	return strings.Join(list, ", ")
}
