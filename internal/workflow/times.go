package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// A producer without limits goes on from when it last ran, and its row has all
// there is to know. One with limits has instants of its own, and what they depend
// on: the days of calendars, and where an interval counts from.

// declaredBy is the schedule that a row keeps.
func declaredBy(row workflowstore.ProducerSchedule) (s Schedule, err error) {
	if row.Timing != "" {
		err = json.Unmarshal([]byte(row.Timing), &s)
	}
	if s.Timezone = row.Timezone; row.Type == string(when.KindInterval) {
		s.Interval = row.Value
	} else {
		s.Cron = row.Value
	}
	return s, err
}

// timesOf is when a producer is due.
func (s *Service) timesOf(ctx context.Context, tx *store.Tx, parse lane.Schedules, row workflowstore.ProducerSchedule) (when.Schedule, error) {
	if row.Timing == "" {
		return parse.Parse(when.Kind(row.Type), row.Value, row.Timezone)
	}
	declared, err := declaredBy(row)
	if err != nil {
		return when.Schedule{}, err
	}
	plan, err := timing.Decode(row.Plan)
	if err != nil {
		return when.Schedule{}, err
	}
	return plan.Compile(ctx, tx, s.cfg.Calendars, seedOfProducer(row), declared.rule())
}

// seedOfProducer tells the jitter of one producer from that of all others.
func seedOfProducer(row workflowstore.ProducerSchedule) string {
	return row.WorkflowID + "/" + row.Producer
}

// loadTimes reads when the producers with limits are due. One whose zone was lost
// has none.
func (s *Service) loadTimes(ctx context.Context, tx *store.Tx, v *view) error {
	for _, row := range v.schedules {
		if row.Timing == "" {
			continue
		}
		times, err := s.timesOf(ctx, tx, nil, row)
		if err != nil && pawl.ErrorCode(err) != pawl.CodeInvalid {
			return err
		}
		if v.times == nil {
			v.times = map[string]when.Schedule{}
		}
		v.times[row.Producer] = times
	}
	return nil
}

// startOf is when a producer starts next; zero: its schedule has ended.
func (v *view) startOf(row workflowstore.ProducerSchedule) time.Time {
	times, limited := v.times[row.Producer]
	if !limited || row.NextRunAt.IsZero() {
		return row.NextRunAt
	}
	return timing.Start(times, row.NextRunAt)
}

// planned is a producer whose schedule a deploy changes.
type planned struct {
	plan  timing.Plan
	times when.Schedule
}

// planProducers completes the schedules of a script with the versions of their
// calendars and the anchors of their intervals, by producer. Only those with limits
// are in it. Calendars come before workflows, as whoever changes a calendar does.
func (s *Service) planProducers(ctx context.Context, tx *store.Tx, d Deploy, config Config) (map[string]planned, error) {
	var plans map[string]planned
	c := &checker{}
	for _, p := range config.Producers {
		if !p.Schedule.limited() {
			continue
		}
		var plan timing.Plan
		if timing.Fixed(p.Schedule.rule(), p.Schedule.Missed != nil) {
			plan.Anchor = tx.Now.UnixMilli()
		}
		faults, err := plan.Hold(ctx, tx, s.cfg.Calendars, p.Schedule.rule(), d.DryRun)
		if err != nil {
			return nil, err
		}
		h := declaredHandler{"producers", p.Name, object{}}
		for _, f := range faults {
			c.fault(h.at(fieldsOf(f.Pointer)...), "pawl get calendars lists them", "%sschedule: %s", h.who(), f.Message)
		}
		if plans == nil {
			plans = map[string]planned{}
		}
		plans[p.Name] = planned{plan: plan}
	}
	if len(c.faults) > 0 {
		return nil, c.report(d.Filename, d.Script)
	}
	return plans, nil
}

