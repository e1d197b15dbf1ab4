package table

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// sqlite passes the rows of a chunk as rows of VALUES.
type sqlite struct{}

// Instants are ISO 8601 text in UTC of one length, so that their order is the
// order of the text.
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
	if kind == instant {
		return t.UTC().Format(milliText)
	}
	return t.UTC().Format(microText)
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

func (sqlite) page(table, columns string, _ column, q pageQuery) (statement, error) {
	st := statement{args: []any{q.source, q.limit}}
	after := ""
	if q.place != "" {
		after = ` and ("created_at", rowid) < ($3, cast($4 as integer))`
		st.args = append(st.args, q.created, q.place)
	}
	st.sql = `select +"created_at", cast(rowid as text), ` + columns + ` from ` + table + ` where "source_name" = $1` + after +
		` order by "created_at" desc, rowid desc limit $2`
	return st, nil
}

func (sqlite) remove(table string) string {
	return `delete from ` + table + ` where rowid in (select rowid from ` + table + ` where "source_name" = $1 limit $2)`
}
