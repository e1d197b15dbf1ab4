package table

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// postgres passes the rows of a chunk as one array a column, which unnest turns
// into rows: one short text for any number of rows.
type postgres struct{}

func (postgres) typeOf(kind spec.Type) string {
	switch kind {
	case spec.Integer:
		return "bigint"
	case spec.Number:
		return "double precision"
	case spec.Boolean:
		return "boolean"
	case spec.Timestamp, instant:
		return "timestamp with time zone"
	case spec.Date:
		return "date"
	case spec.Object:
		return "jsonb"
	case rawText: // jsonb would rewrite it, and refuses some texts that are JSON
		return "json"
	case spec.Text:
	}
	return "text"
}

func (d postgres) fits(kind spec.Type, found string) bool {
	fitting := []string{d.typeOf(kind)}
	switch kind {
	case spec.Text:
		fitting = append(fitting, "character varying")
	case spec.Integer:
		fitting = append(fitting, "integer", "smallint", "numeric")
	case spec.Number:
		fitting = append(fitting, "real", "numeric")
	case spec.Timestamp, instant:
		fitting = append(fitting, "timestamp without time zone")
	case spec.Object:
		fitting = append(fitting, "json")
	case rawText:
		fitting = append(fitting, "text")
	case spec.Boolean, spec.Date:
	}
	return slices.Contains(fitting, unsized(found))
}

// unsized is a type without its length or precision.
func unsized(found string) string {
	before, rest, sized := strings.Cut(found, "(")
	if !sized {
		return found
	}
	_, after, _ := strings.Cut(rest, ")")
	return before + after
}

func (postgres) sameName(a, b string) bool { return a == b }

// lock: the first key keeps Pawl's locks apart from other users' of the same
// database.
func (postgres) lock(table string) statement {
	return statement{`select pg_advisory_xact_lock(7295003, hashtext($1))`, []any{table}}
}

// inspect goes by the rows of the catalog: to_regclass may answer with what was
// there when the transaction began.
func (postgres) inspect(table string) (columns, indexes statement) {
	columns.sql = `select a.attname::text, format_type(a.atttypid, a.atttypmod),
			case when a.attnotnull and not a.atthasdef and a.attidentity = '' then 1 else 0 end,
			case when c.relkind in ('r', 'p') then 'table' else 'view' end
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relname = $1 and pg_table_is_visible(c.oid) order by a.attnum`
	indexes.sql = `select n.relname::text, a.attname::text
		from pg_class c join pg_index i on i.indrelid = c.oid join pg_class n on n.oid = i.indexrelid
			cross join lateral unnest(i.indkey) with ordinality k(number, place)
			join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
		where c.relname = $1 and pg_table_is_visible(c.oid) and i.indisunique and i.indisvalid and i.indimmediate
			and i.indpred is null and i.indexprs is null and k.place <= i.indnkeyatts
		order by n.relname, k.place`
	columns.args = []any{table}
	indexes.args = columns.args
	return columns, indexes
}

func (postgres) bind(_ spec.Type, v any) any { return v }

// refuse: jsonb stores no NUL, however it is written.
func (postgres) refuse(kind spec.Type, text string) string {
	if kind == spec.Object && hasEscapedNUL(text) {
		return "has a NUL character, which PostgreSQL cannot store"
	}
	return ""
}

func hasEscapedNUL(text string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], `\u0000`)
		if i < 0 {
			return false
		}
		at += i
		slashes := len(text[:at]) - len(strings.TrimRight(text[:at], `\`))
		if slashes%2 == 0 {
			return true
		}
		at++
	}
}