// checkPlans refuses a schedule that never runs. What was planned before may have
// ended; what is new must have an instant to come. workflowID is empty for a new
// workflow.
func (s *Service) checkPlans(ctx context.Context, tx *store.Tx, d Deploy, config Config, workflowID string, plans map[string]planned) error {
	if len(plans) == 0 {
		return nil
	}
	before := map[string]workflowstore.ProducerSchedule{}
	if workflowID != "" {
		list, err := workflowstore.In(tx).ProducerSchedules(ctx, workflowID)
		if err != nil {
			return err
		}
		for _, row := range list {
			before[row.Producer] = row
		}
	}
	c := &checker{}
	for _, p := range config.Producers {
		one, limited := plans[p.Name]
		row := scheduleRow(workflowID, p, planned{}, time.Time{})
		if !limited || row.SameAs(before[p.Name]) {
			continue
		}
		rule := p.Schedule.rule()
		var err error
		if one.times, err = one.plan.Compile(ctx, tx, s.cfg.Calendars, seedOfProducer(row), rule); err != nil {
			return err
		}
		plans[p.Name] = one
		if why, never := timing.NeverRuns(rule, one.times, tx.Now, timing.Instant); never {
			c.neverRuns(p, why)
		}
	}
	if len(c.faults) > 0 {
		return c.report(d.Filename, d.Script)
	}
	return nil
}

func (c *checker) neverRuns(p Producer, why pawl.Field) {
	h := declaredHandler{"producers", p.Name, object{}}
	c.fault(h.at(fieldsOf(why.Pointer)...), "", "%sschedule: %s", h.who(), why.Message)
}

// Foresee refuses the producers of a script that would never run if it were deployed
// now, without a store; see timing.Foresee. A script that is in force already may have
// such, so it is not for a deploy.
func Foresee(filename, source string, config Config, calendars map[string]when.Calendar, now time.Time) error {
	c := &checker{}
	for _, p := range config.Producers {
		if !p.Schedule.limited() {
			continue
		}
		rule := p.Schedule.rule()
		if why, never := timing.Foresee(rule, timing.Fixed(rule, p.Schedule.Missed != nil), calendars, now, timing.Instant); never {
			c.neverRuns(p, why)
		}
	}
	if len(c.faults) > 0 {
		return c.report(filename, source)
	}
	return nil
}

// firstRun is when a producer runs for the first time: now, unless that is left
// out.
func (p planned) firstRun(now time.Time) time.Time {
	if p.times.Kind() == "" || p.times.Excluded(now) == "" {
		return now
	}
	next, _ := p.times.Next(now)
	return next
}

// movesOn makes the schedule of a producer with limits go on after a run of it that
// commits. If it says something else by now, its time stays.
func (x *execution) movesOn(ctx context.Context, tx *store.Tx, p Producer) error {
	row, err := workflowstore.In(tx).ProducerSchedule(ctx, x.id, p.Name)
	if err != nil {
		return pawl.IgnoreNotFound(err)
	}
	next := row
	if ran := scheduleRow(x.id, p, planned{}, time.Time{}); ran.SameAs(row) {
		times, err := x.timesOf(ctx, tx, nil, row)
		if err != nil {
			return err
		}
		next.NextRunAt = afterRun(p.Schedule, times, x.run.ScheduledFor, row.NextRunAt, tx.Now)
	}
	return workflowstore.In(tx).ProducerRan(ctx, next, x.run.StartedAt)
}

// afterRun is the instant that a producer runs for after one that stood for an
// instant; zero: it was asked for, and stood for none.
func afterRun(s Schedule, times when.Schedule, stood, planned, now time.Time) time.Time {
	if s.Missed == nil {
		next, _ := times.Next(now)
		return next
	}
	first := planned
	if !stood.IsZero() {
		first, _ = times.Next(stood)
	}
	return timing.Next(times, s.Missed, first, now)
}

