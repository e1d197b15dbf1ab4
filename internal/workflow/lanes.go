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
	Word     run.Word
	Issue    run.Issue
	Sentence string // the issue in plain language; empty if there is none
	Schedule string // in words
	NextAt   time.Time
	LastAt   time.Time // of the last activity
	LastText string
	Pending  int // inputs that wait, and events that come from none
	Paused   bool
	Labels   map[string]string
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
		if len(list) > limit {
			list = list[:limit]
			next = list[limit-1].Name
		}
		for _, w := range list {
			v, err := s.look(ctx, tx, w.ID)
			if err != nil {
				return err
			}
			l, err := s.laneView(ctx, tx, v)
			if err != nil {
				return err
			}
			page = append(page, l)
		}
		return nil
	})
	return page, next, err
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
		if d.Lane, err = s.laneView(ctx, tx, v); err != nil {
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

func (s *Service) laneView(ctx context.Context, tx *store.Tx, v *view) (Lane, error) {
	word, issue := v.words()
	l := Lane{
		ID: v.workflow.ID, Name: v.workflow.Name, Word: word, Issue: issue, Sentence: v.sentence(issue), Schedule: v.scheduleWords(),
		NextAt: v.nextAt(), Paused: v.workflow.Desired == desiredPaused, Labels: v.config.Labels,
	}
	orphans, err := tx.OrphanedReservations(ctx, v.workflow.ID, 1)
	if err != nil {
		return l, err
	}
	if len(orphans) > 0 { // told, never repaired silently (context 3.12.4)
		l.Word, l.Issue = run.NeedsAttention, run.IssueInconsistent
		l.Sentence = fmt.Sprintf("Event %q is held by run %s, which has ended; this is a fault of Pawl, please report it.", orphans[0].MessageID, orphans[0].RunID)
	}
	if st, decided := v.chooseForRun(); decided && st.do == actWait && run.NeedsSuccessor(v.newest.Status) && !v.hasHandler(v.row) && word != run.Stopped {
		l.Word, l.Issue = run.NeedsAttention, run.IssueInconsistent
		l.Sentence = "The deployed version lacks the part that its unfinished run is of; deploy one that has it, or cancel run " + v.row.ID + "."
	}
	if l.Pending, err = tx.CountWaiting(ctx, v.workflow.ID, v.config.subscribed()); err != nil {
		return l, err
	}
	l.LastAt, l.LastText, err = lastActivity(ctx, tx, v)
	return l, err
}

// lastActivity is a sentence about what the workflow did last, in terms of
// inputs and effects.
func lastActivity(ctx context.Context, tx *store.Tx, v *view) (time.Time, string, error) {
	calls, err := tx.ListMutations(ctx, v.workflow.ID, store.MutationCursor{}, 1)
	if err != nil {
		return time.Time{}, "", err
	}
	inputs, err := tx.ListInputs(ctx, v.workflow.ID, "", store.InputCursor{}, 1)
	if err != nil {
		return time.Time{}, "", err
	}
	switch {
	case len(calls) > 0 && (len(inputs) == 0 || !calls[0].UpdatedAt.Before(inputs[0].CreatedAt)):
		return calls[0].UpdatedAt, callSentence(calls[0]), nil
	case len(inputs) > 0:
		return inputs[0].CreatedAt, "Found " + inputs[0].Title, nil
	case v.row.ID != "":
		return v.row.UpdatedAt, "Checked; there was nothing to do", nil
	}
	return v.workflow.DeployedAt, "Deployed", nil
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

// Gate is one condition of running, and whether it is met.
type Gate struct {
	Name string
	Open bool
	Text string
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
		if y.Lane, err = s.laneView(ctx, tx, v); err != nil {
			return err
		}
		armed, ok, err := tx.ArmedAt(ctx, TaskName, jobKey(w.Lane))
		if err != nil {
			return err
		}
		y.Gates, y.Next = v.gates(y.Lane, ok && !armed.After(tx.Now)), v.nextWords(y.Lane)
		y.Recent, _, err = tx.ListRuns(ctx, store.RunFilter{Kind: pawl.KindWorkflow, Lane: w.Lane}, store.RunCursor{}, maxRecent)
		return err
	})
	return y, err
}

// gates are the conditions of running. armed says that the lane is to be looked
// at now: without that, what waits has been looked at and was left.
func (v *view) gates(l Lane, armed bool) []Gate {
	wanted := Gate{"wanted", v.workflow.Desired == desiredActive, "It is meant to run."}
	if !wanted.Open {
		wanted.Text = "It is " + v.workflow.Desired + "."
	}
	idle := Gate{"idle", v.newest.Status != pawl.StatusActive, "No run is active."}
	if !idle.Open {
		idle.Text = fmt.Sprintf("Run %s is active since %s.", v.row.ID, pawl.FormatTime(v.row.CreatedAt))
	}
	healthy := Gate{"healthy", v.newest.Status == pawl.StatusActive || !run.Halts(v.newest, v.exhausted()), "Its last run is over."}
	if !healthy.Open {
		healthy.Text = l.Sentence
	}
	due := v.dueProducer()
	work := Gate{Name: "due", Open: due.do == actProduce || v.wakeIsDue() || l.Pending > 0 && armed}
	switch {
	case due.do == actProduce && due.trigger == triggerManual:
		work.Text = "Somebody asked for a run."
	case due.do == actProduce:
		work.Text = "Its schedule is due."
	case v.wakeIsDue():
		work.Text = "The time has come at which it wants to look again."
	case work.Open:
		work.Text = inputsWait(l.Pending) + "."
	case l.Pending > 0:
		work.Text = inputsWait(l.Pending) + "; it has looked at them and takes them up when something new comes, or when it wants to look again."
	default:
		work.Text = "Its schedule is not due and nothing waits."
	}
	return []Gate{wanted, idle, healthy, work}
}

func inputsWait(n int) string {
	if n == 1 {
		return "1 input waits"
	}
	return fmt.Sprintf("%d inputs wait", n)
}

// wakeIsDue reports whether a consumer is to be woken.
func (v *view) wakeIsDue() bool {
	for _, c := range v.config.Consumers {
		if at := v.wakes[c.Name]; !at.IsZero() && !at.After(v.now) {
			return true
		}
	}
	return false
}

func (v *view) nextWords(l Lane) string {
	if v.newest.Status == pawl.StatusActive {
		return "It looks again when the run has ended."
	}
	if st, decided := v.chooseForRun(); decided && st.do != actWait && l.Word != run.Stopped {
		return "It goes on at once."
	}
	if l.NextAt.IsZero() {
		if l.Word == run.Idle {
			return "It runs when an event comes."
		}
		return "It does nothing by itself until then."
	}
	if !l.NextAt.After(v.now) {
		return "It is due now."
	}
	return "It looks again at " + pawl.FormatTime(l.NextAt) + "."
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
