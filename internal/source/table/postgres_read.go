package table

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// analyze: the staging table is new, and the planner knows nothing about it.
func (postgres) analyze(table string) []statement {
	return []statement{{sql: "analyze " + quote(table)}}
}

func (postgres) read(c column, expression string) string {
	switch c.kind {
	case spec.Integer:
		return expression + "::bigint"
	case spec.Number:
		return expression + "::double precision"
	case spec.Text, spec.Object, rawText:
		return expression + "::text"
	case spec.Timestamp, instant:
		if unsized(c.found) == "timestamp without time zone" {
			return expression + " at time zone 'UTC'"
		}
	case spec.Boolean, spec.Date:
	}
	return expression
}

// page goes by created_at and, within one instant, by where the row is stored.
func (d postgres) page(table, columns string, created column, q pageQuery) (statement, error) {
	st := statement{args: []any{q.source, q.limit}}
	after := ""
	if q.place != "" {
		var block, line int64
		const farthest = 250_000_000_000_000_000 // microseconds, some 8,000 years: what PostgreSQL has dates for
		at, err := strconv.ParseInt(q.created, 10, 64)
		if err != nil || at < -60_000_000_000_000_000 || at > farthest {
			return st, badCursor()
		}
		if n, err := fmt.Sscanf(q.place, "(%d,%d)", &block, &line); n != 2 || err != nil || block < 0 || block > math.MaxUint32 || line < 0 || line > math.MaxUint16 {
			return st, badCursor()
		}
		instant := d.copied(created, `timestamptz 'epoch' + $3::text::bigint * interval '1 microsecond'`)
		after = ` and ("created_at", ctid) < (` + instant + `, $4::text::tid)`
		st.args = append(st.args, q.created, fmt.Sprintf("(%d,%d)", block, line))
	}
	st.sql = `select (extract(epoch from "created_at") * 1000000)::bigint::text, ctid::text as place, ` + columns + ` from ` + table +
		` where "source_name" = $1` + after + ` order by "created_at" desc, ctid desc limit $2`
	return st, nil
}

// remove: a place may be that of other rows in other partitions, which are only
// deleted if they are of the source too.
func (postgres) remove(table string) string {
	return `delete from ` + table + ` where "source_name" = $1 and ctid = any(array(select ctid from ` + table + ` where "source_name" = $1 limit $2))`
}

// wantsLast: without an index, finding the newest rows would read all of them.
func (postgres) wantsLast() bool { return true }

func (postgres) last(table, created string) string {
	return `select ` + created + ` from ` + table + ` where "source_name" = $1 order by "created_at" desc limit 1`
}
