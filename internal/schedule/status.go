package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

// Details are everything about one schedule.
type Details struct {
	lane.Lane
	Row    schedulestore.Schedule
	Open   []schedulestore.Slot // the oldest first
	Recent []schedulestore.Slot // the latest first
	Newest runstore.Run         // zero if it never ran

	times   when.Schedule      // zero: its zone was lost
	health  runstore.Attention // what its slots say about it, as its row has it; zero: nothing is wrong
	known   runstore.Lane
	there   run.Workforce
	stale   []terms.Stale // the sources that it needs and that are too old
	refusal error         // why its grant does not allow it now; nil: it does
	retryAt time.Time     // when its open slot is tried again; zero: it does not wait for that
}

// recentSlots is how many slots the details tell of.
const recentSlots = 20

// Kind implements lane.Kind.
func (s *Service) Kind() pawl.Kind { return pawl.KindSchedule }

// List implements lane.Kind.
func (s *Service) List(ctx context.Context, q lane.Query) (page []lane.Lane, next lane.Place, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		page, next = nil, lane.Place{}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		f := q.Stored(there)
		f.Owner = q.Owner
		list, err := schedulestore.In(tx).FindSchedules(ctx, f, q.After.Name, q.After.Key, q.Limit+1)
		if err != nil {
			return err
		}
		if len(list) > q.Limit {
			list = list[:q.Limit]
			next = refOf(list[q.Limit-1].ID, list[q.Limit-1].Name).Place()
		}
		page = make([]lane.Lane, len(list))
		err = tx.Each(ctx, len(list), func(ctx context.Context, tx *store.Tx, i int) error {
			d, err := s.details(ctx, tx, list[i], 1, there)
			page[i] = d.Lane
			return err
		})
		page = q.Fitting(page)
		return err
	})
	return page, next, err
}

// Names implements lane.Kind.
func (s *Service) Names(ctx context.Context, tx *store.Tx, owner string, limit int) (names []string, err error) {
	list, err := schedulestore.In(tx).ListSchedules(ctx, owner, "", limit)
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, err
}

// Describe reads everything about a schedule of its owner.
func (s *Service) Describe(ctx context.Context, ownerID, id string) (d Details, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		sch, err := s.Owned(ctx, tx, ownerID, id)
		if err != nil {
			return err
		}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		d, err = s.details(ctx, tx, sch, recentSlots, there)
		return err
	})
	return d, err
}

func (s *Service) details(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, recent int, there run.Workforce) (Details, error) {
	d := Details{Row: sch, there: there}
	var err error
	if d.times, err = s.knownTimes(ctx, tx, sch); err != nil {
		return d, err
	}
	if d.Open, err = schedulestore.In(tx).OpenSlots(ctx, sch.ID, 20); err != nil {
		return d, err
	}
	closed, err := schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{ScheduleID: sch.ID}, time.Time{}, "", recent+len(d.Open)+1)
	if err != nil {
		return d, err
	}
	for _, slot := range closed {
		if run.SlotStatus(slot.Status) != run.SlotPending && len(d.Recent) < recent {
			d.Recent = append(d.Recent, slot)
		}
	}
	d.Newest, err = runstore.In(tx).NewestRun(ctx, pawl.KindSchedule, sch.ID)
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotRunning && d.Newest.Status != pawl.StatusPausedApproval {
			d.Newest, err = newestOf(ctx, tx, slot)
		}
	}
	if err := pawl.IgnoreNotFound(err); err != nil {
		return d, err
	}
	if d.Newest.Status == pawl.StatusPausedTransient {
		retry, err := runstore.In(tx).GetRetry(ctx, pawl.KindSchedule, d.Newest.Lane)
		if err := pawl.IgnoreNotFound(err); err != nil {
			return d, err
		}
		d.retryAt = retry.NextAt
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
	if err := pawl.IgnoreNotFound(err); err != nil {
		return d, err
	}
	d.known, d.health = known, known.Attention
	if d.refusal = s.refusalOf(ctx, tx, sch); d.refusal != nil {
		if _, refused := grant.RefusalCode(d.refusal); !refused {
			return d, d.refusal
		}
	}
	if d.stale, err = s.cfg.Needs.Stale(ctx, tx, RulesOf(sch).Needs); err != nil {
		return d, err
	}
	d.Lane = d.lane(tx.Now)
	return d, nil
}

