package lane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Standing is what tells which run of a lane without slots stood for an instant.
// Such a lane goes on from when it last ran: what came due until then is that run's,
// and what comes due while it cannot run is that of the next one.
type Standing struct {
	Kind    pawl.Kind
	Lane    string // of its runs
	Name    string
	Made    time.Time // when it was
	Repeats []Due     // what comes due
}

// attemptsLooked is how many runs are looked at for the last attempt.
const attemptsLooked = 20

// stood is what became of an instant of one of those that come due.
type stood struct {
	due    Due
	run    *runstore.Run // nil: none stood for it
	before *runstore.Run // if none did: the last until then
	after  *runstore.Run // and the first since
}

// named reports whether the schedule names the instant; sure is false where that
// depends on when it ran.
func (s stood) named(at time.Time) (named, sure bool) {
	if s.due.Schedule.Floats() {
		return false, false
	}
	return s.due.Schedule.Names(at), true
}

// TellStanding says which run stood for the instant, or why none did.
func (a *Around) TellStanding(ctx context.Context, tx *store.Tx, l Standing) error {
	if err := a.tellRun(ctx, tx, l); err != nil {
		return err
	}
	return a.TellHalt(ctx, tx)
}

func (a *Around) tellRun(ctx context.Context, tx *store.Tx, l Standing) error {
	if a.At.After(tx.Now) {
		return nil // which is what it says
	}
	var texts []string
	var loose *stood // nothing says whether it was due then
	for _, due := range l.Repeats {
		s, err := l.stoodFor(ctx, tx, due, a.At)
		if err != nil {
			return err
		}
		named, sure := s.named(a.At)
		switch {
		case s.run != nil && s.run.ScheduledFor.Equal(a.At), named:
			text, err := l.sentence(ctx, tx, s, a.At)
			if err != nil {
				return err
			}
			if texts = append(texts, text); a.Stood == nil {
				a.Stood = s.run
			}
		case sure:
			if why, would := due.Schedule.ExcludedAt(a.At); would {
				texts = append(texts, fmt.Sprintf("Nothing of %s runs then: %s.", l.called(due), why))
			}
		case s.run == nil && due.Schedule.Excluded(a.At) != "":
			texts = append(texts, fmt.Sprintf("Nothing of %s runs then: %s.", l.called(due), due.Schedule.Excluded(a.At)))
		case s.run != nil && (loose == nil || loose.run.ScheduledFor.Before(s.run.ScheduledFor)):
			loose = &s
		}
	}
	switch {
	case len(texts) > 0:
		a.Text = strings.Join(texts, " ")
	case loose != nil:
		a.Stood = loose.run
		text, err := l.sentence(ctx, tx, *loose, a.At)
		if err != nil {
			return err
		}
		a.Text += " " + text // whether it was due then depends on when it ran
	case len(l.Repeats) > 0 && a.At.Before(l.Made):
		a.Text = fmt.Sprintf("It did not exist then: it was made at %s.", pawl.FormatTime(l.Made))
	case len(l.Repeats) > 0:
		a.Text = "Nothing was due at that time by its schedule of now. " + a.Text
	}
	return nil
}

// stoodFor finds the run that stood for an instant.
func (l Standing) stoodFor(ctx context.Context, tx *store.Tx, due Due, at time.Time) (s stood, err error) {
	s.due = due
	handler := due.Handler
	if handler == "" {
		handler = l.Name
	}
	from := time.Time{} // what came due earlier can stand for it
	if due.Missed != "" {
		from = at
	}
	later, err := runstore.In(tx).StandingAfter(ctx, l.Kind, l.Lane, handler, at, from, attemptsLooked)
	if err != nil {
		return s, err
	}
	if len(later) > 0 {
		s.after = &later[0]
	}
	before, err := runstore.In(tx).StandingBefore(ctx, l.Kind, l.Lane, handler, at)
	switch {
	case err == nil:
		s.before = &before
	case !errors.Is(err, pawl.ErrNotFound):
		return s, err
	}
	switch {
	case s.before != nil && s.before.Covers(at):
		s.run = s.before
	case s.after != nil && !s.after.ScheduledFor.After(at):
		s.run = lastAttempt(later)
	case due.Missed != "": // each run stands for one instant
	case s.before != nil && (s.before.EndedAt.IsZero() || !s.before.EndedAt.Before(at)): // what came due until its end is its own
		s.run = s.before
	}
	return s, nil
}

