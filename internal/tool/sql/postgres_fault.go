package sqltool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// postgresFaults turns errors of a connection into faults, by their codes.
type postgresFaults struct {
	server string
	user   string
	writes bool
}

// connecting is a fault before there was a connection.
func (f postgresFaults) connecting(err error) *connector.Error {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return f.said(said)
	}
	return connector.DialFault(f.server, err)
}

// running is a fault before the commit was sent. The server undoes whatever it
// did until then.
func (f postgresFaults) running(ctx context.Context, err error) *connector.Error {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return f.said(said)
	}
	if fault := stopped(ctx); fault != nil {
		return fault
	}
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return tooLarge()
	}
	return &connector.Error{
		Class: pawl.ClassTransient, Code: "broken", NotApplied: true, Err: err,
		Msg: "the connection was lost before the commit",
	}
}

// committing is a fault after the commit was sent.
func (f postgresFaults) committing(ctx context.Context, err error) *connector.Error {
	said, ok := errors.AsType[*pgconn.PgError](err)
	if ok && undone(said) {
		return f.said(said)
	}
	fault := unanswered(err)
	switch {
	case ok:
		fault.Msg = "the commit ended with: " + describe(said)
	case ctx.Err() != nil:
		fault.Msg = "the commit was not answered in time"
	}
	return fault
}

// rolledBack is a commit that was answered with ROLLBACK.
func (f postgresFaults) rolledBack() *connector.Error {
	return &connector.Error{Class: pawl.ClassInternal, Code: "rolled_back", NotApplied: true, Msg: "the database undid the statement"}
}

// undone reports whether an error in answer to a commit means that nothing was
// committed. A server that shuts down may have committed before, and servers
// of other makes have a code for not knowing.
func undone(said *pgconn.PgError) bool {
	if severity(said) != "ERROR" || said.Code == "40003" {
		return false
	}
	switch classOf(said.Code) {
	case "08", "53", "57", "58", "F0", "XX":
		return false
	}
	return true
}

func severity(said *pgconn.PgError) string {
	if said.SeverityUnlocalized != "" {
		return said.SeverityUnlocalized
	}
	return said.Severity
}

// classOf is the part of an SQLSTATE that names the group of errors.
func classOf(code string) string {
	if len(code) != 5 {
		return ""
	}
	return code[:2]
}

// describe is what the server said, for people.
func describe(said *pgconn.PgError) string {
	text := said.Message
	if said.Detail != "" {
		text += ". " + said.Detail
	}
	if said.Position > 0 {
		text += fmt.Sprintf(" (at character %d)", said.Position)
	}
	return quote(text) + " (SQLSTATE " + quote(said.Code) + ")"
}

// said is the fault for an error of the server before the commit, or one that
// undid it.
func (f postgresFaults) said(said *pgconn.PgError) *connector.Error {
	fault := &connector.Error{NotApplied: true, Msg: describe(said), Hint: quote(said.Hint)}
	fault.Class, fault.Code = f.judge(said)
	switch fault.Code {
	case "auth":
		fault.Msg = fmt.Sprintf("%s does not let the user %s in: %s", f.server, pawl.Quote(f.user), fault.Msg)
		fault.Hint = "Check user and password in the url of the connection."
	case "no_access":
		fault.Hint = strings.TrimSpace(fmt.Sprintf("Grant it to the user %s. %s", pawl.Quote(f.user), fault.Hint))
	case "reads_only":
		fault.Hint = "query cannot change anything; use exec."
	case "no_writes":
		fault.Hint = "The server takes no writes; connect to the primary."
	}
	return fault
}

// judge gives the class of an error and a word for it.
func (f postgresFaults) judge(said *pgconn.PgError) (pawl.Class, string) {
	switch said.Code {
	case "42501":
		return pawl.ClassPermission, "no_access"
	case "3D000", "3F000":
		return pawl.ClassPrecondition, "no_database"
	case "42P01":
		return pawl.ClassPrecondition, "no_table"
	case "42703":
		return pawl.ClassPrecondition, "no_column"
	case "25006":
		if f.writes {
			return pawl.ClassPrecondition, "no_writes"
		}
		return pawl.ClassLogic, "reads_only"
	case "57014":
		return pawl.ClassTransient, "timeout"
	case "40001", "40P01", "55P03":
		return pawl.ClassTransient, "busy"
	case "08P01": // also a wrong number of parameters
		if severity(said) == "ERROR" {
			return pawl.ClassLogic, "bad_sql"
		}
	}
	switch classOf(said.Code) {
	case "28":
		return pawl.ClassAuth, "auth"
	case "23", "44":
		return pawl.ClassLogic, "constraint"
	case "22":
		return pawl.ClassLogic, "bad_value"
	case "08", "40", "53", "57", "58", "XX":
		return pawl.ClassTransient, "unavailable"
	}
	return pawl.ClassLogic, "bad_sql"
}
