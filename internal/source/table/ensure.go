package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// Change is what Ensure did to the table.
type Change struct {
	Created bool
	Added   []string // columns
}

// Ensure makes the table fit the definition: it creates it or adds the columns
// that it lacks. A table that cannot fit is left alone; the error has the
// reason table_mismatch and says each column, what it should be and what it is.
func (p *Plan) Ensure(ctx context.Context, db DB) (Change, error) {
	change, err := p.ensure(ctx, db)
	if err != nil {
		return Change{}, fmt.Errorf("prepare table %s: %w", p.shape.name, err)
	}
	return change, nil
}

func (p *Plan) ensure(ctx context.Context, db DB) (Change, error) {
	found, err := inspect(ctx, db, p.sql, p.shape.name)
	if err != nil {
		return Change{}, err
	}
	fit, err := p.fit(found)
	if err != nil || len(fit.statements) == 0 {
		return Change{}, p.learn(fit, err)
	}
	// Somebody else may be at it: look again once they have gone.
	if st := p.sql.lock(p.shape.name); st.sql != "" {
		if err := each(ctx, db, st, func(func(...any) error) error { return nil }); err != nil {
			return Change{}, err
		}
		if found, err = inspect(ctx, db, p.sql, p.shape.name); err != nil {
			return Change{}, err
		}
		if fit, err = p.fit(found); err != nil {
			return Change{}, err
		}
	}
	if fit.unique {
		if err := p.checkUnique(ctx, db, fit); err != nil {
			return Change{}, err
		}
	}
	if _, err := execAll(ctx, db, fit.statements); err != nil {
		return Change{}, err
	}
	return fit.change, p.learn(fit, nil)
}

// learn keeps how the table is to be written.
func (p *Plan) learn(fit fitting, err error) error {
	if err == nil {
		p.shape = fit.shape
	}
	return err
}

// fitting is how a table comes to fit.
type fitting struct {
	shape      shape
	statements []statement
	change     Change
	unique     bool // a table that is there gets a unique index
}

// fit decides what the table needs; found is nil where there is none.
func (p *Plan) fit(found *existing) (fitting, error) {
	if found == nil {
		return p.create(), nil
	}
	if found.kind != "table" {
		return fitting{}, p.mismatch(fmt.Sprintf("it is a %s", found.kind))
	}
	fit := fitting{shape: p.natural(p.shape.name)}
	faults := p.identifyInto(&fit, found)
	for _, columns := range [][]column{fit.shape.own, fit.shape.columns} {
		for i := range columns {
			faults = append(faults, p.fitColumn(&fit, found, &columns[i])...)
		}
	}
	for _, c := range found.columns {
		written := slices.ContainsFunc(slices.Concat(fit.shape.own, fit.shape.columns), func(w column) bool { return p.sql.sameName(w.name, c.name) })
		if c.needed && !written {
			faults = append(faults, fmt.Sprintf("column %s needs a value, and the source has none for it", c.name))
		}
	}
	if len(faults) > 0 {
		return fitting{}, p.mismatch(faults...)
	}
	if fit.unique { // after the columns that it is over
		fit.statements = append(fit.statements, statement{sql: p.index(fit.shape.name, fit.shape.ident)})
	}
	return fit, nil
}

// create is the fitting of a table that is not there.
func (p *Plan) create() fitting {
	s := p.natural(p.shape.name)
	fit := fitting{shape: s, statements: p.creation(s), change: Change{Created: true}}
	if p.sql.wantsLast() {
		last := fmt.Sprintf("create index %s on %s (%s)", quote("_pawl_last_"+digest(s.name)[:20]), quote(s.name), list([]string{colSource, colCreated}))
		fit.statements = append(fit.statements, statement{sql: last})
	}
	return fit
}

// creation makes a table of a shape, with its unique index.
func (p *Plan) creation(s shape) []statement {
	var lines []string
	for _, c := range slices.Concat(s.own[:2], s.columns, s.own[2:]) {
		line := quote(c.name) + " " + p.sql.typeOf(c.kind)
		if c.name == colSource || c.name == colCreated {
			line += " not null"
		}
		lines = append(lines, line)
	}
	return []statement{
		{sql: fmt.Sprintf("create table %s (%s)", quote(s.name), strings.Join(lines, ", "))},
		{sql: p.index(s.name, s.ident)},
	}
}

