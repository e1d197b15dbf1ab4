package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// The codes of stops that are nobody's failure.
const (
	codeDeferred    = "deferred"
	codeInterrupted = "interrupted"
)

// stopTime bounds writing how a fetch ended.
const stopTime = 30 * time.Second

// stop writes that the fetch ended without its last page, and why. If that
// cannot be written, the run is left, and goes on where it was when this process
// finds it again: that the database is away is no fault of the source.
func (f *fetching) stop(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errWithdrawn), errors.Is(err, errFault):
		return nil // it has ended already
	case errors.Is(err, queue.ErrLeaseLost), errors.Is(err, pawl.ErrLeaseLost):
		f.leave() // it belongs to somebody else, unless it comes back to us
		return nil
	case isAway(err):
		f.leave()
		return err
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeConflict && e.Reason == "" {
		return err // a person was faster
	}
	why := f.failureOf(err)
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	err = f.db.Write(writing, func(ctx context.Context, tx *store.Tx) error { return f.fail(ctx, tx, why) })
	if isAway(err) || writing.Err() != nil {
		f.leave()
	}
	if err != nil {
		return err
	}
	return f.cfg.fault("stopped")
}

// fail writes how the fetch ended.
func (f *fetching) fail(ctx context.Context, tx *store.Tx, why ledger.Failure) error {
	o, err := f.ledger.Stop(ctx, tx, f.run, why)
	if err != nil {
		return err
	}
	if why.Deferred {
		if err := sourcestore.In(tx).NoteSourceRun(ctx, f.run.ID, why.Message); err != nil {
			return err
		}
		return f.settle(ctx, tx, f.view.source.Name)
	}
	if why.Class == pawl.ClassLogic && f.resumed && f.total.Pages == 0 { // the place is no good any more
		if err := sourcestore.In(tx).SourceMoved(ctx, f.view.source.ID, nil, ""); err != nil {
			return err
		}
	}
	f.log.WarnContext(ctx, "a fetch failed", "source", f.view.source.Name, "run", f.run.ID, "code", why.Code, "err", why.Message, "failures", o.Retry.Count, "next", o.Retry.NextAt)
	if err := sourcestore.In(tx).SourceFailed(ctx, f.view.source.ID); err != nil {
		return err
	}
	return f.settle(ctx, tx, f.view.source.Name)
}

// isAway reports whether an error says that our own database is away. The
// other side being away is a *fetch.Error of another code.
func isAway(err error) bool {
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		return e.Code == fetch.CodeStoreAway
	}
	// A deadline that is not that of the fetch is one of the store.
	return errors.Is(err, pawl.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// leave leaves the run to whoever looks at the source next.
func (f *fetching) leave() {
	f.ledger.GaveUp(f.run.ID, ledger.Failure{
		Class: pawl.ClassTransient, Code: codeInterrupted, Message: "The database was unavailable; it continues where it was.", Deferred: true, Budget: f.def.Budget(),
	})
}

// errFault is what tests stop a fetch with, as a crash would.
var errFault = errors.New("fault")

// failureOf classifies what ended a fetch.
func (f *fetching) failureOf(err error) ledger.Failure {
	why := ledger.Failure{Class: pawl.ClassInternal, Code: "internal", Message: err.Error(), Budget: f.def.Budget()}
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		why.Class, why.Code, why.Message, why.RetryAfter, why.Deferred = e.Class, e.Code, textOf(e), e.RetryAfter, e.Deferred
		// A server that says in the middle of its pages when to go on has
		// refused nothing. Without progress it has: that is a failure.
		if e.Code == fetch.CodeLimited && e.RetryAfter > 0 && f.total.Pages > 0 {
			why.Deferred = true
		}
		if why.Deferred {
			why.Class, why.Code = pawl.ClassTransient, codeDeferred
		}
		return why
	}
	switch {
	case errors.Is(err, errTimeUp):
		why.Class, why.Code = pawl.ClassTransient, "timeout"
		why.Message = fmt.Sprintf("the fetch took longer than %s; the %d pages that were written stay", f.def.Timeout(), f.total.Pages)
	case errors.Is(err, queue.ErrShutdown):
		why.Class, why.Code, why.Deferred = pawl.ClassTransient, codeInterrupted, true
		why.Message = "The server stopped; it continues after a restart."
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		why.Class, why.Code, why.Message = pawl.ClassLogic, string(e.Code), e.Msg
		if e.Reason != "" {
			why.Code = e.Reason
		}
		if e.Hint != "" {
			why.Message += ". " + e.Hint
		}
	}
	return why
}

// textOf is a fault of the outside for people.
func textOf(e *fetch.Error) string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + ". " + e.Hint
}
