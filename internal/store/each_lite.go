package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// SQLite has no lateral join. There a set is a row for each that wants something, with
// the rows of its answer as one JSON text:
//
//	select v.i, (with q (c1, c2) as (... where id = v.a1 ...) select json_group_array(json_array(c1, c2)) from q)
//	from (select key as i, value ->> 0 as a1 from json_each($1)) v
//
// A statement does not travel, but beginning and ending one takes several times as
// long as the few rows that it reads.

// columnsMark stands for the columns of a set until it is known how many there are.
const columnsMark = "\x01columns\x01"

// asLiteSet makes one statement of several that differ in some values.
func asLiteSet(list []command, differ []int) (one command, ok bool) {
	values := make([][]any, len(list))
	names := make([]string, len(differ))
	place := map[int]string{}
	for at, n := range differ {
		all, array := setColumn(list, n)
		if array == "" {
			return one, false
		}
		for i := range list {
			values[i] = append(values[i], reflect.ValueOf(all).Index(i).Interface())
		}
		column := "a" + strconv.Itoa(n+1)
		names[at] = fmt.Sprintf("value ->> %d as %s", at, column)
		place[n+1] = "v." + column
	}
	given, err := json.Marshal(values)
	if err != nil {
		return one, false
	}
	text, args := placed(list[0], place, []any{string(given)})
	return command{`select v.i, (with q (` + columnsMark + `) as (` + text + `) select json_group_array(json_array(` + columnsMark + `)) from q)` +
		` from (select key as i, ` + strings.Join(names, ", ") + ` from json_each($1)) v`, args}, true
}

// sendLite is send for members that only read, on SQLite.
func (p *sharedTx) sendLite(ctx context.Context, c *liteConn, list []batchRequest, replies []reply) error {
	for _, s := range p.setsOf(list) {
		if !s.same && p.readLiteSet(ctx, c, s, list, replies) == nil {
			continue
		}
		for n, i := range s.of {
			if s.same && n > 0 {
				replies[i] = replies[s.of[0]].again()
				continue
			}
			if replies[i] = p.readLite(ctx, c, list[i]); replies[i].err != nil {
				return replies[i].err
			}
		}
		if !s.same { // each of them can be answered, and all together cannot
			p.db.refusedSets.add(list[s.of[0]].list[0].sql)
		}
	}
	return nil
}

// readLite answers one.
func (p *sharedTx) readLite(ctx context.Context, c *liteConn, w batchRequest) (r reply) {
	for _, s := range w.list {
		p.db.traced(s.sql, s.args)
		if !w.rows {
			if r.n, r.err = c.exec(ctx, s.sql, s.args); r.err != nil {
				return r
			}
			continue
		}
		rows, err := c.query(ctx, s.sql, s.args)
		if err != nil {
			return reply{err: err}
		}
		held, err := holdLite(rows.(liteRows))
		r = reply{rows: held, err: err}
	}
	return r
}

// readLiteSet answers many that want the same with other values.
func (p *sharedTx) readLiteSet(ctx context.Context, c *liteConn, s wantedSet, list []batchRequest, replies []reply) error {
	n, err := p.db.columnsOf(ctx, c, list[s.of[0]].list[0])
	if err != nil {
		return err
	}
	columns := make([]string, n)
	for i := range columns {
		columns[i] = "c" + strconv.Itoa(i+1)
	}
	text := strings.ReplaceAll(s.sql, columnsMark, strings.Join(columns, ", "))
	p.db.traced(text, s.args)
	rows, err := c.query(ctx, text, s.args)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var i int
		var answer []byte
		if err := rows.Scan(&i, &answer); err != nil {
			return err
		}
		held := &liteHeld{at: -1}
		if err := json.Unmarshal(answer, &held.texts); err != nil {
			return fmt.Errorf("read the rows of one of many: %w", err)
		}
		replies[s.of[i]] = reply{rows: held}
	}
	return rows.Err()
}

// columnsOf is how many columns a statement has.
func (db *DB) columnsOf(ctx context.Context, c *liteConn, s command) (int, error) {
	if n, known := db.setColumns.Load(s.sql); known {
		return n.(int), nil
	}
	rows, err := c.query(ctx, `select * from (`+s.sql+`) limit 0`, s.args)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	names, err := rows.(liteRows).Columns()
	if err != nil {
		return 0, err
	}
	db.setColumns.Store(s.sql, len(names))
	return len(names), rows.Err()
}

