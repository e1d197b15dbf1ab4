package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// value is a column of the unnested rows in the type that Pawl gives it.
func (d postgres) value(c column, i int) string {
	v := fmt.Sprintf("u.c%d", i)
	if c.kind == spec.Object || c.kind == rawText { // they travel as text
		return v + "::" + d.typeOf(c.kind)
	}
	return v
}

func (d postgres) given(own column) string {
	return d.copied(own, parameter(own)+"::"+d.typeOf(own.kind))
}

func (postgres) copied(c column, value string) string {
	switch base := unsized(c.found); base {
	case "":
		return value
	case "timestamp without time zone":
		return "(" + value + ") at time zone 'UTC'"
	default: // without its size: what is too long is refused, not cut
		return "(" + value + ")::" + base
	}
}

// differs compares as stored: a number that the column rounds is the same
// number next time.
func (d postgres) differs(c column, there, value string) string {
	value = d.copied(c, value)
	if c.found != "" {
		value = "(" + value + ")::" + c.found
	}
	if c.found == "json" || c.found == "" && c.kind == rawText { // which has no equality
		there, value = there+"::text", "("+value+")::text"
	}
	return there + " is distinct from " + value
}

func (d postgres) insert(s *shape, c constants, rows *chunk) []statement {
	from, args := unnest(s, c.args(), rows)
	var values []string
	for _, own := range s.own {
		values = append(values, d.given(own))
	}
	for i, col := range s.columns {
		values = append(values, d.copied(col, d.value(col, i)))
	}
	return []statement{{fmt.Sprintf("insert into %s (%s) select %s from %s on conflict %s do nothing",
		quote(s.name), s.written(), strings.Join(values, ", "), from, s.conflict()), args}}
}

// update looks every row up by the index before it writes: an upsert would lock
// the rows that are the same, which costs as much as writing them, and a join
// would leave it to statistics that a growing table does not have yet.
func (d postgres) update(s *shape, c constants, rows *chunk) []statement {
	from, args := unnest(s, c.args(), rows)
	var set []string
	for _, own := range s.own {
		if own.name == colRun || own.name == colUpdated {
			set = append(set, quote(own.name)+" = "+d.given(own))
		}
	}
	for _, i := range s.compared() {
		col := s.columns[i]
		set = append(set, quote(col.name)+" = "+d.copied(col, d.value(col, i)))
	}
	return []statement{{fmt.Sprintf(`update %[1]s t set %[2]s from %[3]s cross join lateral (
		select s.tableoid part, s.ctid place from %[1]s s where %[4]s and (%[5]s) limit 1) x
		where t.tableoid = x.part and t.ctid = x.place`,
		quote(s.name), strings.Join(set, ", "), from, d.same(s), d.changed(s)), args}}
}

func (d postgres) compare(s *shape, c constants, rows *chunk) []statement {
	from, args := unnest(s, []any{c.source}, rows)
	from = strings.Replace(from, ") u(", ") with ordinality u(", 1)
	from = strings.TrimSuffix(from, ")") + ", place)"
	return []statement{{fmt.Sprintf(`select u.place - 1, x.changed from %s cross join lateral (
		select case when %s then 1 else 0 end changed from %s s where %s limit 1) x`,
		from, d.changed(s), quote(s.name), d.same(s)), args}}
}

// same is the condition that s is the row u.
func (d postgres) same(s *shape) string {
	conditions := []string{"s." + quote(colSource) + " = $1"}
	for _, i := range s.positions() {
		c := s.columns[i]
		conditions = append(conditions, "s."+quote(c.name)+" = "+d.copied(c, d.value(c, i)))
	}
	return strings.Join(conditions, " and ")
}

// changed is the condition that s has other values than u.
func (d postgres) changed(s *shape) string {
	conditions := []string{"false"}
	for _, i := range s.compared() {
		c := s.columns[i]
		conditions = append(conditions, d.differs(c, "s."+quote(c.name), d.value(c, i)))
	}
	return strings.Join(conditions, " or ")
}

// unnest makes the rows of a chunk a table u(c0, c1, ...) whose arrays follow
// the arguments given.
func unnest(s *shape, before []any, rows *chunk) (from string, args []any) {
	arrays, names := make([]string, len(s.columns)), make([]string, len(s.columns))
	args = before
	for i, c := range s.columns {
		kind, array := rows.array(c.kind, i)
		args = append(args, array)
		arrays[i] = fmt.Sprintf("$%d::%s[]", len(args), kind)
		names[i] = fmt.Sprintf("c%d", i)
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") u(" + strings.Join(names, ", ") + ")", args
}

// array gathers one column of a chunk, with the type of its elements.
func (rows *chunk) array(kind spec.Type, i int) (element string, array any) {
	switch kind {
	case spec.Integer:
		return "bigint", arrayOf[int64](rows, i)
	case spec.Number:
		return "double precision", arrayOf[float64](rows, i)
	case spec.Boolean:
		return "boolean", arrayOf[bool](rows, i)
	case spec.Timestamp:
		return "timestamptz", arrayOf[time.Time](rows, i)
	case spec.Date:
		return "date", arrayOf[time.Time](rows, i)
	default:
		return "text", arrayOf[string](rows, i)
	}
}

// arrayOf has plain values where no row has a NULL: the driver is faster then.
func arrayOf[T any](rows *chunk, i int) any {
	n := rows.len()
	plain := make([]T, n)
	for k := range n {
		v, ok := rows.row(k)[i].(T)
		if !ok {
			return pointers[T](rows, i)
		}
		plain[k] = v
	}
	return plain
}

func pointers[T any](rows *chunk, i int) []*T {
	out := make([]*T, rows.len())
	for k := range out {
		if v, ok := rows.row(k)[i].(T); ok {
			out[k] = &v
		}
	}
	return out
}
