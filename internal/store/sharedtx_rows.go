package store

import (
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// bufferedRows are rows that were read before anybody asks for them.
type bufferedRows struct {
	fields []pgconn.FieldDescription
	types  *pgtype.Map
	mu     *sync.Mutex // guards types
	rows   [][][]byte
	at     int
}

func (r *bufferedRows) add(values [][]byte) {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	row, text := make([][]byte, len(values)), make([]byte, 0, size)
	for i, v := range values {
		if v == nil {
			continue
		}
		from := len(text)
		text = append(text, v...)
		row[i] = text[from:len(text):len(text)]
	}
	r.rows = append(r.rows, row)
}

// Next goes to the next row.
func (r *bufferedRows) Next() bool {
	r.at = min(r.at+1, len(r.rows))
	return r.at < len(r.rows)
}

// Scan copies the row.
func (r *bufferedRows) Scan(dest ...any) error {
	if len(dest) != len(r.fields) {
		return fmt.Errorf("%d values for %d places", len(r.fields), len(dest))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range dest {
		if err := r.types.Scan(r.fields[i].DataTypeOID, r.fields[i].Format, r.rows[r.at][i], d); err != nil {
			return fmt.Errorf("read column %s: %w", r.fields[i].Name, err)
		}
	}
	return nil
}

// Err is nil: all rows are here.
func (r *bufferedRows) Err() error { return nil }

// Close does nothing.
func (r *bufferedRows) Close() {}