// liteHeld are rows that were read before anybody asks for them.
type liteHeld struct {
	rows  [][]any             // of a statement by itself
	texts [][]json.RawMessage // of a set
	at    int
}

// holdLite reads all rows of a statement, so that the next one can be asked.
func holdLite(rows liteRows) (*liteHeld, error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	held := &liteHeld{at: -1}
	for rows.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		held.rows = append(held.rows, row)
	}
	return held, rows.Err()
}

// again is the same answer for another one.
func (r reply) again() reply {
	if held, ok := r.rows.(*liteHeld); ok {
		r.rows = &liteHeld{rows: held.rows, texts: held.texts, at: -1}
	}
	return r
}

// Next goes to the next row.
func (r *liteHeld) Next() bool {
	r.at = min(r.at+1, len(r.rows)+len(r.texts))
	return r.at < len(r.rows)+len(r.texts)
}

// Scan copies the row.
func (r *liteHeld) Scan(dest ...any) error {
	var row []any
	if len(r.rows) > 0 {
		row = r.rows[r.at]
	} else {
		row = make([]any, len(r.texts[r.at]))
		for i, text := range r.texts[r.at] {
			v, err := fromJSON(text)
			if err != nil {
				return fmt.Errorf("read column %d: %w", i+1, err)
			}
			row[i] = v
		}
	}
	if len(dest) != len(row) {
		return fmt.Errorf("%d values for %d places", len(row), len(dest))
	}
	for i, d := range dest {
		if err := assign(d, row[i]); err != nil {
			return fmt.Errorf("read column %d: %w", i+1, err)
		}
	}
	return nil
}

// Err is nil: all rows are here.
func (r *liteHeld) Err() error { return nil }

// Close does nothing.
func (r *liteHeld) Close() {}

// fromJSON is a value of SQLite that was put into JSON.
func fromJSON(text json.RawMessage) (any, error) {
	switch text[0] {
	case 'n':
		return nil, nil //nolint:nilnil // a NULL
	case '"':
		var s string
		err := json.Unmarshal(text, &s)
		return s, err
	case '[', '{': // a text that SQLite knows to be JSON
		return string(text), nil
	}
	if strings.ContainsAny(string(text), ".eE") {
		return strconv.ParseFloat(string(text), 64)
	}
	return strconv.ParseInt(string(text), 10, 64)
}

// assign sets what a scan wants to a value of SQLite, as package database/sql does
// for rows of its own.
func assign(dest, v any) error {
	switch d := dest.(type) {
	case sql.Scanner:
		return d.Scan(v)
	case *any:
		*d = v
		return nil
	}
	to := reflect.ValueOf(dest)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return fmt.Errorf("%T is no place for a value", dest)
	}
	return assignTo(to.Elem(), v)
}

func assignTo(to reflect.Value, v any) error {
	if to.Kind() == reflect.Pointer {
		if v == nil {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return assignTo(to.Elem(), v)
	}
	switch from := v.(type) {
	case string:
		switch {
		case to.Kind() == reflect.String:
			to.SetString(from)
			return nil
		case to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8:
			to.SetBytes([]byte(from))
			return nil
		}
	case []byte:
		switch {
		case to.Kind() == reflect.String:
			to.SetString(string(from))
			return nil
		case to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8:
			to.SetBytes(slices.Clone(from))
			return nil
		}
	case int64:
		switch {
		case to.CanInt() && !to.OverflowInt(from):
			to.SetInt(from)
			return nil
		case to.CanFloat():
			to.SetFloat(float64(from))
			return nil
		case to.Kind() == reflect.Bool && (from == 0 || from == 1):
			to.SetBool(from == 1)
			return nil
		case to.Kind() == reflect.String:
			to.SetString(strconv.FormatInt(from, 10))
			return nil
		}
	case float64:
		if to.CanFloat() {
			to.SetFloat(from)
			return nil
		}
	case nil:
		if to.Kind() == reflect.Slice {
			to.SetZero()
			return nil
		}
	}
	return fmt.Errorf("a %T does not fit into a %s", v, to.Type())
}
