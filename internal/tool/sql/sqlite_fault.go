package sqltool

import (
	"context"
	"errors"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// sqliteCode is the primary result code in an error, or 0.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// sqliteFault is a fault before the commit, or one that undid it. It is judged
// by its code; SQLite has only one for all that is wrong with a statement.
func sqliteFault(ctx context.Context, err error, writes bool) *connector.Error {
	if own, ok := errors.AsType[*connector.Error](err); ok {
		return own
	}
	if fault := stopped(ctx); fault != nil {
		return fault
	}
	fault := &connector.Error{NotApplied: true, Msg: quote(err.Error()), Err: err}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		fault.Class, fault.Code = pawl.ClassTransient, "busy"
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_INTERRUPT:
		fault.Class, fault.Code = pawl.ClassTransient, "unavailable"
	case sqlite3.SQLITE_CONSTRAINT:
		fault.Class, fault.Code = pawl.ClassLogic, "constraint"
	case sqlite3.SQLITE_MISMATCH:
		fault.Class, fault.Code = pawl.ClassLogic, "bad_value"
	case sqlite3.SQLITE_TOOBIG:
		fault.Class, fault.Code = pawl.ClassLogic, "bad_value"
		fault.Hint = "A value may have 8 MiB, and all columns of a row 32 MiB; select fewer or shorter ones, such as with substr."
	case sqlite3.SQLITE_READONLY:
		fault.Class, fault.Code, fault.Hint = pawl.ClassPermission, "no_access", "Give Pawl the right to write the file of the database and its folder."
		if !writes {
			fault.Class, fault.Code, fault.Hint = pawl.ClassLogic, "reads_only", "query cannot change anything; use exec."
		}
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		fault.Class, fault.Code = pawl.ClassPermission, "no_access"
	case sqlite3.SQLITE_CANTOPEN:
		fault.Class, fault.Code, fault.Hint = pawl.ClassPermission, "no_access", "Give Pawl the right to use the file of the database and its folder."
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		fault.Class, fault.Code, fault.Hint = pawl.ClassPrecondition, "no_database", "The file is damaged, or not a database of SQLite."
	default:
		fault.Class, fault.Code = pawl.ClassLogic, "bad_sql"
	}
	return fault
}