// refusalOf is why the grant of a schedule does not allow it to run now, or what
// kept it from being looked up.
func (s *Service) refusalOf(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) error {
	if sch.GrantID == "" {
		return nil
	}
	_, err := grant.Authorize(ctx, tx, sch.GrantID, sch.GraphID)
	return err
}

func (d Details) lane(now time.Time) lane.Lane {
	sch := d.Row
	l := lane.Lane{Ref: refOf(sch.ID, sch.Name), ID: sch.ID, Schedule: d.timesInWords(), NextAt: d.nextAt(now), Paused: !sch.Enabled, Pause: d.known.Pause, Labels: sch.Labels}
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotPending && !startOf(d.times, slot).After(now) {
			l.Pending++
		}
	}
	l.State, l.Issue, l.Sentence = d.status(now)
	l.Expecting(d.known)
	switch l.State, l.Issue = d.there.Over(l.State, l.Issue); l.Issue {
	case run.IssueNoWorker:
		l.Sentence = d.there.Sentence()
	case run.IssueHalted:
		l.Sentence = d.there.Halt.Sentence()
	default:
	}
	l.Do = d.remedy(l.Issue)
	l.LastAt, l.LastText = d.lastActivity()
	return l
}

func (d Details) nextAt(now time.Time) time.Time {
	for _, slot := range d.Open {
		if start := startOf(d.times, slot); run.SlotStatus(slot.Status) == run.SlotPending && start.After(now) {
			if slot.ScheduledFor.After(now) {
				return slot.ScheduledFor
			}
			return start // only its jitter keeps it
		}
	}
	if d.Row.Enabled && d.Row.NextRunAt.After(now) {
		return d.Row.NextRunAt
	}
	return time.Time{}
}

// status is the state, the issue and its sentence. What is wrong is what
// the row of the lane keeps: a slot that was passed over mends nothing.
func (d Details) status(now time.Time) (run.State, run.Issue, string) {
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotRunning {
			return d.runningWords(slot, now)
		}
	}
	state, issue, text := restOf(d.Row, d.health, d.known.Pause)
	if _, waits := d.waiting(); waits && state == run.Idle {
		return run.Running, run.IssueWaitingFresh, d.waitingWords(now)
	}
	return state, issue, text
}

// restOf is status while no slot has begun.
func restOf(sch schedulestore.Schedule, health runstore.Attention, pause runstore.Pause) (run.State, run.Issue, string) {
	issue := run.Issue(health.Issue)
	switch {
	case !sch.Enabled:
		return pausedStatus(sch, pause)
	case !sch.CappedUntil.IsZero():
		return run.NeedsAttention, run.IssuePrecondition, sch.Issue
	case issue != run.IssueNone:
		return run.NeedsAttention, issue, health.Text
	}
	return run.Idle, run.IssueNone, ""
}

func (d Details) runningWords(slot schedulestore.Slot, now time.Time) (run.State, run.Issue, string) {
	switch {
	case d.Newest.Status == pawl.StatusPausedApproval:
		return run.NeedsAttention, run.IssueApproval, "The graph asks a question; answer it with: pawl approve " + d.Newest.ID
	case d.Newest.Status == pawl.StatusPausedTransient && d.Newest.ErrorCode != notAnswered:
		return run.Running, run.IssueBackingOff, fmt.Sprintf("Attempt %d of the slot %s failed and is tried again%s: %s", slot.Attempts, pawl.FormatTime(slot.ScheduledFor), d.retryWords(now), d.Newest.ErrorMessage)
	}
	return run.Running, run.IssueNone, ""
}

