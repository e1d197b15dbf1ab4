package store

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	pawl "github.com/pawlrun/pawl"
)

// errorKind is what an error of a driver means for the caller.
type errorKind int

const (
	errorOther       errorKind = iota
	errorContention            // the transaction may be run again at once
	errorUnique                // a unique rule refused the row
	errorUnavailable           // the database cannot be used now
	errorFull                  // no space left
	errorSameID                // another process made the same id
	errorText                  // a text cannot be stored
)

// Primary result codes of SQLite; the low byte of the extended ones.
const (
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteNoMem    = 7
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26

	sqliteConstraintUnique     = 2067
	sqliteConstraintPrimaryKey = 1555
)

func classifySQLite(err error) errorKind {
	var code int
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code()
	} else if e, ok := errors.AsType[*liteFault](err); ok {
		code = e.code
	} else {
		return errorOther
	}
	switch code {
	case sqliteConstraintUnique, sqliteConstraintPrimaryKey:
		return errorUnique
	}
	switch code & 0xff {
	case sqliteBusy, sqliteLocked:
		return errorContention
	case sqliteFull:
		return errorFull
	case sqliteIOErr, sqliteCantOpen, sqliteReadOnly, sqliteNoMem, sqliteCorrupt, sqliteNotADB:
		return errorUnavailable
	}
	return errorOther
}

// classifyPostgres goes by the SQLSTATE; what has none and is no programming
// error of ours is a broken connection.
func classifyPostgres(err error) errorKind {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if e.Code == "23505" && slices.Contains([]string{"jobs_pkey", "audit_log_pkey", "events_pkey"}, e.ConstraintName) {
			return errorSameID
		}
		switch e.Code {
		case "40001", "40P01", "55P03":
			return errorContention
		case "23505":
			return errorUnique
		case "53100":
			return errorFull
		case "22021": // NUL, or not UTF-8
			return errorText
		case "25006", "25P03": // read-only standby, idle-in-transaction timeout
			return errorUnavailable
		}
		switch e.Code[:2] {
		case "08", "53", "57", "58":
			return errorUnavailable
		}
		return errorOther
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return errorUnavailable
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return errorUnavailable
	}
	if isClosedConn(err) {
		return errorUnavailable
	}
	return errorOther
}

// ErrNoAnswer is a database that did not answer in its time.
var ErrNoAnswer error = &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database does not answer in time", Hint: "Pawl continues automatically when it answers again."}

// Refused reports whether an error is the answer of a database that works: it
// did not carry the transaction out, and would not the next time either. Else
// the transaction may be tried again, or nobody knows what became of it.
func Refused(err error) bool {
	if err == nil || errors.Is(err, pawl.ErrUnavailable) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return true
	}
	_, simulated := errors.AsType[*liteFault](err)
	_, lite := errors.AsType[*sqlite.Error](err)
	return lite || simulated
}

// IsAway reports whether an error of Open may go away by itself: PostgreSQL cannot
// be reached, or is starting or stopping. What it answers to a wrong password or
// name does not.
func IsAway(err error) bool {
	if !errors.Is(err, pawl.ErrUnavailable) {
		return false
	}
	if _, ok := errors.AsType[*sqlite.Error](err); ok {
		return false
	}
	e, answered := errors.AsType[*pgconn.PgError](err)
	return !answered || classifyPostgres(e) == errorUnavailable
}

// wrap gives a driver's error the code that callers act on. Errors that carry
// a code already, and cancellations, pass through.
func (db *DB) wrap(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*pawl.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch db.dialect.classify(err) {
	case errorUnavailable:
		if db.sqliteFile != nil {
			return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database file cannot be read or written", Hint: "Check the disk; Pawl continues automatically when it can.", Err: err}
		}
		return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database cannot be reached", Hint: "Pawl continues automatically when it answers again.", Err: inWords(err)}
	case errorFull:
		return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database has no space left", Hint: "Free disk space; Pawl continues automatically.", Err: err}
	case errorContention, errorSameID:
		return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database is busy", Hint: "Try again.", Err: err}
	case errorText:
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: "a text has a character that cannot be stored", Hint: "Leave out NUL characters and what is not UTF-8.", Err: err}
	case errorUnique, errorOther:
	}
	return err
}

// inWords gives an error of the driver that is no sentence one.
func inWords(err error) error {
	if strings.HasSuffix(err.Error(), "conn closed") {
		return brokenConn{err}
	}
	return err
}

type brokenConn struct{ err error }

func (brokenConn) Error() string   { return "the connection broke" }
func (b brokenConn) Unwrap() error { return b.err }

// isUnique reports whether a unique rule refused a row.
func (db *DB) isUnique(err error) bool { return err != nil && db.dialect.classify(err) == errorUnique }
