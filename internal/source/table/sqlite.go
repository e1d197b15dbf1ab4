package table

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// sqlite passes the rows of a chunk as rows of VALUES.
type sqlite struct{}

// Instants are ISO 8601 text in UTC: to the millisecond, or to the microsecond
// if they have any.
const (
	milliText = "2006-01-02T15:04:05.000Z"
	microText = "2006-01-02T15:04:05.000000Z"
	dateText  = time.DateOnly
)

func (sqlite) typeOf(kind spec.Type) string {
	switch kind {
	case spec.Integer, spec.Boolean:
		return "INTEGER"
	case spec.Number:
		return "REAL"
	case spec.Text, spec.Timestamp, spec.Date, spec.Object, rawText, instant:
	}
	return "TEXT"
}

// fits goes by the affinity of the type: a column of it must not rewrite the
// values.
func (sqlite) fits(kind spec.Type, found string) bool {
	a := affinity(found)
	if a == "" || found == "ANY" {
		return true
	}
	switch kind {
	case spec.Integer, spec.Boolean:
		return a == "INTEGER" || a == "NUMERIC"
	case spec.Number:
		return a != "TEXT"
	case spec.Timestamp, spec.Date, instant: // such as DATETIME, which is NUMERIC
		return a == "TEXT" || a == "NUMERIC"
	case spec.Object, rawText:
		return a == "TEXT" || strings.HasPrefix(strings.ToUpper(found), "JSON")
	case spec.Text:
	}
	return a == "TEXT"
}

// affinity follows the rules of SQLite, in their order.
func affinity(found string) string {
	f := strings.ToUpper(found)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(f, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("INT"):
		return "INTEGER"
	case has("CHAR", "CLOB", "TEXT"):
		return "TEXT"
	case f == "" || has("BLOB"):
		return ""
	case has("REAL", "FLOAT", "DOUBLE"):
		return "REAL"
	}
	return "NUMERIC"
}

func (sqlite) sameName(a, b string) bool { return strings.EqualFold(a, b) }

// lock: the single writer is the lock.
func (sqlite) lock(string) statement { return statement{} }

func (sqlite) inspect(table string) (columns, indexes statement) {
	columns.sql = `select i.name, i.type, i."notnull" = 1 and i.dflt_value is null,
			case when l.wr = 1 then 'table without rowid' when l.type = 'table' then 'table' else 'view' end
		from pragma_table_list($1) l join pragma_table_info($1) i where l.schema = 'main' order by i.cid`
	indexes.sql = `select l.name, coalesce(x.name, '') from pragma_index_list($1) l join pragma_index_info(l.name) x
		where l."unique" = 1 and l.partial = 0
		union all select 'primary key', i.name from pragma_table_info($1) i where i.pk > 0`
	columns.args = []any{table}
	indexes.args = columns.args
	return columns, indexes
}

func (sqlite) bind(kind spec.Type, v any) any {
	t, ok := v.(time.Time)
	if !ok {
		return v
	}
	if kind == spec.Date {
		return t.Format(dateText)
	}
	if t = t.UTC(); t.Nanosecond()%int(time.Millisecond) == 0 {
		return t.Format(milliText)
	}
	return t.Format(microText)
}

func (sqlite) refuse(spec.Type, string) string { return "" }

func (sqlite) given(own column) string { return parameter(own) }

func (sqlite) copied(_ column, value string) string { return value }

func (sqlite) differs(_ column, there, value string) string {
	return there + " is not " + value
}

// analyze: SQLite looks rows up by the index, whatever their number.
func (sqlite) analyze(string) []statement { return nil }

// read hides the type of the column, which the driver would go by: it makes
// instants of texts.
func (sqlite) read(_ column, expression string) string { return "+" + expression }

// page goes by rowid, which grows with every row: no index has to be paid for.
func (sqlite) page(table, columns string, _ column, q pageQuery) (statement, error) {
	st := statement{args: []any{q.source, q.limit}}
	after := ""
	if q.place != "" {
		after = ` and rowid < cast($3 as integer)`
		st.args = append(st.args, q.place)
	}
	st.sql = `select +"created_at", cast(rowid as text), ` + columns + ` from ` + table + ` where "source_name" = $1` + after +
		` order by rowid desc limit $2`
	return st, nil
}

func (sqlite) remove(table string) string {
	return `delete from ` + table + ` where rowid in (select rowid from ` + table + ` where "source_name" = $1 limit $2)`
}

// wantsLast: rows are listed by rowid, and last is only asked for before the
// first run.
func (sqlite) wantsLast() bool { return false }

func (sqlite) last(table, created string) string {
	return `select ` + created + ` from ` + table + ` where "source_name" = $1 order by "created_at" desc limit 1`
}