// lastAttempt is the last of the first runs that stand for one time.
func lastAttempt(list []runstore.Run) *runstore.Run {
	last := &list[0]
	for i := range list {
		if !list[i].ScheduledFor.Equal(last.ScheduledFor) {
			break
		}
		last = &list[i]
	}
	return last
}

// called is what comes due, in words.
func (l Standing) called(due Due) string {
	if due.Handler != "" {
		return due.Handler
	}
	return l.Name
}

func (l Standing) sentence(ctx context.Context, tx *store.Tx, s stood, at time.Time) (string, error) {
	if s.run == nil {
		return l.whyNone(ctx, tx, s, at)
	}
	r, stands := s.run, "stood for it"
	if r.Covers(at) && !r.ScheduledFor.Equal(at) {
		return fmt.Sprintf("Run %s stands for %s; %s.", r.ID, foldedWords(r), s.among()), nil
	}
	if !r.ScheduledFor.Equal(at) {
		stands = "stood for " + pawl.FormatTime(r.ScheduledFor) + " and what came due until it ran"
	}
	text := fmt.Sprintf("Run %s of %s %s. It began at %s", r.ID, l.called(s.due), stands, pawl.FormatTime(r.CreatedAt))
	switch {
	case r.Status == pawl.StatusCommitted:
		return text + ", and succeeded at " + pawl.FormatTime(r.EndedAt) + ".", nil
	case r.Status == pawl.StatusActive:
		return text + ", and is active.", nil
	case r.ErrorMessage != "":
		return text + fmt.Sprintf(", and is %s: %s", r.Status, r.ErrorMessage), nil
	}
	return text + fmt.Sprintf(", and is %s.", r.Status), nil
}

// among says what is known of an instant between runs that are folded.
func (s stood) among() string {
	if s.due.Missed != "" { // each stood for one instant, and some may have been left out
		return "which of its times each of them stood for is not kept"
	}
	return "one of them stood for it"
}

// lastStood is up to when a run stood for what came due.
func lastStood(r *runstore.Run) time.Time {
	if r.Count > 1 {
		return r.Through
	}
	return r.ScheduledFor
}

// whyNone says why no run stood for an instant that was one.
func (l Standing) whyNone(ctx context.Context, tx *store.Tx, s stood, at time.Time) (string, error) {
	none, kind := "No run of "+l.called(s.due)+" stood for it", string(l.Kind)
	if at.Before(l.Made) {
		return none + ": the " + kind + " was made at " + pawl.FormatTime(l.Made) + ".", nil
	}
	paused, err := tx.LastAudited(ctx, kind+":"+l.Name, at, kind+".pause", kind+".resume")
	switch {
	case err == nil && paused.Action == kind+".pause" && !paused.At.Before(l.Made):
		return none + ": it was paused by " + paused.Actor + " at " + pawl.FormatTime(paused.At) + ".", nil
	case err != nil && !errors.Is(err, store.ErrNoRow):
		return "", err
	case s.before != nil && s.before.Status != pawl.StatusCommitted:
		return none + fmt.Sprintf(": run %s, which stood for %s, is %s since %s.", s.before.ID, pawl.FormatTime(s.before.ScheduledFor), s.before.Status, pawl.FormatTime(s.before.EndedAt)), nil
	case s.before == nil && s.after == nil:
		return none + ", and none is known.", nil
	case s.before == nil:
		return none + ": of the time before " + pawl.FormatTime(s.after.CreatedAt) + " no run is kept.", nil
	case s.due.Missed != "" && s.after != nil:
		return none + fmt.Sprintf(": it could not begin at its time, and missed: %s leaves it out. The one before it stood for %s, the next for %s.", s.due.Missed, pawl.FormatTime(lastStood(s.before)), pawl.FormatTime(s.after.ScheduledFor)), nil
	case s.after == nil:
		return none + " yet: the last one began at " + pawl.FormatTime(s.before.LastMade()) + ".", nil
	}
	return none + fmt.Sprintf(": the one before it stood for %s, the next for %s. Its schedule may have been another then.", pawl.FormatTime(lastStood(s.before)), pawl.FormatTime(s.after.ScheduledFor)), nil
}
