package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// rowTiming is what the row of a schedule keeps of when it runs besides its
// expressions.
type rowTiming struct {
	Interval string   `json:"interval,omitempty"`
	At       string   `json:"at,omitempty"`
	From     string   `json:"from,omitempty"`
	Until    string   `json:"until,omitempty"`
	Except   []string `json:"except,omitempty"`
	Jitter   string   `json:"jitter,omitempty"`
	timing.Plan
}

func decodeTiming(text string) (t rowTiming, err error) {
	if text == "" {
		return t, nil
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, fmt.Errorf("read the times of a schedule: %w", err)
	}
	return t, nil
}

// encode is the text of a row, empty if there is nothing.
func (t rowTiming) encode() string {
	raw, _ := json.Marshal(t) // of types that can be JSON
	if string(raw) == "{}" {
		return ""
	}
	return string(raw)
}

func (t rowTiming) rule(cron, timezone string) when.Rule {
	return when.Rule{
		Cron: client.Cron(cron).List(), Interval: t.Interval, At: t.At, Timezone: timezone, From: t.From, Until: t.Until, Except: t.Except, Jitter: t.Jitter,
	}
}

// TimingOf is when a schedule runs besides its expressions, as it was written.
func TimingOf(sch schedulestore.Schedule) client.Timing {
	t, _ := decodeTiming(sch.Timing) // what a row has was encoded here
	return client.Timing{Interval: t.Interval, At: t.At, From: t.From, Until: t.Until, Except: t.Except, MaxRuns: sch.MaxRuns, Jitter: t.Jitter}
}

// timesOf is when a schedule is due.
func (s *Service) timesOf(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (when.Schedule, error) {
	return s.times(ctx, tx, sch.ID, sch.Cron, sch.Timezone, sch.Timing)
}

func (s *Service) times(ctx context.Context, tx *store.Tx, id, cron, timezone, text string) (when.Schedule, error) {
	if text == "" && !strings.Contains(cron, ";") {
		return when.Parse(when.KindCron, cron, timezone)
	}
	t, err := decodeTiming(text)
	if err != nil {
		return when.Schedule{}, err
	}
	return t.Compile(ctx, tx, s.cfg.Calendars, id, t.rule(cron, timezone))
}

// mostRuns bounds maxRuns.
const mostRuns = 1_000_000_000

// planTimes completes when a schedule runs, with the versions of its calendars
// and the anchor of its interval, and finds what is wrong with it. The zero was is
// that of a new one. What was planned before may have ended; what is new must have
// an instant to come.
func (s *Service) planTimes(ctx context.Context, tx *store.Tx, sch *schedulestore.Schedule, was schedulestore.Schedule) error {
	t, err := decodeTiming(sch.Timing)
	if err != nil {
		return err
	}
	before, err := decodeTiming(was.Timing)
	if err != nil {
		return err
	}
	switch {
	case t.Interval == "":
		t.Anchor = 0
	case t.Interval == before.Interval:
		t.Anchor = before.Anchor
	default:
		t.Anchor = tx.Now.UnixMilli()
	}
	faults, err := t.Hold(ctx, tx, s.cfg.Calendars, t.rule(sch.Cron, sch.Timezone), false)
	if err != nil {
		return err
	}
	sch.Timing = t.encode()
	if sch.MaxRuns < 0 || sch.MaxRuns > mostRuns {
		faults = append(faults, pawl.Field{Pointer: "/maxRuns", Message: fmt.Sprintf("must be from 1 to %d", mostRuns)})
	}
	if len(faults) > 0 {
		return badTimes(faults)
	}
	rule := t.rule(sch.Cron, sch.Timezone)
	times, err := t.Compile(ctx, tx, s.cfg.Calendars, sch.ID, rule)
	if err != nil {
		return err
	}
	if was.ID != "" && sch.Timing == was.Timing && sch.Cron == was.Cron && sch.Timezone == was.Timezone {
		return nil
	}
	if why, never := timing.NeverRuns(rule, times, tx.Now, timing.Slot); never {
		return badTimes([]pawl.Field{why})
	}
	return nil
}

func badTimes(faults []pawl.Field) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "check schedule", Msg: "the schedule is not valid: " + faults[0].Message, Fields: faults}
}

// shareCalendars keeps the calendars of a schedule from being changed.
func (s *Service) shareCalendars(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) error {
	t, err := decodeTiming(sch.Timing)
	if err == nil && len(t.Except) > 0 {
		_, err = t.Hold(ctx, tx, s.cfg.Calendars, t.rule(sch.Cron, sch.Timezone), false)
	}
	return err
}

// newTiming is the timing of a request.
func newTiming(in client.Timing) string {
	t := rowTiming{Interval: in.Interval, At: in.At, From: in.From, Until: in.Until, Except: in.Except, Jitter: in.Jitter}
	return t.encode()
}

