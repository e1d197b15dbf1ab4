package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
)

// CopyTable is a table that Promote copies from SQLite to PostgreSQL.
type CopyTable struct {
	From, To string // its name in each, not quoted
	Columns  []CopyColumn

	// change rewrites a row after its columns were converted; nil leaves it.
	change func(row []any)
}

// CopyColumn is one column of a table that is copied.
type CopyColumn struct {
	Name     string // in PostgreSQL, not quoted
	From, To string // expressions that read it

	// Convert makes what PostgreSQL takes of what SQLite gave; Plain makes
	// equal values of both databases equal: nil, string, int64, float64 or
	// bool. Nil leaves a value as it is.
	Convert func(v any) (any, error)
	Plain   func(v any) any
}

// Copied is what became of a table.
type Copied struct {
	Table    string `json:"table"`
	Rows     int64  `json:"rows"`
	Checksum string `json:"checksum"` // the same in both databases
}

// createdTables finds the tables that the migrations leave, in an order in which
// each comes after those that it refers to.
func createdTables() ([]string, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	step := regexp.MustCompile(`(?m)^(?:create table (\w+) \(|drop table (\w+)|alter table (\w+) rename to (\w+))`)
	var names []string
	for _, m := range all {
		for _, found := range step.FindAllStringSubmatch(m.sql, -1) {
			made, dropped, was, is := found[1], found[2], found[3], found[4]
			switch {
			case made != "":
				names = append(names, made)
			case dropped != "":
				names = slices.DeleteFunc(names, func(name string) bool { return name == dropped })
			default:
				names[slices.Index(names, was)] = is
			}
		}
	}
	return names, nil
}

// stays tells the tables that belong to a database and not to what is in it:
// who runs on it and who owns what.
func stays(table string) bool {
	return slices.Contains([]string{"nodes", "buckets", "write_probe", "promotions", "relay_batches"}, table)
}

// ownTables lists Pawl's tables that are copied. Their columns are those of the
// SQLite file; both databases have the same ones.
func ownTables(ctx context.Context, from *Tx, to *DB) ([]CopyTable, error) {
	names, err := createdTables()
	if err != nil {
		return nil, err
	}
	var out []CopyTable
	for _, name := range names {
		if stays(name) {
			continue
		}
		t := CopyTable{From: name, To: name}
		columns, err := columnsOf(ctx, from, name)
		if err != nil {
			return nil, fmt.Errorf("read columns of %s: %w", name, err)
		}
		for _, c := range columns {
			t.Columns = append(t.Columns, CopyColumn{Name: c, From: quoteName(c), To: quoteName(c), Convert: asText})
		}
		if name == "jobs" {
			t.change = rebucket(to, columns)
		}
		out = append(out, t)
	}
	return out, nil
}

// unknownTables lists the tables of the file that are neither Pawl's nor
// copied. What is staged for a table is fetched again.
func unknownTables(ctx context.Context, from *Tx, copied []CopyTable) ([]string, error) {
	names, err := namesOf(ctx, from, `select name from sqlite_master where type = 'table' and name not like 'sqlite\_%' escape '\'
		and name not like '\_pawl\_stage\_%' escape '\' and name <> 'schema_migrations' order by name`)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return stays(name) || slices.ContainsFunc(copied, func(t CopyTable) bool { return strings.EqualFold(t.From, name) })
	}), nil
}

func columnsOf(ctx context.Context, from *Tx, table string) ([]string, error) {
	return namesOf(ctx, from, `select name from pragma_table_info($1) order by cid`, table)
}

