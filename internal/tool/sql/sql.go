package sqltool

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// heldByCall is what a call may hold at its worst, in bytes: a row as it comes,
// its values, and the result as it goes to the script.
const heldByCall = 32 << 20

// Database is the connection to one database.
type Database struct {
	engine   engine
	service  string // names the connection and where it leads, in messages
	place    string // where it leads, for people
	timeout  time.Duration
	limit    limit
	readOnly bool   // there is no exec
	track    bool   // exec is recorded in the table of calls
	password string // of the url
	secrets  redact.Redactor

	booksReady atomic.Bool // the table of calls was there and could be used
}

// engine is a kind of database. Its errors are *connector.Error.
type engine interface {
	// check reads the SQL of a script and refuses what the method may not do.
	check(method, sql string, params int) (text string, err error)

	// begin opens a connection and a transaction in it. What it says to have
	// not happened did not, and will not.
	begin(ctx context.Context, writes bool) (transaction, error)

	// booksExist is a statement that answers with a row if the table of calls
	// is there.
	booksExist() string

	// describe asks the database who it is, for people.
	describe(ctx context.Context, tx transaction) (string, error)

	// close lets go of what is kept between calls. Calls stay possible.
	close()
}

// transaction is a connection with an open transaction. Its errors are
// *connector.Error.
type transaction interface {
	// run executes one statement.
	run(ctx context.Context, s statement, l limit) (table, error)

	// commit makes the changes last. It does not stop when ctx ends. If its
	// error does not say that nothing happened, nobody knows.
	commit(ctx context.Context) error

	// close undoes what was not committed, also when ctx has ended, and gives
	// the connection back.
	close(ctx context.Context)
}

// statement is SQL with its parameters, which are JSON values.
type statement struct {
	sql    string
	params []json.RawMessage
}

// Methods lists query and, unless the connection only reads, exec.
func (d *Database) Methods() []connector.Method {
	methods := []connector.Method{{Name: methodQuery}}
	if !d.readOnly {
		methods = append(methods, connector.Method{Name: methodExec, Mutation: true, Reconciles: d.track})
	}
	return methods
}

// Call reads or changes the database. Its errors are *connector.Error.
func (d *Database) Call(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	if err := budget.Reserve(ctx, heldByCall); err != nil {
		return nil, &connector.Error{Class: pawl.ClassTransient, Code: "busy", NotApplied: true, Msg: "too much data is being read by others", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var result json.RawMessage
	var err error
	switch {
	case c.Method == methodQuery:
		result, err = d.query(ctx, c.Args)
	case c.Method == methodExec && !d.readOnly:
		result, err = d.exec(ctx, c)
	default:
		err = &connector.Error{
			Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
			Msg: "there is no method " + pawl.Quote(c.Method),
		}
	}
	if err != nil {
		return nil, d.report(err)
	}
	return result, nil
}

// query runs a statement that only reads.
func (d *Database) query(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	asked, err := d.parse(methodQuery, args)
	if err != nil {
		return nil, err
	}
	tx, err := d.engine.begin(ctx, false)
	if err != nil {
		return nil, err
	}
	defer tx.close(ctx)
	found, err := tx.run(ctx, asked, d.limit)
	if err != nil {
		return nil, err
	}
	return found.queryResult()
}

// Test asks the database who it is.
func (d *Database) Test(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	tx, err := d.engine.begin(ctx, false)
	if err != nil {
		return "", d.report(err)
	}
	defer tx.close(ctx)
	saw, err := d.engine.describe(ctx, tx)
	if err != nil {
		return "", d.report(err)
	}
	return saw, nil
}

// Close lets go of the connections that are kept between calls.
func (d *Database) Close() error {
	if d.engine != nil {
		d.engine.close()
	}
	return nil
}
