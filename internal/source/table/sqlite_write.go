package table

import (
	"fmt"
	"math/bits"
	"strings"
)

// boundAtOnce bounds the values of one statement. More gain nothing; SQLite
// allows eight times as many.
const boundAtOnce = 4096

// rowsAtOnce bounds the rows of one statement.
const rowsAtOnce = 128

// parts cuts a chunk for statements, in sizes that are powers of two: there are
// few texts then, and each stays prepared on the connection.
func (rows *chunk) parts(yield func(from, to int) bool) {
	most := max(1, min(rowsAtOnce, boundAtOnce/rows.width))
	for from := 0; from < rows.len(); {
		n := 1 << (bits.Len(uint(min(rows.len()-from, most))) - 1)
		if !yield(from, from+n) {
			return
		}
		from += n
	}
}

// bound are the arguments of rows [from, to) after those given.
func (rows *chunk) bound(before []any, from, to int) []any {
	args := make([]any, 0, len(before)+(to-from)*rows.width)
	args = append(args, before...)
	for i, v := range rows.flat[from*rows.width : to*rows.width] {
		args = append(args, sqlite{}.bind(rows.kinds[i%rows.width], v))
	}
	return args
}

func (d sqlite) insert(s *shape, c constants, rows *chunk) []statement {
	return d.each(s, c, rows, " on conflict "+s.conflict()+" do nothing")
}

// update is an upsert of which only the update can happen, because insert came
// before it.
func (d sqlite) update(s *shape, c constants, rows *chunk) []statement {
	var set, changed []string
	for _, own := range s.own {
		if own.name == colRun || own.name == colUpdated {
			set = append(set, quote(own.name)+" = excluded."+quote(own.name))
		}
	}
	for _, i := range s.compared() {
		col := s.columns[i]
		name := quote(col.name)
		set = append(set, name+" = excluded."+name)
		changed = append(changed, d.differs(col, "t."+name, "excluded."+name))
	}
	return d.each(s, c, rows, fmt.Sprintf(" on conflict %s do update set %s where t.%s = $1 and (%s)",
		s.conflict(), strings.Join(set, ", "), quote(colSource), strings.Join(changed, " or ")))
}

// each inserts a chunk with a rule for rows that are there. The values of rows
// have no names, which the driver would look up one by one.
func (d sqlite) each(s *shape, c constants, rows *chunk, conflict string) []statement {
	var own []string
	for _, col := range s.own {
		own = append(own, d.given(col))
	}
	row := "(" + strings.Join(own, ",") + strings.Repeat(",?", rows.width) + ")"
	head := "insert into " + quote(s.name) + " as t (" + s.written() + ") values "
	var out []statement
	for from, to := range rows.parts {
		text := head + row + strings.Repeat(","+row, to-from-1) + conflict
		out = append(out, statement{text, rows.bound(c.args(), from, to)})
	}
	return out
}

func (d sqlite) compare(s *shape, c constants, rows *chunk) []statement {
	names := make([]string, len(s.columns))
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	changed := []string{"0"}
	for _, i := range s.compared() {
		col := s.columns[i]
		changed = append(changed, d.differs(col, "t."+quote(col.name), "u."+names[i]))
	}
	same := []string{"t." + quote(colSource) + " = o.source"}
	for _, i := range s.positions() {
		same = append(same, "t."+quote(s.columns[i].name)+" = u."+names[i])
	}
	var out []statement
	for from, to := range rows.parts {
		var values strings.Builder
		for k := range to - from {
			fmt.Fprintf(&values, ",(%d%s)", k, strings.Repeat(",?", rows.width))
		}
		out = append(out, statement{fmt.Sprintf(`with o(source, first) as (select $1, $2), u(place, %s) as (values %s)
			select o.first + u.place, (%s) from o cross join u cross join %s t where %s`,
			strings.Join(names, ", "), values.String()[1:], strings.Join(changed, " or "), quote(s.name), strings.Join(same, " and ")),
			rows.bound([]any{c.source, from}, from, to)})
	}
	return out
}
