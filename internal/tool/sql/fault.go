package sqltool

import (
	"context"
	"errors"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
	"github.com/pawlrun/pawl/internal/visible"
)

// longestQuote is how much of what a database says is shown, in characters.
const longestQuote = 500

// report is the last step of every error: it names the connection and holds no
// secret.
func (d *Database) report(err error) *connector.Error {
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		return &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: d.service + ": the call did not work"}
	}
	told := *e
	if e.Code != connector.CodeBadArguments {
		told.Msg = d.service + ": " + e.Msg
	}
	told.Msg, told.Hint = d.secrets.Text(told.Msg), d.secrets.Text(told.Hint)
	told.Err = interruption(e.Err)
	return &told
}

// interruption keeps of a cause only that the call was cancelled or ran out
// of time. Other causes quote addresses and values.
func interruption(err error) error {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return cause
		}
	}
	return nil
}

// stopped is the fault of a call that ended before its commit was sent, or nil
// if it goes on.
func stopped(ctx context.Context) *connector.Error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &connector.Error{
			Class: pawl.ClassTransient, Code: "timeout", NotApplied: true, Err: err,
			Msg: "the statement took too long and was undone", Hint: "Raise timeout in the definition of the connection if it needs more.",
		}
	default:
		return &connector.Error{
			Class: pawl.ClassTransient, Code: "interrupted", NotApplied: true, Err: err,
			Msg: "the call was cancelled, and was undone",
		}
	}
}

// unanswered is a commit of which nobody knows whether it happened.
func unanswered(err error) *connector.Error {
	return &connector.Error{
		Class: pawl.ClassIndeterminate, Code: "commit_unanswered", Err: err,
		Msg: "the connection was lost before the commit was answered",
	}
}

// quote makes what a database says fit for a message.
func quote(said string) string { return visible.Excerpt(said, longestQuote) }