// identifyInto finds the unique index of the table, or plans one if the table
// is Pawl's own.
func (p *Plan) identifyInto(fit *fitting, found *existing) (faults []string) {
	id, ok := p.identify(found)
	switch {
	case ok:
		if !slices.Equal(id.columns, []string{colRow}) {
			fit.shape.columns = slices.Clone(p.fields)
		}
		fit.shape.ident = id
	case found.isPawls():
		fit.unique = true
	default:
		want := append([]string{colSource}, p.key...)
		return []string{fmt.Sprintf("it has no unique index that identifies rows, such as (%s)", strings.Join(want, ", "))}
	}
	return nil
}

// fitColumn checks a column that is there, and plans one that is not.
func (p *Plan) fitColumn(fit *fitting, found *existing, c *column) (faults []string) {
	want := p.sql.typeOf(c.kind)
	there, ok := found.find(p.sql, c.name)
	switch {
	case !ok && (c.name == colSource || c.name == colCreated):
		return []string{fmt.Sprintf("column %s is missing (wanted %s)", c.name, want)}
	case !ok:
		fit.change.Added = append(fit.change.Added, c.name)
		fit.statements = append(fit.statements, statement{sql: fmt.Sprintf("alter table %s add column %s %s", quote(fit.shape.name), quote(c.name), want)})
	case !p.sql.fits(c.kind, there.typ):
		return []string{fmt.Sprintf("column %s: wanted %s, found %s", c.name, want, there.typ)}
	case !strings.EqualFold(there.typ, want):
		c.found = there.typ
	}
	return nil
}

// checkUnique refuses a unique index that the rows of the table break.
func (p *Plan) checkUnique(ctx context.Context, db DB, fit fitting) error {
	var present []string
	columns := append([]string{colSource}, fit.shape.ident.columns...)
	for _, name := range fit.shape.ident.columns {
		if slices.Contains(fit.change.Added, name) {
			return nil // it is NULL in every row
		}
		present = append(present, quote(name)+" is not null")
	}
	broken := false
	err := each(ctx, db, statement{sql: fmt.Sprintf("select 1 from %s where %s group by %s having count(*) > 1 limit 1",
		quote(fit.shape.name), strings.Join(present, " and "), list(columns))}, func(func(...any) error) error {
		broken = true
		return nil
	})
	if err == nil && broken {
		err = p.mismatch(fmt.Sprintf("its rows are not unique by %s, which is the key", strings.Join(columns, ", ")))
	}
	return err
}

// Agree refuses a column of another type than the rows have that are in it: what
// earlier definitions of the table said, the newest first. PostgreSQL refused it
// by the type of the column; SQLite cannot tell a date from a text, and would
// hold both side by side, which nobody could read or promote. Columns that
// Ensure has just added hold nothing.
func (p *Plan) Agree(known []spec.Definition, change Change) error {
	if _, lite := p.sql.(sqlite); !lite || change.Created {
		return nil
	}
	var pg postgres
	var faults []string
	for _, c := range p.fields {
		held, ok := kindIn(known, p.shape.name, c.name)
		if added := slices.ContainsFunc(change.Added, func(name string) bool { return p.sql.sameName(name, c.name) }); !ok || added {
			continue
		}
		if found := pg.typeOf(held); !pg.fits(c.kind, found) {
			faults = append(faults, fmt.Sprintf("column %s: wanted %s, found %s", c.name, pg.typeOf(c.kind), found))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	err := p.mismatch(faults...)
	err.Hint = "A column keeps the type of its rows: name another column, or a table that does not exist yet."
	return fmt.Errorf("prepare table %s: %w", p.shape.name, err)
}

// kindIn is what a column holds by the first definition that writes it.
func kindIn(known []spec.Definition, table, column string) (spec.Type, bool) {
	for _, d := range known {
		if d.Write.Connection != "" || !strings.EqualFold(d.Table, table) {
			continue
		}
		for _, f := range d.Response.Fields {
			if strings.EqualFold(f.Target, column) {
				return f.Type, true
			}
		}
	}
	return "", false
}

// mismatch is the error of a table that does not fit.
func (p *Plan) mismatch(faults ...string) *pawl.Error {
	e := &pawl.Error{
		Code: pawl.CodeInvalid, Reason: ReasonMismatch,
		Msg:  fmt.Sprintf("table %s does not match source %s: %s", p.shape.name, p.source, strings.Join(faults, "; ")),
		Hint: "Change the table or the definition, or name a table that does not exist yet: Pawl creates it.",
	}
	for _, f := range faults {
		e.Fields = append(e.Fields, pawl.Field{Pointer: "/table", Message: f})
	}
	return e
}
