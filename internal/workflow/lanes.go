package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// Lane is a workflow as people see it (A-143..A-147).
type Lane struct {
	ID       string
	Name     string
	State    run.State
	Issue    run.Issue
	Sentence string // the issue in plain language; empty if there is none
	Schedule string // in words
	NextAt   time.Time
	LastAt   time.Time // of the last activity
	LastText string
	Pending  int // inputs that wait, and events that come from none
	Paused   bool
	Labels   map[string]string
	Do       string // the command that ends what the word and the issue tell; empty while it is idle
}

// Details are everything about one workflow.
type Details struct {
	Lane
	Workflow  store.Workflow
	Version   store.WorkflowVersion
	Config    Config
	Schedules []store.ProducerSchedule
	States    []store.HandlerState
	Newest    store.Run // zero if it never ran
}

// Lanes reads up to limit workflows by name, those after the given one, and
// the name with which to go on, empty at the end.
func (s *Service) Lanes(ctx context.Context, after string, limit int) (page []Lane, next string, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		page = nil
		list, err := tx.ListWorkflows(ctx, after, limit+1)
		if err != nil {
			return err
		}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		if len(list) > limit {
			list = list[:limit]
			next = list[limit-1].Name
		}
		for _, w := range list {
			v, err := s.look(ctx, tx, w.ID)
			if err != nil {
				return err
			}
			l, err := s.laneView(ctx, tx, v, there)
			if err != nil {
				return err
			}
			page = append(page, l)
		}
		return nil
	})
	return page, next, err
}

// Workforce tells who there is to run things.
func (s *Service) Workforce(ctx context.Context) (there run.Workforce, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		there, err = s.cfg.Workforce(ctx, tx)
		return err
	})
	return there, err
}

// Describe reads everything about a workflow.
func (s *Service) Describe(ctx context.Context, name string) (d Details, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := tx.WorkflowByName(ctx, name)
		if err != nil {
			return err
		}
		v, err := s.look(ctx, tx, w.ID)
		if err != nil {
			return err
		}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		if d.Lane, err = s.laneView(ctx, tx, v, there); err != nil {
			return err
		}
		d.Workflow, d.Config, d.Schedules, d.Newest = v.workflow, v.config, v.schedules, v.row
		if d.Version, err = tx.GetWorkflowVersion(ctx, w.ID, w.Version); err != nil {
			return err
		}
		d.States, err = tx.HandlerStates(ctx, w.ID)
		return err
	})
	return d, err
}

func (s *Service) laneView(ctx context.Context, tx *store.Tx, v *view, there run.Workforce) (Lane, error) {
	word, issue := v.words()
	l := Lane{
		ID: v.workflow.ID, Name: v.workflow.Name, State: word, Issue: issue, Sentence: v.sentence(issue), Schedule: v.scheduleWords(),
		NextAt: v.nextAt(), Paused: v.workflow.Desired == desiredPaused, Labels: v.config.Labels,
	}
	orphans, err := tx.OrphanedReservations(ctx, v.workflow.ID, 1)
	if err != nil {
		return l, err
	}
	if len(orphans) > 0 { // told, never repaired silently (context 3.12.4)
		l.State, l.Issue = run.NeedsAttention, run.IssueInconsistent
		l.Sentence = fmt.Sprintf("Event %q is held by run %s, which has ended; this is a fault of Pawl, please report it.", orphans[0].MessageID, orphans[0].RunID)
	}
	if v.lostItsHandler() && word != run.Stopped {
		l.State, l.Issue = run.NeedsAttention, run.IssueInconsistent
		l.Sentence = "The deployed version lacks the part that its unfinished run is of; deploy one that has it, or cancel run " + v.row.ID + "."
	}
	if l.State, l.Issue = there.Over(l.State, l.Issue); l.Issue == run.IssueNoWorker {
		l.Sentence = there.Sentence()
	}
	if l.Pending, err = tx.CountWaiting(ctx, v.workflow.ID, v.config.subscribed()); err != nil {
		return l, err
	}
	l.Do = v.remedy(l)
	l.LastAt, l.LastText, err = lastActivity(ctx, tx, v)
	return l, err
}

// lostItsHandler: the newest run needs a successor, and the deployed version
// cannot make one.
func (v *view) lostItsHandler() bool {
	st, decided := v.chooseForRun()
	return decided && st.do == actWait && run.NeedsSuccessor(v.newest.Status) && !v.hasHandler(v.row)
}