// retryWords tell when the open slot is tried again, if it is not now.
func (d Details) retryWords(now time.Time) string {
	if !d.retryAt.After(now) {
		return ""
	}
	return " at " + pawl.FormatTime(d.retryAt)
}

// remedy is the command that ends what the schedule stands in.
func (d Details) remedy(issue run.Issue) string {
	name := d.Row.Name
	switch issue {
	case run.IssueNone:
		for _, slot := range d.Open {
			if run.SlotStatus(slot.Status) == run.SlotRunning && d.Newest.ID != "" {
				return run.Command("cancel", d.Newest.ID)
			}
		}
		return ""
	case run.IssueNoWorker:
		return run.StartWorker
	case run.IssueHalted:
		return run.Unhalt
	case run.IssueApproval:
		return run.Command("approve", d.Newest.ID)
	case run.IssueBackingOff:
		return run.Command("cancel", d.Newest.ID)
	case run.IssuePermission:
		return run.Command("grant", "create", "--graph", d.Row.GraphID) // its id goes into the definition
	case run.IssueExpectation:
		return lane.ExpectationRemedy(pawl.KindSchedule, name)
	case run.IssueWaitingFresh:
		return run.Command("why", "source", d.staleSource().Source)
	case run.IssueStale:
		return lane.StaleRemedy(d.staleSource())
	case run.IssueFailed:
		return run.Command("run", "schedule", name) // one that succeeds
	case run.IssueOutcomeUnknown:
		return run.Command("get", "slots", name) // its text has both ways
	case run.IssuePrecondition:
		if d.Row.Enabled { // its budget is used up
			return run.Command("describe", "grant", d.Row.GrantID)
		}
	default:
	}
	return run.Command("resume", "schedule", name)
}

func (d Details) lastActivity() (time.Time, string) {
	if len(d.Recent) == 0 {
		return d.Row.UpdatedAt, "Defined"
	}
	slot := d.Recent[0]
	at := pawl.FormatTime(slot.ScheduledFor)
	switch {
	case run.SlotStatus(slot.Status) == run.SlotRunning:
		return slot.StartedAt, "Running the slot of " + at
	case run.SlotStatus(slot.Status) == run.SlotSuccess:
		return slot.CompletedAt, "Ran the slot of " + at
	case run.SlotStatus(slot.Status) == run.SlotError:
		return slot.CompletedAt, "Failed: " + slot.ErrorMessage
	}
	if slot.Count > 1 {
		return slot.CompletedAt, fmt.Sprintf("Skipped %d slots until %s (%s)", slot.Count, pawl.FormatTime(slot.Through), slot.Disposition)
	}
	return slot.CompletedAt, fmt.Sprintf("Skipped the slot of %s (%s)", at, slot.Disposition)
}

// SlotOf is a slot as programs see it.
func SlotOf(s schedulestore.Slot) client.Slot {
	out := client.Slot{
		ID: s.ID, ScheduleID: s.ScheduleID, RunID: client.NullString(s.RunID), ScheduledFor: client.At(s.ScheduledFor),
		StartedAt: client.At(s.StartedAt), CompletedAt: client.At(s.CompletedAt), Status: s.Status, Unknown: s.Doubt,
		Disposition: client.NullString(s.Disposition), AttemptCount: s.Attempts, TraceID: client.NullString(s.TraceID), CostUSD: pawl.USD(s.Cost), Trigger: s.Trigger,
		BackfillID: client.NullString(s.BackfillID), Revision: s.Revision, CoalescedInto: client.At(s.Into), Through: client.At(s.Through), Count: s.Count, WaitsSince: client.At(s.WaitsSince),
	}
	if s.ErrorCode != "" {
		out.Error = &client.SlotError{Code: s.ErrorCode, Message: s.ErrorMessage}
	} else {
		out.Note = client.NullString(s.ErrorMessage)
	}
	return out
}

