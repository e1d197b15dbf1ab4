package lane

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

// Subject is a lane as it is judged by what is expected of it.
type Subject struct {
	Ref
	Rests   bool           // it does not run by itself, because a person wants so
	Zone    *time.Location // in which its days are
	Repeats []Due
	Success time.Time // the newest; zero if none is known
	Bring   []string  // handlers that bring rows, each judged by itself; none: the lane itself does
}

// Ended reports whether nothing will come due any more of what once did.
func (s *Subject) Ended(now time.Time) bool {
	for _, due := range s.Repeats {
		if _, ok := due.Schedule.Next(now); ok {
			return false
		}
	}
	return len(s.Repeats) > 0
}

// Times are the schedules by which it comes due.
func (s *Subject) Times() []when.Schedule {
	list := make([]when.Schedule, len(s.Repeats))
	for i, due := range s.Repeats {
		list[i] = due.Schedule
	}
	return list
}

// Fetch is a fetch that ended well, or what else brings rows: the run of a producer or
// a slot.
type Fetch struct {
	EndedAt time.Time
	Rows    int64
	Untold  bool // nobody knows how many
}

// ZoneOf is the zone of the first schedule that has one; UTC if none does.
func ZoneOf(repeats []Due) *time.Location {
	for _, due := range repeats {
		if zone := due.Schedule.Zone(); zone != nil && due.Schedule.Interval() == 0 {
			return zone
		}
	}
	return time.UTC
}

// StoodWell reports whether a run of a lane without slots that stands for a time in
// [from, to) succeeded.
func (s *Subject) StoodWell(ctx context.Context, tx *store.Tx, lane string, from, to time.Time) (bool, error) {
	for _, due := range s.Repeats {
		ok, err := runstore.In(tx).StoodWell(ctx, s.Kind, lane, due.HandlerName(), from, to)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// CountStarts counts the last starts of a lane without slots, and those of them that
// were late.
func (s *Subject) CountStarts(ctx context.Context, tx *store.Tx, lane string, since time.Time, limit int) (starts, late int, err error) {
	for _, due := range s.Repeats {
		n, behind, err := runstore.In(tx).CountStarts(ctx, s.Kind, lane, due.HandlerName(), since, limit, terms.Punctual+due.Schedule.Jitter())
		if err != nil {
			return 0, 0, err
		}
		starts, late = starts+n, late+behind
	}
	return starts, late, nil
}

// HandlerName is the handler that comes due; that of a lane with one has its name.
func (d Due) HandlerName() string {
	if d.Handler != "" {
		return d.Handler
	}
	return d.Name
}

// stateOf is the state of a row whose kind says that the lane stands so: one that is
// idle and does not do what is expected needs attention.
func stateOf(state run.State, known runstore.Lane) run.State {
	if state == run.Idle && len(terms.UnmetOf(known.Expect, known.Expected)) > 0 {
		return run.NeedsAttention
	}
	return state
}

// Restate is the row of a lane with how it stands now to what is expected of it. The
// state goes with it, unless the kind has something to say about it.
func Restate(known runstore.Lane, standing terms.Standing) runstore.Lane {
	now := known
	now.Expected = standing.Text()
	state := run.State(known.State)
	if state == run.NeedsAttention && known.Cause == "" && len(terms.ParseStanding(known.Expected).Unmet()) > 0 {
		state = run.Idle // but for that
	}
	now.State = string(stateOf(state, now))
	return now
}

// Expecting adds what is expected of a lane, by its row. If it is not met, that is
// what an idle one needs attention for.
func (l *Lane) Expecting(known runstore.Lane) {
	l.Expectations = terms.VerdictsOf(known.Expect, known.Expected)
	unmet := terms.Standing{Verdicts: l.Expectations}.Unmet()
	if len(unmet) == 0 || l.State != run.Idle {
		return
	}
	l.State, l.Issue, l.Sentence = run.NeedsAttention, run.IssueExpectation, terms.SentenceOf(unmet)
}

// ExpectationRemedy is the command for a lane that does not do what is expected: a
// run that succeeds.
func ExpectationRemedy(kind pawl.Kind, name string) string {
	return run.Command("run", string(kind), name)
}

// StaleRemedy is the command for a lane that has waited in vain for a source: a fetch of
// it, which nobody can ask for while it is paused.
func StaleRemedy(s terms.Stale) string {
	if s.Paused {
		return run.Command("resume", string(pawl.KindSource), s.Source)
	}
	return run.Command("run", string(pawl.KindSource), s.Source)
}