// mergeTiming changes when a schedule runs. One of cron, interval and at takes
// the place of the others.
func mergeTiming(s *schedulestore.Schedule, cron *client.Cron, in client.TimingPatch) {
	t, err := decodeTiming(s.Timing)
	if err != nil {
		return // whoever checks it says so
	}
	set := func(to *string, from *string) bool {
		if from != nil {
			*to = *from
		}
		return from != nil && *from != ""
	}
	was := t
	switch {
	case set(&t.Interval, in.Interval) && (in.At == nil || *in.At == "") && (cron == nil || *cron == ""):
		s.Cron, t.At = "", ""
	case set(&t.At, in.At) && (in.Interval == nil || *in.Interval == "") && (cron == nil || *cron == ""):
		s.Cron, t.Interval = "", ""
	case cron != nil && *cron != "" && in.Interval == nil && in.At == nil:
		t.Interval, t.At = "", ""
	}
	if cron != nil {
		s.Cron = string(*cron)
	}
	set(&t.From, in.From)
	set(&t.Until, in.Until)
	set(&t.Jitter, in.Jitter)
	if in.Except != nil {
		t.Except = *in.Except
		maps.DeleteFunc(t.Calendars, func(name string, _ int64) bool {
			return !slices.ContainsFunc(t.Except, func(e string) bool { return strings.TrimSpace(e) == when.CalendarPrefix+name })
		})
	}
	if t.Interval != was.Interval {
		t.Anchor = 0
	}
	if in.MaxRuns != nil {
		s.MaxRuns = *in.MaxRuns
	}
	s.Timing = t.encode()
}

// declared is a request as a change that leaves nothing of what it does not name.
func declared(in client.Timing) client.TimingPatch {
	return client.TimingPatch{Interval: &in.Interval, At: &in.At, From: &in.From, Until: &in.Until, Except: &in.Except, MaxRuns: &in.MaxRuns, Jitter: &in.Jitter}
}

// spent reports whether as many slots of a schedule have begun as may.
func spent(sch schedulestore.Schedule) bool { return sch.MaxRuns > 0 && sch.Begun >= sch.MaxRuns }

// nextOwn is the instant after a slot of the schedule's own that is about to
// begin; zero: it is the last.
func nextOwn(sch schedulestore.Schedule, times when.Schedule, at time.Time) time.Time {
	sch.Begun++
	if spent(sch) {
		return time.Time{}
	}
	next, _ := times.Next(at)
	return next
}

// exclude closes the slots that wait and that a change of the schedule leaves out.
func (s *Service) exclude(ctx context.Context, tx *store.Tx, now schedulestore.Schedule) error {
	times, err := s.timesOf(ctx, tx, now)
	if err != nil {
		return err
	}
	open, err := schedulestore.In(tx).OpenSlots(ctx, now.ID, 1000)
	if err != nil {
		return err
	}
	for _, slot := range open {
		if run.SlotStatus(slot.Status) != run.SlotPending || slot.Trigger != triggerSchedule {
			continue
		}
		why := times.Excluded(slot.ScheduledFor)
		if why == "" {
			continue
		}
		closed, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, skipped(run.DispositionExcluded, "", "The time is left out: "+why+"."))
		if err != nil {
			return err
		}
		s.emitSlot(tx, now, closed)
	}
	return nil
}

// UsersOf implements calendar.User.
func (s *Service) UsersOf(ctx context.Context, tx *store.Tx, name, owner string) (names []string, all int, err error) {
	list, err := s.using(ctx, tx, name)
	for _, sch := range list {
		if owner == "" || owner == sch.OwnerUserID {
			names = append(names, "schedule "+sch.Name)
		}
	}
	return names, len(list), err
}

// using are the schedules that leave out the days of a calendar.
func (s *Service) using(ctx context.Context, tx *store.Tx, name string) ([]schedulestore.Schedule, error) {
	list, err := schedulestore.In(tx).SchedulesNaming(ctx, when.CalendarPrefix+name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(sch schedulestore.Schedule) bool {
		t, err := decodeTiming(sch.Timing)
		return err != nil || !slices.Contains(t.rule(sch.Cron, sch.Timezone).Calendars(), name)
	}), nil
}

// CalendarChanged implements calendar.User: every schedule that leaves out the
// days of the calendar is planned anew.
func (s *Service) CalendarChanged(ctx context.Context, tx *store.Tx, name string, revision int64, by string) error {
	list, err := s.using(ctx, tx, name)
	if err != nil {
		return err
	}
	for _, one := range list {
		was, err := schedulestore.In(tx).HoldSchedule(ctx, one.ID)
		if err != nil {
			if errors.Is(err, pawl.ErrNotFound) {
				continue // it was deleted at this moment
			}
			return err
		}
		if err := s.replan(ctx, tx, was, name, revision, by); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) replan(ctx context.Context, tx *store.Tx, was schedulestore.Schedule, name string, revision int64, by string) error {
	t, err := decodeTiming(was.Timing)
	if err != nil || !slices.Contains(t.rule(was.Cron, was.Timezone).Calendars(), name) {
		return err // it was changed at this moment
	}
	change := timing.Change{Calendar: name, Revision: revision, Seed: was.ID, Rule: t.rule(was.Cron, was.Timezone), Who: "schedule " + was.ID}
	if t.Plan, _, err = t.Replan(ctx, tx, s.cfg.Calendars, change); err != nil {
		return err
	}
	next := was
	next.Timing = t.encode()
	return s.rewrite(ctx, tx, was, next, "The calendar "+name+" was changed.", by)
}

// rewrite puts a changed schedule in force: what waits of the old one is closed,
// and the next slot is that of the new one.
func (s *Service) rewrite(ctx context.Context, tx *store.Tx, was, next schedulestore.Schedule, why, by string) error {
	if err := s.passDisabled(ctx, tx, was); err != nil {
		return err
	}
	now, err := schedulestore.In(tx).UpdateSchedule(ctx, next, true, by)
	if err != nil {
		return err
	}
	if err := s.exclude(ctx, tx, now); err != nil {
		return err
	}
	if err := s.supersede(ctx, tx, was, run.DispositionSuperseded, why); err != nil {
		return err
	}
	if err := s.chain(ctx, tx, now, tx.Now, false); err != nil {
		return err
	}
	return s.settleLane(ctx, tx, now.ID) // one that was closed may have waited for a source
}
