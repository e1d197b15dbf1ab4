package workflow

import (
	"context"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// Details are everything about one workflow.
type Details struct {
	lane.Lane
	Workflow  workflowstore.Workflow
	Version   workflowstore.WorkflowVersion
	Config    Config
	Schedules []workflowstore.ProducerSchedule
	Words     map[string]string // when producers run, by name
	States    []workflowstore.HandlerState
	Newest    runstore.Run // zero if it never ran

	// About is the run that the issue is of; empty if there is none. Partitions counts them; nil if
	// it has none.
	About      string
	Partitions *partitionstore.Counts
}

// Kind implements lane.Kind.
func (s *Service) Kind() pawl.Kind { return pawl.KindWorkflow }

// List implements lane.Kind.
func (s *Service) List(ctx context.Context, q lane.Query) (page []lane.Lane, next lane.Place, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		page, next = nil, lane.Place{}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		list, err := workflowstore.In(tx).FindWorkflows(ctx, q.Stored(there), q.After.Name, q.Limit+1)
		if err != nil {
			return err
		}
		if len(list) > q.Limit {
			list = list[:q.Limit]
			next = refOf(list[q.Limit-1].Name).Place()
		}
		page = make([]lane.Lane, len(list))
		err = tx.Each(ctx, len(list), func(ctx context.Context, tx *store.Tx, i int) error {
			v, err := s.loadFrom(ctx, tx, list[i])
			if err != nil {
				return err
			}
			page[i], err = s.laneFrom(ctx, tx, v, there)
			return err
		})
		page = q.Fitting(page)
		return err
	})
	return page, next, err
}

// Names implements lane.Kind.
func (s *Service) Names(ctx context.Context, tx *store.Tx, _ string, limit int) (names []string, err error) {
	list, err := workflowstore.In(tx).ListWorkflows(ctx, "", limit)
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, err
}

// Describe reads everything about a workflow.
func (s *Service) Describe(ctx context.Context, name string) (d Details, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
		if err != nil {
			return err
		}
		v, err := s.loadFrom(ctx, tx, w)
		if err != nil {
			return err
		}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		if d.Lane, err = s.laneFrom(ctx, tx, v, there); err != nil {
			return err
		}
		d.Workflow, d.Config, d.Schedules, d.Newest = v.workflow, v.config, v.schedules, v.row
		if d.Version, err = workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, w.Version); err != nil {
			return err
		}
		d.About, d.Partitions = v.standing().of.row.ID, nil
		if v.parts != nil {
			d.Partitions = &v.parts.counts
		}
		d.Words = map[string]string{}
		for _, p := range v.config.Producers {
			d.Words[p.Name] = v.wordsOf(p)
		}
		d.States, err = workflowstore.In(tx).HandlerStates(ctx, w.ID)
		return err
	})
	return d, err
}

func (s *Service) laneFrom(ctx context.Context, tx *store.Tx, v *view, there run.Workforce) (lane.Lane, error) {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, v.workflow.Lane)
	if err := pawl.IgnoreNotFound(err); err != nil {
		return lane.Lane{}, err
	}
	v.pause = known.Pause
	if err := v.countParts(ctx, tx); err != nil {
		return lane.Lane{}, err
	}
	now := v.standing()
	l := lane.Lane{
		Ref: refOf(v.workflow.Name), ID: v.workflow.ID, State: now.state, Issue: now.issue, Sentence: now.sentence, Schedule: v.scheduleWords(),
		NextAt: v.nextAt(), Paused: v.workflow.Desired == desiredPaused, Pause: v.pause, Labels: v.config.Labels,
	}
	orphans, err := eventstore.In(tx).OrphanedReservations(ctx, v.workflow.ID, 1)
	if err != nil {
		return l, err
	}
	if len(orphans) > 0 { // told, never repaired silently (context 3.12.4)
		l.State, l.Issue = run.NeedsAttention, run.IssueInconsistent
		l.Sentence = fmt.Sprintf("Event %q is held by run %s, which has ended; this is a bug in Pawl, please report it.", orphans[0].MessageID, orphans[0].RunID)
	}
	l.Expecting(known)
	switch l.State, l.Issue = there.Over(l.State, l.Issue); l.Issue {
	case run.IssueNoWorker:
		l.Sentence = there.Sentence()
	case run.IssueHalted:
		l.Sentence = there.Halt.Sentence()
	default:
	}
	if l.Pending, l.PendingMore, err = eventstore.In(tx).CountWaiting(ctx, v.workflow.ID, v.config.subscribed()); err != nil {
		return l, err
	}
	l.Do = v.remedy(l)
	if now.parted && l.Issue == now.issue {
		l.Do = now.of.remedy(l)
	}
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
	calls, err := mutationstore.NewestMutation(ctx, tx, v.workflow.ID)
	if err != nil {
		return time.Time{}, "", err
	}
	inputs, err := eventstore.NewestInput(ctx, tx, v.workflow.ID)
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

