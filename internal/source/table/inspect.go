package table

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// existing is a table that is there.
type existing struct {
	kind    string // "table" is one that rows can be written to
	columns []existingColumn
	uniques []uniqueIndex
}

type existingColumn struct {
	name, typ string
	needed    bool // it must be given a value
}

type uniqueIndex struct {
	name    string
	columns []string
}

// inspect reads the table; nil is one that is not there.
func inspect(ctx context.Context, db DB, sql dialect, table string) (*existing, error) {
	columns, indexes := sql.inspect(table)
	var out existing
	err := each(ctx, db, columns, func(scan func(...any) error) error {
		var c existingColumn
		var needed int
		err := scan(&c.name, &c.typ, &needed, &out.kind)
		c.needed = needed == 1
		out.columns = append(out.columns, c)
		return err
	})
	if err != nil || len(out.columns) == 0 {
		return nil, err
	}
	err = each(ctx, db, indexes, func(scan func(...any) error) error {
		var name, column string
		if err := scan(&name, &column); err != nil {
			return err
		}
		if n := len(out.uniques); n == 0 || out.uniques[n-1].name != name {
			out.uniques = append(out.uniques, uniqueIndex{name: name})
		}
		last := &out.uniques[len(out.uniques)-1]
		last.columns = append(last.columns, column)
		return nil
	})
	return &out, err
}

// find returns the column of a name.
func (e *existing) find(sql dialect, name string) (existingColumn, bool) {
	for _, c := range e.columns {
		if sql.sameName(c.name, name) {
			return c, true
		}
	}
	return existingColumn{}, false
}

// indexPrefix begins the names of Pawl's unique indexes. A table with one of
// them is Pawl's own, which may be given another.
const indexPrefix = "_pawl_key_"

func (e *existing) isPawls() bool {
	return slices.ContainsFunc(e.uniques, func(u uniqueIndex) bool { return strings.HasPrefix(u.name, indexPrefix) })
}

// unique tells whether a unique index has just these columns.
func (e *existing) unique(sql dialect, columns []string) bool {
	return slices.ContainsFunc(e.uniques, func(u uniqueIndex) bool { return sameSet(sql, u.columns, columns) })
}

func sameSet(sql dialect, a, b []string) bool { return len(a) == len(b) && subset(sql, a, b) }

func subset(sql dialect, a, of []string) bool {
	for _, name := range a {
		if !slices.ContainsFunc(of, func(n string) bool { return sql.sameName(n, name) }) {
			return false
		}
	}
	return true
}

// identify finds the unique index by which rows of the plan are told apart.
func (p *Plan) identify(e *existing) (identity, bool) {
	natural := p.natural(p.shape.name).ident
	if e.unique(p.sql, append([]string{colSource}, natural.columns...)) {
		return natural, true
	}
	if len(p.key) > 0 {
		return identity{columns: p.key}, e.unique(p.sql, p.key)
	}
	// Without a key any rule of the table's owner will do that goes by the
	// fields; one that keeps sources apart is better.
	var fields []string
	for _, f := range p.fields {
		if f.name != colRaw {
			fields = append(fields, f.name)
		}
	}
	for _, withSource := range []bool{true, false} {
		for _, u := range e.uniques {
			names, all := p.targets(u.columns, fields)
			if all && len(names) > 0 && (len(names) < len(u.columns)) == withSource {
				return identity{columns: names, source: withSource}, true
			}
		}
	}
	return identity{}, false
}

// targets spells the columns of an index as the definition does, without
// colSource; all is false when the index has a column that is no field.
func (p *Plan) targets(columns, fields []string) (names []string, all bool) {
	for _, c := range columns {
		if p.sql.sameName(c, colSource) {
			continue
		}
		i := slices.IndexFunc(fields, func(f string) bool { return p.sql.sameName(f, c) })
		if i < 0 {
			return nil, false
		}
		names = append(names, fields[i])
	}
	return names, true
}

// index is the statement that makes the unique index of an identity.
func (p *Plan) index(table string, id identity) string {
	columns := append([]string{colSource}, id.columns...)
	name := indexPrefix + digest(table + "\x00" + strings.Join(columns, "\x00"))[:20]
	return fmt.Sprintf("create unique index %s on %s (%s)", quote(name), quote(table), list(columns))
}