// pickInstant finds out for which instant a producer runs that is due. If it is for
// none of those that came due, its schedule goes on and the step is to look again.
func (e *session) pickInstant(ctx context.Context, v *view, st step) (step, error) {
	p, _ := v.config.Producer(st.handler)
	times, limited := v.times[st.handler]
	if !limited || p.Schedule.Missed == nil || st.trigger != triggerSchedule {
		return st, nil
	}
	if waited, err := e.waitedFresh(ctx, v, timing.Start(times, st.scheduledFor)); err != nil || waited {
		return st, err
	}
	at := timing.Next(times, p.Schedule.Missed, st.scheduledFor, v.now)
	if !at.IsZero() && !timing.Start(times, at).After(v.now) {
		if !at.Equal(st.scheduledFor) {
			e.log.Info("times of a producer were missed", "workflow", v.workflow.Name, "producer", st.handler, "since", pawl.FormatTime(st.scheduledFor), "runs for", pawl.FormatTime(at))
		}
		st.scheduledFor = at
		return st, nil
	}
	st.do = actWait
	e.log.Info("times of a producer were missed and do not run", "workflow", v.workflow.Name, "producer", st.handler, "since", pawl.FormatTime(st.scheduledFor))
	return st, e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := workflowstore.In(tx).ExpectRevision(ctx, e.id, v.workflow.Revision); err != nil {
			return err
		}
		row, err := workflowstore.In(tx).ProducerSchedule(ctx, e.id, st.handler)
		if err != nil {
			return pawl.IgnoreNotFound(err)
		}
		row.NextRunAt = at
		return workflowstore.In(tx).SetProducerNext(ctx, row)
	}, store.Lazy)
}

// UsersOf implements calendar.User. Workflows are everybody's, but whoever sees
// only what is theirs is told no names.
func (s *Service) UsersOf(ctx context.Context, tx *store.Tx, name, owner string) (names []string, all int, err error) {
	users, err := s.using(ctx, tx, name)
	if err != nil || owner != "" {
		return nil, len(users), err
	}
	for _, id := range users {
		w, err := workflowstore.In(tx).GetWorkflow(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		names = append(names, "workflow "+w.Name)
	}
	return names, len(users), nil
}

// using are the ids of the workflows that leave out the days of a calendar.
func (s *Service) using(ctx context.Context, tx *store.Tx, name string) (ids []string, err error) {
	rows, err := workflowstore.In(tx).SchedulesNaming(ctx, when.CalendarPrefix+name)
	for _, row := range rows {
		if declared, err := declaredBy(row); err == nil && slices.Contains(declared.rule().Calendars(), name) {
			ids = append(ids, row.WorkflowID)
		}
	}
	return slices.Compact(ids), err
}

// CalendarChanged implements calendar.User: the producers that leave out the days
// of the calendar are planned anew.
func (s *Service) CalendarChanged(ctx context.Context, tx *store.Tx, name string, revision int64, _ string) error {
	ids, err := s.using(ctx, tx, name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		w, err := workflowstore.In(tx).GetWorkflow(ctx, id)
		if err == nil {
			w, err = workflowstore.In(tx).HoldWorkflow(ctx, w.Name)
		}
		if errors.Is(err, pawl.ErrNotFound) || err == nil && w.ID != id {
			continue // it was deleted at this moment
		}
		if err == nil {
			err = s.replan(ctx, tx, w, name, revision)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) replan(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, name string, revision int64) error {
	rows, err := workflowstore.In(tx).ProducerSchedules(ctx, w.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		declared, err := declaredBy(row)
		if err != nil || !slices.Contains(declared.rule().Calendars(), name) {
			continue
		}
		plan, err := timing.Decode(row.Plan)
		if err != nil {
			return err
		}
		plan, times, err := plan.Replan(ctx, tx, s.cfg.Calendars, timing.Change{
			Calendar: name, Revision: revision, Seed: seedOfProducer(row), Rule: declared.rule(), Who: "producer " + row.Producer + " of the workflow " + w.Name,
		})
		if err != nil {
			return err
		}
		row.Plan, row.NextRunAt = plan.Encode(), replanned(times, row.NextRunAt, tx.Now)
		if err := workflowstore.In(tx).SetProducerNext(ctx, row); err != nil {
			return err
		}
	}
	if err := workflowstore.In(tx).TouchWorkflow(ctx, w.ID); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(w.Name), What: "planned"})
	return s.arm(ctx, tx, w, tx.Now)
}

// replanned is the next instant after a change of what is left out. One that is due
// already stays, unless it is left out now.
func replanned(times when.Schedule, next, now time.Time) time.Time {
	switch {
	case !next.IsZero() && (!next.After(now) || times.Floats()) && times.Excluded(next) == "":
		return next
	case !next.IsZero() && times.Floats():
		next, _ = times.Next(next)
		return next
	}
	next, _ = times.Next(now)
	return next
}