// named finds a schedule that somebody may see by its id, or one of their own by
// its name.
func (s *Service) named(ctx context.Context, tx *store.Tx, v lane.Viewer, name string) (schedulestore.Schedule, error) {
	if uuid.Validate(name) == nil {
		sch, err := s.Owned(ctx, tx, v.Owner, name)
		if !errors.Is(err, pawl.ErrNotFound) {
			return sch, err
		}
	}
	return schedulestore.In(tx).ScheduleByName(ctx, v.UserID, name)
}

// LaneOf implements lane.Kind. A run has the name that the schedule had then.
func (s *Service) LaneOf(r *runstore.Run) lane.Ref { return refOf(scheduleOfLane(r.Lane), r.Handler) }

// Find implements lane.Kind.
func (s *Service) Find(ctx context.Context, tx *store.Tx, v lane.Viewer, name string) (runstore.RunFilter, bool, error) {
	sch, err := s.named(ctx, tx, v, name)
	return runstore.RunFilter{Kind: pawl.KindSchedule, Schedule: sch.ID}, err == nil, pawl.IgnoreNotFound(err)
}

// OwnerOf implements lane.Kind.
func (s *Service) OwnerOf(ctx context.Context, tx *store.Tx, id string) (string, error) {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, id)
	return sch.OwnerUserID, err
}

// Due implements lane.Kind: the schedules that are due first.
func (s *Service) Due(ctx context.Context, owner string, before time.Time, limit int) (list []lane.Due, more bool, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := schedulestore.In(tx).DueSchedules(ctx, owner, before, limit+1)
		if more = len(found) > limit; more {
			found = found[:limit]
		}
		list = nil
		parse := lane.Schedules{}
		for _, sch := range found {
			schedule, err := s.comingTimes(ctx, tx, sch, parse)
			if err != nil {
				return err
			}
			if schedule.Kind() != "" { // its zone may have been lost
				list = append(list, lane.Due{Ref: refOf(sch.ID, sch.Name), Schedule: schedule})
			}
		}
		return err
	})
	return list, more, err
}

// Repeats implements lane.Kind.
func (s *Service) Repeats(ctx context.Context, tx *store.Tx, l *lane.Lane) ([]lane.Due, error) {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, l.ID)
	if err != nil || !sch.Enabled {
		return nil, err
	}
	schedule, err := s.comingTimes(ctx, tx, sch, lane.Schedules{})
	if err != nil || schedule.Kind() == "" { // its zone may have been lost
		return nil, err
	}
	return []lane.Due{{Ref: l.Ref, Schedule: schedule, Next: l.NextAt}}, nil
}

func (d Details) gates(now time.Time) []lane.Gate {
	enabled := lane.Gate{Name: "enabled", Open: d.Row.Enabled, Text: "It is enabled."}
	if !enabled.Open {
		enabled.Text, enabled.Until = "It is disabled.", d.known.Pause.Until
		if why := switchedOff(d.Row); why != "" {
			enabled.Text = "It was disabled: " + why
		} else if !d.known.Pause.At.IsZero() {
			enabled.Text = lane.PausedWords(d.known.Pause)
		}
	}
	due := lane.Gate{Name: "due", Text: "No slot is due."}
	idle := lane.Gate{Name: "idle", Open: true, Text: "No slot runs."}
	for _, slot := range d.Open {
		switch {
		case run.SlotStatus(slot.Status) == run.SlotRunning:
			idle = lane.Gate{Name: "idle", Open: false, Text: "The slot of " + pawl.FormatTime(slot.ScheduledFor) + " runs since " + pawl.FormatTime(slot.StartedAt) + "."}
		case startOf(d.times, slot).After(now) && !slot.ScheduledFor.After(now):
			due.Text = "The slot of " + pawl.FormatTime(slot.ScheduledFor) + " starts at " + pawl.FormatTime(startOf(d.times, slot)) + ", by its jitter."
		case !slot.ScheduledFor.After(now):
			due = lane.Gate{Name: "due", Open: true, Text: "The slot of " + pawl.FormatTime(slot.ScheduledFor) + " waits."}
		case !due.Open:
			due.Text = "The next slot is that of " + pawl.FormatTime(slot.ScheduledFor) + "." + d.leftOutWords(now)
			if start := startOf(d.times, slot); start.After(slot.ScheduledFor) {
				due.Text += " It starts at " + pawl.FormatTime(start) + ", by its jitter."
			}
		}
	}
	granted := lane.Gate{Name: "grant", Open: d.refusal == nil, Text: "The grant allows it."}
	if d.Row.GrantID == "" {
		granted.Text = "It needs no grant."
	}
	if d.refusal != nil {
		granted.Text = refusalWords(d.refusal)
	}
	gates := []lane.Gate{enabled, idle, due, granted, cappedGate(d.Row, now)}
	if needs := RulesOf(d.Row).Needs; len(needs) > 0 {
		gates = append(gates, lane.FreshGate(needs, d.stale, now))
	}
	return append(gates, lane.Gate{Name: "worker", Open: !d.there.Missing, Text: d.there.Sentence()}, lane.HaltGate(d.there))
}

