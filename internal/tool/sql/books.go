package sqltool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// The statements of the table of calls, in the SQL that both databases share.
const (
	createBooks = `create table if not exists pawl_calls (key text primary key, at timestamptz not null, result text)`
	insertCall  = `insert into pawl_calls (key, at) values ($1, $2) on conflict (key) do nothing`
	selectCall  = `select result from pawl_calls where key = $1`
	updateCall  = `update pawl_calls set result = $2 where key = $1 and result is null`
)

const booksHint = "Let the role create it, or create it yourself: " + createBooks +
	"; the role needs to select, insert and update. Or set track: false, which gives up knowing the outcome of a call whose answer was lost."

// entry is what is recorded about a call.
type entry struct {
	result json.RawMessage // nil if the call was withdrawn
}

// repeated is what a call answers whose key is already recorded.
func (e entry) repeated() (json.RawMessage, error) {
	if e.result != nil {
		return e.result, nil
	}
	return nil, &connector.Error{
		Class: pawl.ClassTransient, Code: "withdrawn", NotApplied: true,
		Msg: "the call came too late: it was already reported as not having happened",
	}
}

// enter records a key without a result. If it is not new, it returns what is
// recorded. It waits for the end of a transaction that holds the key.
func (d *Database) enter(ctx context.Context, tx transaction, key string, now time.Time) (e entry, isNew bool, err error) {
	inserted, err := tx.run(ctx, book(insertCall, key, pawl.FormatTime(now)), d.limit)
	if err != nil {
		d.booksReady.Store(false) // it may have been dropped
		return entry{}, false, booksFault(err)
	}
	if inserted.affected == 1 {
		return entry{}, true, nil
	}
	// A result may be as large as it was allowed to be, and is quoted here.
	found, err := tx.run(ctx, book(selectCall, key), limit{rows: 1, bytes: 8 * largestResult})
	if err != nil {
		return entry{}, false, booksFault(err)
	}
	var row struct {
		Result *string `json:"result"`
	}
	if len(found.rows) != 1 || json.Unmarshal(found.rows[0], &row) != nil {
		return entry{}, false, &connector.Error{Class: pawl.ClassTransient, Code: "unavailable", NotApplied: true, Msg: "the record of the call was removed while it was read"}
	}
	if row.Result == nil {
		return entry{}, false, nil
	}
	return entry{result: json.RawMessage(*row.Result)}, false, nil
}

// record adds the result to the key that was entered in this transaction.
func record(ctx context.Context, tx transaction, key string, result json.RawMessage) error {
	updated, err := tx.run(ctx, book(updateCall, key, string(result)), limit{})
	if err != nil {
		return booksFault(err)
	}
	if updated.affected != 1 {
		return &connector.Error{
			Class: pawl.ClassLogic, Code: "record_lost", NotApplied: true,
			Msg: "the statement took the record of its own call away, and was undone", Hint: "Leave the table pawl_calls alone.",
		}
	}
	return nil
}

// book is a statement about the table of calls. All its parameters are texts.
func book(sql string, params ...string) statement {
	s := statement{sql: sql}
	for _, param := range params {
		s.params = append(s.params, encodeText(param))
	}
	return s
}

// ensureBooks makes the table of calls if it is missing, and tries it out. It
// does so once, and again after the table could not be used.
func (d *Database) ensureBooks(ctx context.Context) error {
	if d.booksReady.Load() {
		return nil
	}
	err := d.makeBooks(ctx)
	if e, ok := errors.AsType[*connector.Error](err); ok && e.Class == pawl.ClassLogic {
		err = d.makeBooks(ctx) // another process made it in the same moment
	}
	if err != nil {
		return booksFault(err)
	}
	if err := d.tryBooks(ctx); err != nil {
		return booksFault(err)
	}
	d.booksReady.Store(true)
	return nil
}

// makeBooks creates the table unless it is there. A role that may use but not
// create it is welcome, so that creating is not even tried then.
func (d *Database) makeBooks(ctx context.Context) error {
	tx, err := d.engine.begin(ctx, true)
	if err != nil {
		return err
	}
	defer tx.close(ctx)
	found, err := tx.run(ctx, book(d.engine.booksExist()), d.limit)
	if err != nil || len(found.rows) > 0 {
		return err
	}
	if _, err := tx.run(ctx, book(createBooks), d.limit); err != nil {
		return err
	}
	return tx.commit(ctx)
}

// tryBooks does what exec and Reconcile do with the table, and undoes it.
func (d *Database) tryBooks(ctx context.Context) error {
	tx, err := d.engine.begin(ctx, true)
	if err != nil {
		return err
	}
	defer tx.close(ctx)
	const probe = "probe"
	for _, s := range []statement{book(insertCall, probe, pawl.FormatTime(time.Now())), book(selectCall, probe), book(updateCall, probe, "{}")} {
		if _, err := tx.run(ctx, s, d.limit); err != nil {
			return err
		}
	}
	return nil
}

// booksFault is what went wrong with the table of calls, before the statement
// of the call was committed.
func booksFault(err error) error {
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		return err
	}
	fault := *e
	fault.NotApplied = true // also if the commit of the new table got lost
	switch fault.Class {
	case pawl.ClassIndeterminate:
		fault.Class = pawl.ClassTransient
	case pawl.ClassPermission, pawl.ClassPrecondition:
		fault.Msg, fault.Hint = "the table pawl_calls, in which calls are recorded, cannot be used: "+e.Msg, booksHint
	case pawl.ClassLogic: // nothing that a script could change
		fault.Class, fault.Msg, fault.Hint = pawl.ClassPrecondition, "the table pawl_calls, in which calls are recorded, is not as it should be: "+e.Msg, booksHint
	default:
	}
	return &fault
}
