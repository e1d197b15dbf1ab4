package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// errWithdrawn ends a fetch whose run a person cancelled.
var errWithdrawn = errors.New("the run was cancelled")

// errTimeUp ends a fetch that took longer than its definition allows.
var errTimeUp = errors.New("the time of the fetch is up")

// saved is where a fetch that was cut off goes on.
type saved struct {
	Position fetch.Position `json:"position"`
	Since    string         `json:"since,omitempty"` // what was asked for
	Mark     string         `json:"mark,omitempty"`  // the greatest value seen so far
	Bytes    int64          `json:"bytes,omitempty"` // that were read so far
	At       time.Time      `json:"at"`
	For      time.Time      `json:"for,omitzero"` // the instant that it stood for, if requests depend on it
}

// savedFor is how long a place in a list of pages is trusted.
const savedFor = 24 * time.Hour

// fetching is one run of a source.
type fetching struct {
	*Service
	claim   lane.Claim
	view    *view
	def     spec.Definition // as it was when the run began
	run     runstore.Run
	plan    *table.Plan
	other   Database // where the rows go if not to our own database; nil if they do
	ask     fetch.Ask
	at      saved
	resumed bool // it goes on where an earlier attempt stopped
	reached int  // how many pages the attempts before it had written
	total   sourcestore.SourceProgress
}

// fetch runs a source once, if it still may.
func (s *Service) fetch(ctx context.Context, c lane.Claim, id string) error {
	v, err := s.byID(ctx, id)
	if err != nil {
		return pawl.IgnoreNotFound(err)
	}
	if v.row.Status != pawl.StatusActive && !v.evaluate().open || s.halts(v) {
		return nil // it waited for its place, and something changed
	}
	f := &fetching{Service: s, claim: c, view: v, def: v.def}
	if err := f.begin(ctx); err != nil {
		if isAway(err) { // it may have begun
			f.leave()
		}
		return err
	}
	if err := s.cfg.fault("begun"); err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.running[id] = runningFetch{f.run.ID, cancel}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
	}()
	timed, stop := context.WithTimeoutCause(work, f.def.Timeout(), errTimeUp)
	defer stop()
	err = f.pages(telemetry.InRun(timed, f.run.ID))
	if err == nil {
		return nil
	}
	if cause := context.Cause(timed); cause != nil {
		err = cause
	}
	return f.stop(ctx, err)
}

// begin makes the run active and keeps what it works with.
func (f *fetching) begin(ctx context.Context) error {
	err := f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if f.run, err = f.activate(ctx, tx, f.claim, f.view); err != nil {
			return err
		}
		if err := f.resume(tx.Now); err != nil {
			return err
		}
		note := ""
		if f.resumed {
			note = fmt.Sprintf("It continues after %d pages of an earlier attempt.", f.at.Position.Page)
		}
		r := sourcestore.SourceRun{RunID: f.run.ID, SourceID: f.view.source.ID, Version: f.view.source.Version, Definition: f.view.source.Definition, Note: note}
		if err := sourcestore.In(tx).InsertSourceRun(ctx, r); err != nil {
			return err
		}
		return sourcestore.In(tx).SourceBegan(ctx, f.view.source.ID, f.view.standsFor())
	}, store.Lazy)
	return err
}

// resume decides where the fetch begins: where the last one was put off, where
// it failed if the API keeps the place, or at the first page.
func (f *fetching) resume(now time.Time) error {
	f.at, f.resumed, f.reached = saved{}, false, 0
	f.ask = fetch.Ask{Definition: f.def, Spool: f.cfg.Spool, At: f.run.ScheduledFor}
	if f.def.UsesInstant() {
		f.at.For = f.run.ScheduledFor
	}
	var was saved
	state := f.view.state
	known := len(state.Position) > 0 && json.Unmarshal(state.Position, &was) == nil && state.PositionOf == f.view.source.Version && was.For.Equal(f.at.For)
	if known {
		f.reached = was.Position.Page
	}
	putOff := slices.Contains([]string{codeDeferred, codeInterrupted, fetch.CodeLimited}, f.view.row.ErrorCode)
	keeps := f.def.CursorPagination != nil || f.def.LinkPagination != nil
	if known && f.def.Write.Mode != spec.Replace && now.Sub(was.At) < savedFor && (putOff || keeps) {
		f.at, f.resumed = was, true
		f.ask.From, f.ask.Since = was.Position, was.Since
		return nil
	}
	if inc := f.def.Incremental; inc != nil {
		var mark string
		if len(state.Mark) > 0 {
			if err := json.Unmarshal(state.Mark, &mark); err != nil {
				return fmt.Errorf("read the mark of source %s: %w", f.view.source.Name, err)
			}
		}
		since, err := fetch.Since(*inc, mark)
		if err != nil {
			return err
		}
		f.at.Since, f.at.Mark, f.ask.Since = since, mark, since
	}
	return nil
}

// answer is a page, or why there is none.
type answer struct {
	page *fetch.Page
	err  error
}

