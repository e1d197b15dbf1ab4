package table

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// Finish ends a fetch that was whole.
type Finish struct {
	At          time.Time
	RunID       string
	WantChanged bool // Result.Rows is wanted; all of them are held in memory
}

// Begin makes an empty staging table for a replace; a fetch that goes on where
// another was cut off leaves it out. Ensure comes first. The other modes need
// no preparation.
func (p *Plan) Begin(ctx context.Context, db DB, runID string) error {
	if p.mode != spec.Replace {
		return nil
	}
	stage := p.staging()
	statements := append([]statement{dropped(stage)}, p.creation(stage)...)
	if _, err := execAll(ctx, db, statements); err != nil {
		return fmt.Errorf("stage rows of run %s for %s: %w", runID, p.shape.name, err)
	}
	return nil
}

func dropped(stage shape) statement {
	return statement{sql: "drop table if exists " + quote(stage.name)}
}

// Finish makes the table hold what the pages of a replace held, as far as rows
// of this source go: those that are gone are deleted, those that differ brought
// up to date, the others left as they are. The other modes have nothing to do.
func (p *Plan) Finish(ctx context.Context, db DB, w Finish) (Result, error) {
	if p.mode != spec.Replace {
		return Result{}, nil
	}
	swap := &swapping{plan: p, db: db, table: &p.shape, stage: p.staging()}
	swap.share = constants{p.source, p.sql.bind(instant, w.At.UTC().Truncate(time.Millisecond)), w.RunID}
	res, err := swap.run(ctx, w.WantChanged)
	if err != nil {
		return Result{}, fmt.Errorf("replace rows of %s: %w", p.shape.name, err)
	}
	return res, nil
}

// swapping moves the rows of the staging table s to the table x.
type swapping struct {
	plan  *Plan
	db    DB
	table *shape
	stage shape
	share constants
}

func (w *swapping) run(ctx context.Context, want bool) (Result, error) {
	var res Result
	staged, err := w.staged(ctx)
	if err != nil {
		return res, err
	}
	if _, err := execAll(ctx, w.db, w.plan.sql.analyze(w.stage.name)); err != nil {
		return res, err
	}
	if want {
		if res.Rows, err = w.changes(ctx); err != nil {
			return res, err
		}
	}
	for _, step := range []struct {
		st    statement
		count *int
	}{{w.remove(), &res.Removed}, {w.update(), &res.Changed}, {w.insert(), &res.New}, {dropped(w.stage), new(int)}} {
		if step.st.sql == "" {
			continue
		}
		if *step.count, err = execAll(ctx, w.db, []statement{step.st}); err != nil {
			return res, err
		}
	}
	res.Same = staged - res.New - res.Changed
	return res, nil
}

// staged counts the rows that were gathered.
func (w *swapping) staged(ctx context.Context) (n int, err error) {
	found, err := inspect(ctx, w.db, w.plan.sql, w.stage.name)
	if err != nil {
		return 0, err
	}
	if found == nil {
		return 0, &pawl.Error{Code: pawl.CodeConflict, Msg: "the rows that were fetched are not there any more", Hint: "Run the source again from its first page."}
	}
	err = each(ctx, w.db, statement{sql: "select count(*) from " + quote(w.stage.name)}, func(scan func(...any) error) error { return scan(&n) })
	return n, err
}

// same is the condition that x and s are one row.
func (w *swapping) same() string {
	conditions := []string{"x." + quote(colSource) + " = $1", "s." + quote(colSource) + " = $1"}
	for _, i := range w.table.positions() {
		c := w.table.columns[i]
		conditions = append(conditions, "x."+quote(c.name)+" = "+w.plan.sql.copied(c, "s."+quote(c.name)))
	}
	return strings.Join(conditions, " and ")
}

// differ is the condition that x has other values than s; empty: it cannot.
func (w *swapping) differ() string {
	var conditions []string
	for _, i := range w.table.compared() {
		c := w.table.columns[i]
		conditions = append(conditions, w.plan.sql.differs(c, "x."+quote(c.name), "s."+quote(c.name)))
	}
	return strings.Join(conditions, " or ")
}

func (w *swapping) remove() statement {
	return statement{fmt.Sprintf("delete from %s as x where x.%s = $1 and not exists (select 1 from %s s where %s)",
		quote(w.table.name), quote(colSource), quote(w.stage.name), w.same()), []any{w.share.source}}
}

func (w *swapping) update() statement {
	if w.differ() == "" {
		return statement{}
	}
	var set []string
	for _, own := range w.table.own {
		if own.name == colRun || own.name == colUpdated {
			set = append(set, quote(own.name)+" = "+w.plan.sql.given(own))
		}
	}
	for _, i := range w.table.compared() {
		c := w.table.columns[i]
		set = append(set, quote(c.name)+" = "+w.plan.sql.copied(c, "s."+quote(c.name)))
	}
	return statement{fmt.Sprintf("update %s as x set %s from %s s where %s and (%s)",
		quote(w.table.name), strings.Join(set, ", "), quote(w.stage.name), w.same(), w.differ()), w.share.args()}
}

func (w *swapping) insert() statement {
	var values []string
	for _, own := range w.table.own {
		values = append(values, w.plan.sql.given(own))
	}
	for _, c := range w.table.columns {
		values = append(values, w.plan.sql.copied(c, "s."+quote(c.name)))
	}
	return statement{fmt.Sprintf("insert into %s (%s) select %s from %s s where true on conflict %s do nothing",
		quote(w.table.name), w.table.written(), strings.Join(values, ", "), quote(w.stage.name), w.table.conflict()), w.share.args()}
}

// changes reads the rows that are about to be new or changed.
func (w *swapping) changes(ctx context.Context) ([]Changed, error) {
	var columns []string
	for _, c := range w.stage.columns {
		columns = append(columns, w.plan.sql.read(c, "s."+quote(c.name)))
	}
	differ := w.differ()
	if differ != "" {
		differ = " or " + differ
	}
	st := statement{fmt.Sprintf("select case when x.%[1]s is null then 1 else 0 end, %[2]s from %[3]s s left join %[4]s x on %[5]s where x.%[1]s is null%[6]s",
		quote(colSource), strings.Join(columns, ", "), quote(w.stage.name), quote(w.table.name), w.same(), differ), []any{w.share.source}}
	var out []Changed
	var fresh int
	values := make([]any, len(columns))
	err := each(ctx, w.db, st, func(scan func(...any) error) error {
		if err := scan(slices.Concat([]any{&fresh}, pointersTo(values))...); err != nil {
			return err
		}
		for i, c := range w.stage.columns {
			values[i] = scanned(c.kind, values[i])
		}
		c, err := changedRow(&w.stage, values, fresh == 1)
		out = append(out, c)
		return err
	})
	return out, err
}

func pointersTo(values []any) []any {
	out := make([]any, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}
