package source

import (
	"context"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
	"github.com/pawlrun/pawl/internal/when"
)

// putOff: the last attempt was stopped by our own limit or by a stop of the
// server, which is nobody's failure.
func (v *view) putOff() bool {
	return v.row.Status == pawl.StatusPausedTransient && (v.row.ErrorCode == codeDeferred || v.row.ErrorCode == codeInterrupted)
}

// status is the state and the issue of the source.
func (v *view) status() (run.State, run.Issue) {
	if v.wanted() && v.putOff() {
		return run.Running, run.IssueRecovering
	}
	return run.StateOf(v.desired(), v.newest, v.exhausted())
}

func (v *view) issue() run.Issue {
	_, issue := v.status()
	return issue
}

// sentence says an issue in plain language, and what a person can do.
func (v *view) sentence(issue run.Issue) string {
	why := ""
	if v.row.ErrorMessage != "" {
		why = ": " + strings.TrimSuffix(v.row.ErrorMessage, ".")
	}
	switch issue {
	case run.IssueNone:
		return ""
	case run.IssueNoWorker:
		return v.there.Sentence()
	case run.IssueHalted:
		return v.there.Halt.Sentence()
	case run.IssuePaused:
		switch text := v.gateWanted().Text; {
		case !v.paused():
			return text
		case v.known.Pause.At.IsZero():
			return strings.TrimSuffix(text, ".") + "; resume it to continue."
		}
		return lane.PausedSentence(v.known.Pause)
	case run.IssueRecovering:
		if v.putOff() {
			return strings.TrimSuffix(v.row.ErrorMessage, ".") + "."
		}
		return "It continues after an interruption."
	case run.IssueRetriesUsedUp:
		return fmt.Sprintf("%s of this period failed%s. It is retried %s; reset it to retry now.", allAttempts(v.def.Budget().MaxRetries), why, v.soon())
	case run.IssueCrashLoop:
		return fmt.Sprintf("It was interrupted %s in a row and is not retried automatically; resume it to try once more.", times(v.retry.Crashes))
	case run.IssueSignIn:
		return "The server rejected the credentials" + why + ". Fix them and reset the source; otherwise it is retried " + v.soon() + "."
	case run.IssuePermission:
		return "The server denied access" + why + ". When that is fixed, reset the source; otherwise it is retried " + v.soon() + "."
	case run.IssueInconsistent:
		return "The stored state of its last run is inconsistent; nothing runs until it has been checked."
	default:
		return "The last fetch failed" + why + ". It is tried again " + v.soon() + "."
	}
}

func (v *view) soon() string {
	at := v.gateRetry().Until
	if !at.After(v.now) {
		return "now"
	}
	return strings.TrimPrefix(when.Until(v.now, at), "Next ")
}

// remedy is the command that ends what the source stands in.
func (v *view) remedy(issue run.Issue) string {
	name := v.source.Name
	switch issue {
	case run.IssueNone:
		if v.row.Status == pawl.StatusActive {
			return run.Command("cancel", v.row.ID)
		}
		return ""
	case run.IssueNoWorker:
		return run.StartWorker
	case run.IssueHalted:
		return run.Unhalt
	case run.IssueExpectation:
		return lane.ExpectationRemedy(pawl.KindSource, name)
	case run.IssuePaused:
		if v.source.PausedAt.IsZero() {
			return "pawl apply -f FILE" // in which it says status: active
		}
		return run.Command("resume", "source", name)
	case run.IssueCrashLoop:
		return run.Command("resume", "source", name)
	case run.IssueRecovering, run.IssueInconsistent:
		return run.Command("describe", "source", name)
	default: // its failures are forgotten, and it is tried at once
		return run.Command("reset", "source", name)
	}
}

func allAttempts(n int) string {
	if n == 1 {
		return "The one attempt"
	}
	return fmt.Sprintf("All %d attempts", n)
}

// times counts interruptions.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// rest is how the source stands when no run of it is active.
func (v *view) rest() lane.Rest {
	state, issue := v.status()
	return lane.RestOf(state, issue, string(issue)+":"+chainCause(v), v.sentence(issue), v.row.ID)
}