// pages fetches and writes page by page; while one is written, the next one is
// fetched.
func (f *fetching) pages(ctx context.Context) error {
	if err := f.prepare(ctx); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	answers := make(chan answer)
	go f.read(reading, answers)
	defer func() {
		stop()
		for a := range answers { // until the reader has ended
			if a.page != nil {
				_ = a.page.Close()
			}
		}
	}()
	for a := range answers {
		if a.err != nil {
			return a.err
		}
		err := f.write(ctx, a.page)
		_ = a.page.Close()
		if err != nil || a.page.Last {
			return err
		}
		if f.claim.Stopping() {
			return queue.ErrShutdown
		}
	}
	return context.Cause(ctx)
}

// read fetches one page after the other until the last one.
func (f *fetching) read(ctx context.Context, answers chan<- answer) {
	defer close(answers)
	for at := f.ask.From; ; {
		page, err := f.cfg.Fetcher.Next(ctx, f.ask, at)
		select {
		case answers <- answer{page, err}:
		case <-ctx.Done():
			if page != nil {
				_ = page.Close()
			}
			return
		}
		if err != nil || page.Last {
			return
		}
		at = page.Next
	}
}

// prepare makes or checks the table.
func (f *fetching) prepare(ctx context.Context) (err error) {
	dialect := f.db.Name()
	if name := f.def.Write.Connection; name != "" {
		if f.cfg.Database == nil {
			return &pawl.Error{Code: pawl.CodeInvalid, Reason: "no_connection", Op: "write rows", Msg: fmt.Sprintf("there is no connection %q", name)}
		}
		if f.other, err = f.cfg.Database(name); err != nil {
			return err
		}
		dialect = f.other.Dialect()
	}
	if f.plan, err = table.New(dialect, f.def); err != nil {
		return err
	}
	ensure := func(ctx context.Context, db table.DB) error {
		change, err := f.plan.Ensure(ctx, db)
		if err != nil {
			return err
		}
		if change.Created || len(change.Added) > 0 {
			f.log.Info("a table was changed for a source", "source", f.view.source.Name, "table", f.def.Table, "created", change.Created, "columns", change.Added)
		}
		return f.plan.Begin(ctx, db, f.run.ID)
	}
	if f.other != nil {
		return f.writeElsewhere(ctx, ensure)
	}
	return f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := f.ledger.Hold(ctx, tx, f.run); err != nil {
			return err
		}
		return ensure(ctx, tx)
	})
}

// writeElsewhere writes to the database of a connection. That it is away is a
// failure like that of any other server.
func (f *fetching) writeElsewhere(ctx context.Context, fn func(ctx context.Context, db table.DB) error) error {
	err := f.other.Write(ctx, fn)
	if errors.Is(err, pawl.ErrUnavailable) {
		return &fetch.Error{Class: pawl.ClassTransient, Code: fetch.CodeNetwork, Msg: fmt.Sprintf("the database of the connection %q cannot be written now", f.def.Write.Connection), Err: err}
	}
	return err
}

// write commits a page: its rows with everything that follows from them. The
// last page commits the run.
func (f *fetching) write(ctx context.Context, page *fetch.Page) error {
	if err := f.cfg.fault("page"); err != nil {
		return err
	}
	after := f.at
	after.Position, after.Bytes = page.Next, f.at.Bytes+page.Bytes
	if most := f.def.Response.TotalBytes(); after.Bytes > most {
		return &fetch.Error{
			Class: pawl.ClassLogic, Code: fetch.CodeTooLarge, Msg: fmt.Sprintf("the fetch reads more than %d bytes", most),
			Hint: "ask for less (incremental), or raise response.maxTotalBytes",
		}
	}
	if page.Mark != "" && (after.Mark == "" || fetch.Greater(page.Mark, after.Mark)) {
		after.Mark = page.Mark
	}
	ctx, span := telemetry.Begin(ctx, "rows "+f.def.Table, oteltrace.WithAttributes(attribute.String("pawl.run", f.run.ID)))
	defer span.End()
	if err := f.writeRows(ctx, page, after); err != nil {
		span.SetStatus(codes.Error, "") // what happened can hold what others said; it is in the run
		return err
	}
	return f.cfg.fault("written")
}