func namesOf(ctx context.Context, from *Tx, sql string, args ...any) (names []string, err error) {
	rows, err := from.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// asText: the driver gives back as bytes what was stored as bytes.
func asText(v any) (any, error) {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if s, ok := v.(string); ok && !Storable(s) {
		return nil, fmt.Errorf("%.60q has a NUL character or is not UTF-8, which PostgreSQL cannot store", s)
	}
	return v, nil
}

// rebucket gives jobs the buckets of the other database, by the rule by which
// it would have: the same on every try, so that a copy can be compared.
func rebucket(to *DB, columns []string) func([]any) {
	at := func(name string) int { return slices.Index(columns, name) }
	id, bucket, lane, key := at("id"), at("bucket"), at("lane"), at("key")
	return func(row []any) {
		if n, _ := row[bucket].(int64); n < 0 { // no node's
			return
		}
		l, _ := row[lane].(string)
		k, _ := row[key].(string)
		if l == "" && k == "" { // any will do
			n, _ := row[id].(int64)
			row[bucket] = n % int64(to.Buckets())
			return
		}
		row[bucket] = int64(to.BucketOf(l, k))
	}
}

// stream reads a table of the SQLite file row by row, as PostgreSQL's COPY
// wants it, and adds up what it gives out.
type stream struct {
	table *CopyTable
	rows  Rows
	sum   checksum
	each  func() // after every row
	err   error
}

func (t *CopyTable) stream(ctx context.Context, from *Tx, each func()) (*stream, error) {
	expressions := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		expressions[i] = c.From
	}
	rows, err := from.Query(ctx, `select `+strings.Join(expressions, ", ")+` from `+quoteName(t.From))
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.From, err)
	}
	return &stream{table: t, rows: rows, each: each}, nil
}

// Next implements pgx.CopyFromSource.
func (s *stream) Next() bool { return s.err == nil && s.rows.Next() }

// Values implements pgx.CopyFromSource.
func (s *stream) Values() ([]any, error) {
	row, err := scanRow(s.rows, len(s.table.Columns))
	if err != nil {
		return nil, err
	}
	for i, c := range s.table.Columns {
		if c.Convert == nil {
			continue
		}
		if row[i], err = c.Convert(row[i]); err != nil {
			s.err = &pawl.Error{Code: pawl.CodeInvalid, Op: "copy table " + s.table.From, Msg: fmt.Sprintf("column %s: %s", c.Name, err), Hint: "Correct or delete the row in the SQLite file and try again. Nothing was changed."}
			return nil, s.err
		}
	}
	if s.table.change != nil {
		s.table.change(row)
	}
	s.sum.add(s.table, row)
	s.each()
	return row, nil
}

// Err implements pgx.CopyFromSource.
func (s *stream) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.rows.Err()
}

// sumOf adds up a table of PostgreSQL.
func (t *CopyTable) sumOf(ctx context.Context, to *Tx, each func()) (sum checksum, err error) {
	expressions := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		expressions[i] = c.To
	}
	rows, err := to.Query(ctx, `select `+strings.Join(expressions, ", ")+` from `+quoteName(t.To))
	if err != nil {
		return sum, fmt.Errorf("read table %s: %w", t.To, err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scanRow(rows, len(t.Columns))
		if err != nil {
			return sum, fmt.Errorf("read table %s: %w", t.To, err)
		}
		sum.add(t, row)
		each()
	}
	return sum, rows.Err()
}

func scanRow(rows Rows, n int) ([]any, error) {
	row, into := make([]any, n), make([]any, n)
	for i := range row {
		into[i] = &row[i]
	}
	return row, rows.Scan(into...)
}

// checksum adds up rows in any order: two tables have the same one if they have
// the same rows.
type checksum struct {
	rows int64
	a, b uint64
}

func (c *checksum) add(t *CopyTable, row []any) {
	var b []byte
	for i, v := range row {
		if plain := t.Columns[i].Plain; plain != nil {
			v = plain(v)
		}
		b = appendPlain(b, v)
	}
	sum := sha256.Sum256(b)
	c.rows++
	c.a += binary.BigEndian.Uint64(sum[:8])
	c.b += binary.BigEndian.Uint64(sum[8:16])
}

func (c *checksum) copied(t *CopyTable) Copied {
	return Copied{Table: t.To, Rows: c.rows, Checksum: fmt.Sprintf("%016x%016x", c.a, c.b)}
}

// appendPlain writes a value so that different values have different bytes.
func appendPlain(b []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, 'n')
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(x))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(x))
	case bool:
		if x {
			return append(b, 't')
		}
		return append(b, 'u')
	case string:
		return append(binary.AppendUvarint(append(b, 's'), uint64(len(x))), x...)
	}
	text := fmt.Sprint(v)
	return append(binary.AppendUvarint(append(b, 'x'), uint64(len(text))), text...)
}