func callSentence(m mutationstore.Mutation) string {
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
		return "In progress: " + what
	case pawl.MutationNone, pawl.MutationNeedsReconcile, pawl.MutationIndeterminate:
	}
	return "Outcome unknown: " + what
}

// maxRecent is how many runs Why tells of.
const maxRecent = 10

// Why implements lane.Kind.
func (s *Service) Why(ctx context.Context, _ lane.Viewer, name string, at time.Time) (y lane.Why, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
		if err != nil {
			return err
		}
		v, err := s.loadFrom(ctx, tx, w)
		if err != nil {
			return err
		}
		y = lane.Why{At: tx.Now}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		if y.Lane, err = s.laneFrom(ctx, tx, v, there); err != nil {
			return err
		}
		armed, ok, err := workflowstore.In(tx).ArmedAt(ctx, TaskName, jobKey(w.Lane))
		if err != nil {
			return err
		}
		looks := ok && !armed.After(tx.Now) // its job is there: what waits is looked at
		stale, err := s.cfg.Needs.Stale(ctx, tx, v.config.Needs)
		if err != nil {
			return err
		}
		y.Gates, y.Next = v.gates(y.Lane, there, looks, stale), v.nextWords(y.Lane, there, looks)
		if !at.IsZero() {
			if y.Around, err = lane.ReadAround(ctx, tx, pawl.KindWorkflow, w.Lane, at); err != nil {
				return err
			}
			repeats, err := s.Repeats(ctx, tx, &y.Lane)
			if err == nil {
				err = y.Around.TellStanding(ctx, tx, lane.Standing{Kind: pawl.KindWorkflow, Lane: w.Lane, Name: w.Name, Made: w.CreatedAt, Repeats: repeats})
			}
			if err != nil {
				return err
			}
		}
		y.Recent, _, err = runstore.In(tx).ListRuns(ctx, runstore.RunFilter{Kind: pawl.KindWorkflow, Lane: w.Lane}, store.Place{}, maxRecent)
		return err
	})
	return y, err
}

// LaneOf implements lane.Kind. The lane of a run is the workflow's name, and a
// number behind a # if there was one of that name before.
func (s *Service) LaneOf(r *runstore.Run) lane.Ref {
	lane, _ := runstore.BaseLane(r.Lane)
	name, _, _ := strings.Cut(lane, "#")
	return refOf(name)
}

// Find implements lane.Kind. An earlier workflow of the name had another lane.
func (s *Service) Find(ctx context.Context, tx *store.Tx, _ lane.Viewer, name string) (runstore.RunFilter, bool, error) {
	w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
	return runstore.RunFilter{Kind: pawl.KindWorkflow, Lane: w.Lane}, err == nil, pawl.IgnoreNotFound(err)
}

// OwnerOf implements lane.Kind. Workflows are everybody's.
func (s *Service) OwnerOf(context.Context, *store.Tx, string) (string, error) { return "", nil }

// Due implements lane.Kind: the producers that are due first.
func (s *Service) Due(ctx context.Context, _ string, before time.Time, limit int) (list []lane.Due, more bool, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		producers, err := workflowstore.In(tx).DueProducers(ctx, before, limit+1)
		if more = len(producers) > limit; more {
			producers = producers[:limit]
		}
		if err != nil {
			return err
		}
		list = nil
		parse := lane.Schedules{}
		for _, p := range producers {
			if list, err = s.appendDue(ctx, tx, list, parse, p.Workflow, p.ProducerSchedule); err != nil {
				return err
			}
		}
		return nil
	})
	return list, more, err
}

// Repeats implements lane.Kind.
func (s *Service) Repeats(ctx context.Context, tx *store.Tx, l *lane.Lane) (list []lane.Due, err error) {
	producers, err := workflowstore.In(tx).ProducerSchedules(ctx, l.ID)
	if err != nil {
		return nil, err
	}
	parse := lane.Schedules{}
	for _, p := range producers {
		if list, err = s.appendDue(ctx, tx, list, parse, l.Name, p); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (s *Service) appendDue(ctx context.Context, tx *store.Tx, list []lane.Due, parse lane.Schedules, name string, p workflowstore.ProducerSchedule) ([]lane.Due, error) {
	schedule, err := s.timesOf(ctx, tx, parse, p)
	switch {
	case err == nil:
	case p.Timing == "" || pawl.ErrorCode(err) == pawl.CodeInvalid:
		return list, nil // a zone may have been lost since it was checked
	default:
		return nil, err
	}
	declared, err := declaredBy(p)
	if err != nil {
		return nil, err
	}
	due := lane.Due{Ref: refOf(name), Handler: p.Producer, Schedule: schedule, Next: p.NextRunAt}
	if declared.Missed != nil {
		due.Missed = declared.Missed.Policy
	}
	return append(list, due), nil
}