// writeRows is the transaction of a page.
func (f *fetching) writeRows(ctx context.Context, page *fetch.Page, after saved) error {
	var sum sourcestore.SourceProgress
	var elsewhere table.Result
	if f.other != nil {
		err := f.writeElsewhere(ctx, func(ctx context.Context, db table.DB) (err error) {
			elsewhere, err = f.rows(ctx, db, page)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := f.ledger.Hold(ctx, tx, f.run); err != nil {
			return err
		}
		result := elsewhere
		if f.other == nil {
			if result, err = f.rows(ctx, tx, page); err != nil {
				return err
			}
		}
		after.At = tx.Now
		sum = progressOf(page, result)
		if err := f.keep(ctx, tx, page, result, sum, after); err != nil {
			return err
		}
		if page.Last {
			return f.commit(ctx, tx, after)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.at = after
	f.total = plus(f.total, sum)
	oteltrace.SpanFromContext(ctx).SetAttributes(attribute.Int64("pawl.rows.read", sum.RowsRead), attribute.Int64("pawl.rows.new", sum.RowsNew), attribute.Int64("pawl.rows.rejected", sum.Rejects))
	f.cfg.Observe(lane.Change{Ref: refOf(f.view.source.Name), What: "progress", Run: f.run.ID, At: time.Now(), Detail: ProgressDetail{f.run.ID, f.total}})
	return nil
}

// rows writes the rows of a page, and after the last one what the mode asks
// for at the end.
func (f *fetching) rows(ctx context.Context, db table.DB, page *fetch.Page) (table.Result, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	result, err := f.plan.WritePage(ctx, db, table.PageWrite{Rows: table.Rows(page.Rows()), At: now, RunID: f.run.ID, WantChanged: f.def.Publish != nil})
	if err != nil || !page.Last || f.def.Write.Mode != spec.Replace {
		return result, err
	}
	end, err := f.plan.Finish(ctx, db, table.Finish{At: now, RunID: f.run.ID, WantChanged: f.def.Publish != nil})
	end.Rejected = result.Rejected
	return end, err
}

// keep writes what belongs to a page beside its rows.
func (f *fetching) keep(ctx context.Context, tx *store.Tx, page *fetch.Page, result table.Result, sum sourcestore.SourceProgress, after saved) error {
	if err := sourcestore.In(tx).AddSourceProgress(ctx, f.run.ID, sum); err != nil {
		return err
	}
	if err := sourcestore.In(tx).AddRejects(ctx, f.rejects(page, result)); err != nil {
		return err
	}
	if n := int(sum.RowsNew); n > 0 {
		if err := sourcestore.In(tx).SourceWrote(ctx, f.view.source.ID, n); err != nil {
			return err
		}
	}
	if p := f.def.Publish; p != nil && len(result.Rows) > 0 {
		if f.cfg.Publish == nil {
			return &pawl.Error{Code: pawl.CodeInvalid, Reason: "no_workflows", Op: "publish rows", Msg: "there are no workflows here"}
		}
		if err := f.cfg.Publish(ctx, tx, f.view.source.Name, p.Workflow, p.Topic, f.events(result.Rows)); err != nil {
			return err
		}
	}
	if page.Last {
		return nil
	}
	if f.view.retry.Crashes > 0 && after.Position.Page == f.reached+1 {
		if err := f.ledger.GotFurther(ctx, tx, f.run); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(after)
	if err != nil {
		return err
	}
	return sourcestore.In(tx).SourceMoved(ctx, f.view.source.ID, raw, f.view.source.Version)
}

// rejects are the rows that could not be read, and those that could not be
// stored.
func (f *fetching) rejects(page *fetch.Page, result table.Result) []sourcestore.Reject {
	list := make([]sourcestore.Reject, 0, len(page.Rejects)+len(result.Rejected))
	add := func(row int, reason, raw string) {
		list = append(list, sourcestore.Reject{SourceName: f.view.source.Name, RunID: f.run.ID, Page: page.Number, Row: row, Reason: reason, Raw: raw})
	}
	for _, r := range page.Rejects {
		add(r.Row, r.Reason, r.Raw)
	}
	for _, r := range result.Rejected {
		add(r.Row, r.Reason, "")
	}
	return list
}

// commit ends the run with its last page.
func (f *fetching) commit(ctx context.Context, tx *store.Tx, after saved) error {
	var mark json.RawMessage
	if f.def.Incremental != nil && after.Mark != "" {
		raw, err := json.Marshal(after.Mark)
		if err != nil {
			return err
		}
		mark = raw
	}
	if err := sourcestore.In(tx).SourceSucceeded(ctx, f.view.source.ID, mark); err != nil {
		return err
	}
	if err := f.cfg.Needs.Fetched(ctx, tx, f.view.source.Name); err != nil {
		return err
	}
	if _, err := f.ledger.Commit(ctx, tx, f.run, nil); err != nil || f.view.known.State == string(run.Idle) {
		return err
	}
	return f.settle(ctx, tx, f.view.source.Name)
}

func progressOf(page *fetch.Page, r table.Result) sourcestore.SourceProgress {
	return sourcestore.SourceProgress{
		Pages: 1, Requests: int64(page.Requests), Bytes: page.Bytes, RowsRead: int64(page.Count + page.RejectCount), Rejects: int64(page.RejectCount + len(r.Rejected)),
		RowsNew: int64(r.New), RowsChanged: int64(r.Changed), Same: int64(r.Same),
	}
}

func plus(a, b sourcestore.SourceProgress) sourcestore.SourceProgress {
	return sourcestore.SourceProgress{
		Pages: a.Pages + b.Pages, Requests: a.Requests + b.Requests, Bytes: a.Bytes + b.Bytes, RowsRead: a.RowsRead + b.RowsRead,
		RowsNew: a.RowsNew + b.RowsNew, RowsChanged: a.RowsChanged + b.RowsChanged, Same: a.Same + b.Same, Rejects: a.Rejects + b.Rejects,
	}
}
