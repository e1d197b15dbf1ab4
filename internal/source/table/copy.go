package table

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// Copies makes the tables of sources in PostgreSQL as they would be there, and
// tells how their rows are copied from SQLite. now are the definitions in
// force, then are earlier ones, the newest first: their columns are still in
// the tables, and tables that a source wrote to before are still there. Tables
// that are gone, and definitions that write to other databases, are left out.
func Copies(ctx context.Context, from, to DB, now, then []spec.Definition) ([]store.CopyTable, error) {
	groups, order, err := byTable(now)
	if err != nil {
		return nil, err
	}
	for _, d := range then {
		if key := strings.ToLower(d.Table); d.Write.Connection == "" && groups[key] == nil {
			groups[key], order = []spec.Definition{d}, append(order, key)
		}
	}
	var out []store.CopyTable
	for _, name := range order {
		c := copier{from: from, to: to, kinds: kindsOf(groups[name], then)}
		t, err := c.table(ctx, groups[name])
		if err != nil {
			return nil, fmt.Errorf("prepare the copy of table %s: %w", groups[name][0].Table, err)
		}
		if t.From != "" {
			out = append(out, t)
		}
	}
	return out, nil
}

// byTable gathers the sources of each table, which SQLite knows by its name in
// any case of letters, and PostgreSQL does not.
func byTable(all []spec.Definition) (groups map[string][]spec.Definition, order []string, err error) {
	groups = map[string][]spec.Definition{}
	for _, d := range all {
		if d.Write.Connection != "" {
			continue
		}
		key := strings.ToLower(d.Table)
		g := groups[key]
		if len(g) == 0 {
			order = append(order, key)
		} else if g[0].Table != d.Table {
			return nil, nil, &pawl.Error{
				Code: pawl.CodeInvalid, Reason: ReasonMismatch, Op: "prepare the copy",
				Msg:  fmt.Sprintf("the sources %s and %s call their table %s and %s, which are two tables in PostgreSQL", g[0].Name, d.Name, g[0].Table, d.Table),
				Hint: "Start the server, apply one of them with the spelling of the other, and try again.",
			}
		}
		groups[key] = append(g, d)
	}
	return groups, order, nil
}

// kindsOf tells what each column holds, by its name in lower case.
func kindsOf(now, then []spec.Definition) map[string]spec.Type {
	kinds := map[string]spec.Type{colSource: spec.Text, colCreated: instant, colUpdated: instant, colRun: spec.Text, colRaw: rawText, colRow: spec.Text}
	for _, d := range slices.Concat(now, then) {
		if !strings.EqualFold(d.Table, now[0].Table) {
			continue
		}
		for _, f := range d.Response.Fields {
			if name := strings.ToLower(f.Target); kinds[name] == "" {
				kinds[name] = f.Type
			}
		}
	}
	return kinds
}

// copier prepares the copy of one table.
type copier struct {
	from, to DB
	kinds    map[string]spec.Type
}

func (c *copier) table(ctx context.Context, sources []spec.Definition) (store.CopyTable, error) {
	here, err := inspect(ctx, c.from, sqlite{}, sources[0].Table)
	if err != nil || here == nil {
		return store.CopyTable{}, err
	}
	for _, d := range sources {
		plan, err := New(Postgres, d)
		if err != nil {
			return store.CopyTable{}, err
		}
		if _, err := plan.Ensure(ctx, c.to); err != nil {
			return store.CopyTable{}, err
		}
	}
	there, err := inspect(ctx, c.to, postgres{}, sources[0].Table)
	if err != nil {
		return store.CopyTable{}, err
	}
	t := store.CopyTable{From: sources[0].Table, To: sources[0].Table}
	for _, column := range here.columns {
		copied, err := c.column(ctx, t.To, column, there)
		if err != nil {
			return store.CopyTable{}, err
		}
		t.Columns = append(t.Columns, copied)
	}
	return t, nil
}

// column tells how a column is copied; one that no definition has any more is
// added to the table.
func (c *copier) column(ctx context.Context, table string, here existingColumn, there *existing) (store.CopyColumn, error) {
	kind := cmp.Or(c.kinds[strings.ToLower(here.name)], kindOf(here.typ))
	name, typ := here.name, postgres{}.typeOf(kind)
	i := slices.IndexFunc(there.columns, func(t existingColumn) bool { return strings.EqualFold(t.name, here.name) })
	if i >= 0 {
		name, typ = there.columns[i].name, there.columns[i].typ
	} else {
		st := statement{sql: fmt.Sprintf("alter table %s add column %s %s", quote(table), quote(name), typ)}
		if _, err := execAll(ctx, c.to, []statement{st}); err != nil {
			return store.CopyColumn{}, err
		}
	}
	return store.CopyColumn{
		Name:    name,
		From:    sqlite{}.read(column{}, quote(here.name)),
		To:      postgres{}.read(column{kind: kind, found: typ}, quote(name)),
		Convert: func(v any) (any, error) { return converted(kind, v) },
		Plain:   func(v any) any { return plain(kind, v) },
	}, nil
}

// kindOf is what a column holds that no definition knows, by its type.
func kindOf(found string) spec.Type {
	switch affinity(found) {
	case "INTEGER":
		return spec.Integer
	case "REAL":
		return spec.Number
	}
	return spec.Text
}

// converted makes what PostgreSQL takes of a value that SQLite holds.
func converted(kind spec.Type, v any) (any, error) {
	v = scanned(kind, v)
	if kind == spec.Text {
		switch x := v.(type) {
		case int64:
			v = strconv.FormatInt(x, 10)
		case float64:
			v = strconv.FormatFloat(x, 'g', -1, 64)
		}
	}
	if t, ok := v.(time.Time); ok && kind == instant {
		return t.Truncate(time.Microsecond), nil
	}
	if text, ok := v.(string); ok && (kind == spec.Object || kind == rawText) && !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%.60q is not JSON", text)
	}
	out, reason := normal(postgres{}, kind, v)
	if reason != "" {
		return nil, fmt.Errorf("%.60q cannot be stored: %s", fmt.Sprint(v), reason)
	}
	return out, nil
}

// plain makes what both databases answer with comparable.
func plain(kind spec.Type, v any) any {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	switch x := v.(type) {
	case time.Time:
		if kind == spec.Date {
			return x.Format(dateText)
		}
		return x.UnixMicro()
	case string:
		if kind == spec.Object {
			return plainJSON(x)
		}
	case float64:
		if x == 0 { // also -0
			return 0.0
		}
	}
	return v
}

// plainJSON spells JSON in one way: jsonb keeps neither the order of names nor
// how a number was written.
func plainJSON(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	out, err := json.Marshal(plainNumbers(v))
	if err != nil {
		return text
	}
	return string(out)
}

// plainNumbers makes texts of the numbers in a value: what no float holds
// becomes infinite, and is compared as such.
func plainNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		f, _ := strconv.ParseFloat(string(x), 64)
		return strconv.FormatFloat(f, 'g', -1, 64)
	case []any:
		for i := range x {
			x[i] = plainNumbers(x[i])
		}
	case map[string]any:
		for name := range x {
			x[name] = plainNumbers(x[name])
		}
	}
	return v
}