// leftOutWords tell of the time before the next one, if that is left out.
func (d Details) leftOutWords(now time.Time) string {
	if d.times.Kind() == "" || d.times.Floats() {
		return ""
	}
	if at, why, out := d.times.LeftOut(now); out {
		return " " + pawl.FormatTime(at) + " is left out: " + why + "."
	}
	return ""
}

// refusalWords is a refusal of a grant as a sentence.
func refusalWords(err error) string {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || e.Msg == "" {
		return "The grant does not allow it."
	}
	return strings.ToUpper(e.Msg[:1]) + e.Msg[1:] + "."
}

func (d Details) nextWords(now time.Time) string {
	runs := slices.ContainsFunc(d.Open, func(s schedulestore.Slot) bool { return run.SlotStatus(s.Status) == run.SlotRunning })
	switch next := d.nextAt(now); {
	case !d.Row.Enabled && runs:
		return "The active run finishes; then it does nothing until it is enabled."
	case !d.Row.Enabled && !d.known.Pause.Until.IsZero() && switchedOff(d.Row) == "":
		return lane.PausedNext(d.known.Pause)
	case !d.Row.Enabled:
		return "It does nothing until it is enabled."
	case d.there.Missing:
		return "It does nothing until a worker is running."
	case d.there.Halt != nil && !runs:
		return d.there.Halt.NextWords()
	case d.Row.CappedUntil.After(now) && !runs:
		return d.cappedNext()
	case d.Issue == run.IssueWaitingFresh:
		return d.waitingWords(now)
	case d.Issue == run.IssueBackingOff:
		return "The open slot is tried again" + cmp.Or(d.retryWords(now), " now") + "."
	case next.IsZero() && runs:
		return "It continues when the open slot has ended."
	case next.IsZero() && d.Pending > 0:
		return "It is due now."
	case next.IsZero() && spent(d.Row):
		return fmt.Sprintf("No further slot is planned: it has begun %d slots, as many as maxRuns allows.", d.Row.Begun)
	case next.IsZero():
		return "No further slot is planned" + d.endWords(now) + "."
	case d.refusal != nil:
		return "The slot of " + pawl.FormatTime(next) + " comes up " + strings.TrimPrefix(when.Until(now, next), "Next ") + " and will be skipped: " + strings.TrimSuffix(lowered(refusalWords(d.refusal)), ".") + "."
	default:
		return when.Until(now, next) + ", at " + pawl.FormatTime(next) + "."
	}
}

func lowered(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// PolicyOf is the policy of a schedule as the contract names it.
func PolicyOf(sch schedulestore.Schedule) pawl.ConcurrencyPolicy {
	return pawl.ConcurrencyPolicy(sch.Policy)
}