// lastActivity is a sentence about what the workflow did last, in terms of
// inputs and effects. What became of the newest run is told if that came
// after both, unless it only found nothing to do.
func lastActivity(ctx context.Context, tx *store.Tx, v *view) (time.Time, string, error) {
	calls, err := tx.ListMutations(ctx, v.workflow.ID, store.MutationCursor{}, 1)
	if err != nil {
		return time.Time{}, "", err
	}
	inputs, err := tx.ListInputs(ctx, v.workflow.ID, "", store.InputCursor{}, 1)
	if err != nil {
		return time.Time{}, "", err
	}
	at, text := v.workflow.DeployedAt, "Deployed"
	if len(inputs) > 0 && !inputs[0].CreatedAt.Before(at) {
		at, text = inputs[0].CreatedAt, "Found "+inputs[0].Title
	}
	if len(calls) > 0 && (len(inputs) == 0 || !calls[0].UpdatedAt.Before(inputs[0].CreatedAt)) {
		at, text = calls[0].UpdatedAt, callSentence(calls[0])
	}
	quiet := len(calls) > 0 && calls[0].RunID == v.row.ID || len(calls)+len(inputs) > 0 && (v.row.Status == pawl.StatusCommitted || v.row.Status == pawl.StatusActive)
	if v.row.ID != "" && !quiet && !v.row.UpdatedAt.Before(at) {
		return v.row.UpdatedAt, v.runSentence(), nil
	}
	return at, text, nil
}

func callSentence(m store.Mutation) string {
	what := m.Title
	if what == "" {
		what = m.Tool + "." + m.Method
	}
	switch m.State {
	case pawl.MutationApplied:
		return "Done: " + what
	case pawl.MutationFailed:
		return "Did not happen: " + what
	case pawl.MutationSkipped:
		return "Skipped: " + what
	case pawl.MutationInFlight:
		return "Under way: " + what
	case pawl.MutationNone, pawl.MutationNeedsReconcile, pawl.MutationIndeterminate:
	}
	return "Unknown whether it happened: " + what
}

// Why tells what a lane does next and why, and why it does not do more.
type Why struct {
	Lane
	At     time.Time
	Next   string // what it does next, in words
	Gates  []Gate
	Recent []store.Run // the newest first
}

// maxRecent is how many runs Why tells of.
const maxRecent = 10

// Why reads why a workflow runs, does not run, or waits.
func (s *Service) Why(ctx context.Context, name string) (y Why, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := tx.WorkflowByName(ctx, name)
		if err != nil {
			return err
		}
		v, err := s.look(ctx, tx, w.ID)
		if err != nil {
			return err
		}
		y = Why{At: tx.Now}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		if y.Lane, err = s.laneView(ctx, tx, v, there); err != nil {
			return err
		}
		armed, ok, err := tx.ArmedAt(ctx, TaskName, jobKey(w.Lane))
		if err != nil {
			return err
		}
		looks := ok && !armed.After(tx.Now) // its job is there: what waits is looked at
		y.Gates, y.Next = v.gates(y.Lane, there, looks), v.nextWords(y.Lane, looks)
		y.Recent, _, err = tx.ListRuns(ctx, store.RunFilter{Kind: pawl.KindWorkflow, Lane: w.Lane}, store.Place{}, maxRecent)
		return err
	})
	return y, err
}

// RunDetails are a run with all that belongs to it.
type RunDetails struct {
	Run   store.Run
	Calls []store.Mutation
	Logs  []store.LogLine
	Chain []store.Run // the whole retry chain, the newest first
}

// maxLogLines is how many lines of a run are shown.
const maxLogLines = 1000

// RunDetails reads a run.
func (s *Service) RunDetails(ctx context.Context, id string) (d RunDetails, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if d.Run, err = tx.GetRun(ctx, id); err != nil {
			return err
		}
		if d.Chain, err = tx.RunChain(ctx, id); err != nil {
			return err
		}
		if d.Calls, err = tx.RunMutations(ctx, id); err != nil {
			return err
		}
		d.Logs, err = tx.RunLogs(ctx, id, maxLogLines)
		return err
	})
	return d, err
}

// NameOfLane is the workflow's name in the lane of a run.
func NameOfLane(lane string) string {
	for i := range lane {
		if lane[i] == '#' {
			return lane[:i]
		}
	}
	return lane
}

// LaneOf is the lane of a workflow that is there; the name itself if it is not,
// so that a list of its runs is empty instead of an error.
func (s *Service) LaneOf(ctx context.Context, tx *store.Tx, name string) (string, error) {
	w, err := tx.WorkflowByName(ctx, name)
	if errors.Is(err, pawl.ErrNotFound) {
		return name, nil
	}
	return w.Lane, err
}