// settle writes how a source stands, in the transaction that changed it.
func (s *Service) settle(ctx context.Context, tx *store.Tx, name string) error {
	src, err := sourcestore.In(tx).SourceByName(ctx, name)
	if err != nil {
		return pawl.IgnoreNotFound(err) // it is deleted, and what it began comes to its end
	}
	v, err := s.loadFrom(ctx, tx, src)
	if err != nil {
		return err
	}
	_, err = s.cfg.Settle(ctx, tx, refOf(name), v.known, v.rest())
	return err
}

// settleOnce is settle for a source that was just looked at, unless its row says
// so already: time alone can renew its budget.
func (s *Service) settleOnce(ctx context.Context, v *view) error {
	if v.rest().SaidBy(v.known) {
		return nil
	}
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return s.settle(ctx, tx, v.source.Name)
	}, store.Lazy)
}

// changed is for commands: it writes how the source stands and lets its owner
// look at it.
func (s *Service) changed(ctx context.Context, tx *store.Tx, src *sourcestore.Source) error {
	if err := s.settle(ctx, tx, src.Name); err != nil {
		return err
	}
	return s.arm(ctx, tx, src, tx.Now)
}

// chainCause names the period in which the budget was used up: one notice for
// each.
func chainCause(v *view) string { return pawl.FormatTime(v.retry.PeriodStart) }

func (v *view) lane(last sourcestore.SourceRun) lane.Lane {
	l := lane.Lane{Ref: refOf(v.source.Name), ID: v.source.ID, Paused: !v.source.PausedAt.IsZero(), Pause: v.known.Pause, Labels: v.def.Labels}
	l.State, l.Issue = v.status()
	l.Sentence = v.sentence(l.Issue)
	l.Expecting(v.known)
	if l.State, l.Issue = v.there.Over(l.State, l.Issue); l.Issue == run.IssueNoWorker || l.Issue == run.IssueHalted {
		l.Sentence = v.sentence(l.Issue)
	}
	l.Do = v.remedy(l.Issue)
	if v.times.Kind() != "" {
		l.Schedule = v.times.Describe()
	}
	if d := v.evaluate(); v.wanted() && v.row.Status != pawl.StatusActive {
		l.NextAt = d.at
		if d.open {
			l.NextAt = v.now
		}
	}
	l.LastAt, l.LastText = v.lastActivity(last)
	return l
}

// lastActivity is a sentence about what the source did last, in terms of rows.
func (v *view) lastActivity(last sourcestore.SourceRun) (time.Time, string) {
	switch {
	case v.row.ID == "":
		return v.source.UpdatedAt, "Defined"
	case v.row.Status == pawl.StatusActive && last.RunID == v.row.ID:
		return last.UpdatedAt, fmt.Sprintf("Fetching: %d rows in %d pages so far", last.RowsRead, last.Pages)
	case v.row.Status == pawl.StatusActive:
		return v.row.UpdatedAt, "Fetching"
	case v.row.Status == pawl.StatusCommitted:
		return v.row.UpdatedAt, fetchedWords(last)
	case v.row.Status == pawl.StatusCancelled:
		return v.row.UpdatedAt, "Cancelled"
	case v.putOff():
		return v.row.UpdatedAt, "Delayed: " + v.row.ErrorMessage
	}
	return v.row.UpdatedAt, "Failed: " + v.row.ErrorMessage
}

func fetchedWords(r sourcestore.SourceRun) string {
	if r.RowsNew+r.RowsChanged == 0 {
		return fmt.Sprintf("Fetched %d rows; nothing was new", r.RowsRead)
	}
	text := fmt.Sprintf("Fetched %d rows, %d new", r.RowsRead, r.RowsNew)
	if r.RowsChanged > 0 {
		text += fmt.Sprintf(", %d changed", r.RowsChanged)
	}
	if r.Rejects > 0 {
		text += fmt.Sprintf(", %d rejected", r.Rejects)
	}
	return text
}
