package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// Lane is a schedule as people see it.
type Lane struct {
	ID       string
	Name     string
	State    run.State
	Issue    run.Issue
	Sentence string
	Schedule string // in words
	NextAt   time.Time
	LastAt   time.Time
	LastText string
	Pending  int
	Paused   bool
	Labels   map[string]string
	Do       string // the command that ends what the word and the issue tell; empty while it is idle
}

// Details are everything about one schedule.
type Details struct {
	Lane
	Row    store.Schedule
	Open   []store.Slot // the oldest first
	Recent []store.Slot // the latest first
	Newest store.Run    // zero if it never ran

	health  store.Attention // what its slots say about it; zero: nothing is wrong
	there   run.Workforce
	refusal error // why its grant does not allow it now; nil: it does
}

// recentSlots is how many slots the details tell of.
const recentSlots = 20

// Lanes reads up to limit schedules, those after the given one, and that with
// which to go on, empty at the end. An empty owner is everybody's.
func (s *Service) Lanes(ctx context.Context, ownerID, after string, limit int) (page []Details, next string, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		page, next = nil, ""
		list, err := tx.ListSchedules(ctx, ownerID, after, limit+1)
		if err != nil {
			return err
		}
		if len(list) > limit {
			list = list[:limit]
			if next = list[limit-1].ID; ownerID != "" {
				next = list[limit-1].Name
			}
		}
		for _, sch := range list {
			d, err := s.details(ctx, tx, sch, 1)
			if err != nil {
				return err
			}
			page = append(page, d)
		}
		return nil
	})
	return page, next, err
}

// Describe reads everything about a schedule of its owner.
func (s *Service) Describe(ctx context.Context, ownerID, id string) (d Details, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		sch, err := s.Owned(ctx, tx, ownerID, id)
		if err != nil {
			return err
		}
		d, err = s.details(ctx, tx, sch, recentSlots)
		return err
	})
	return d, err
}

func (s *Service) details(ctx context.Context, tx *store.Tx, sch store.Schedule, recent int) (Details, error) {
	d := Details{Row: sch}
	var err error
	if d.Open, err = tx.OpenSlots(ctx, sch.ID, 20); err != nil {
		return d, err
	}
	closed, err := tx.ListSlots(ctx, store.SlotFilter{ScheduleID: sch.ID}, time.Time{}, "", recent+len(d.Open)+1)
	if err != nil {
		return d, err
	}
	for _, slot := range closed {
		if run.SlotStatus(slot.Status) != run.SlotPending && len(d.Recent) < recent {
			d.Recent = append(d.Recent, slot)
		}
	}
	d.Newest, err = tx.NewestRun(ctx, pawl.KindSchedule, sch.ID)
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotRunning {
			d.Newest, err = newestOf(ctx, tx, slot)
		}
	}
	if err := unlessGone(err); err != nil {
		return d, err
	}
	d.health, err = tx.GetAttention(ctx, pawl.KindSchedule, sch.ID)
	if err := unlessGone(err); err != nil {
		return d, err
	}
	if d.refusal = s.refusalOf(ctx, tx, sch); d.refusal != nil {
		if _, refused := grant.RefusalCode(d.refusal); !refused {
			return d, d.refusal
		}
	}
	if d.there, err = s.cfg.Workforce(ctx, tx); err != nil {
		return d, err
	}
	d.Lane = d.lane(tx.Now)
	return d, nil
}

// refusalOf is why the grant of a schedule does not allow it to run now, or what
// kept it from being looked up.
func (s *Service) refusalOf(ctx context.Context, tx *store.Tx, sch store.Schedule) error {
	if sch.GrantID == "" {
		return nil
	}
	_, err := grant.Authorize(ctx, tx, sch.GrantID, sch.GraphID)
	return err
}

func (d Details) lane(now time.Time) Lane {
	sch := d.Row
	l := Lane{ID: sch.ID, Name: sch.Name, Schedule: Words(sch), NextAt: d.nextAt(now), Paused: !sch.Enabled, Labels: sch.Labels}
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotPending && !slot.ScheduledFor.After(now) {
			l.Pending++
		}
	}
	l.State, l.Issue, l.Sentence = d.words()
	if l.State, l.Issue = d.there.Over(l.State, l.Issue); l.Issue == run.IssueNoWorker {
		l.Sentence = d.there.Sentence()
	}
	l.Do = d.remedy(l.Issue)
	l.LastAt, l.LastText = d.lastActivity()
	return l
}

func (d Details) nextAt(now time.Time) time.Time {
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotPending && slot.ScheduledFor.After(now) {
			return slot.ScheduledFor
		}
	}
	if d.Row.Enabled && d.Row.NextRunAt.After(now) {
		return d.Row.NextRunAt
	}
	return time.Time{}
}

// words are the word, the issue and its sentence. What is wrong is what
// attend noted: a slot that was passed over mends nothing.
func (d Details) words() (run.State, run.Issue, string) {
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotRunning {
			return d.runningWords(slot)
		}
	}
	issue := run.Issue(d.health.Issue)
	switch {
	case !d.Row.Enabled && d.Row.Issue != "":
		return run.NeedsAttention, run.IssuePrecondition, "It was switched off: " + d.Row.Issue + " Switch it on again to go on."
	case !d.Row.Enabled:
		return run.Stopped, run.IssuePaused, "It is switched off; resume it to go on."
	case issue != run.IssueNone:
		return run.NeedsAttention, issue, d.health.Text
	}
	return run.Idle, run.IssueNone, ""
}

func (d Details) runningWords(slot store.Slot) (run.State, run.Issue, string) {
	switch {
	case d.Newest.Status == pawl.StatusPausedApproval:
		return run.NeedsAttention, run.IssueApproval, "The graph asks something; answer it: pawl approve " + d.Newest.ID
	case d.Newest.Status == pawl.StatusPausedTransient && d.Newest.ErrorCode != notAnswered:
		return run.Running, run.IssueBackingOff, fmt.Sprintf("Attempt %d of the slot %s failed and is tried again: %s", slot.Attempts, pawl.FormatTime(slot.ScheduledFor), d.Newest.ErrorMessage)
	}
	return run.Running, run.IssueNone, ""
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
	case run.IssueApproval:
		return run.Command("approve", d.Newest.ID)
	case run.IssueBackingOff:
		return run.Command("cancel", d.Newest.ID)
	case run.IssuePermission:
		return run.Command("grant", "create", "--graph", d.Row.GraphID) // its id goes into the definition
	case run.IssueFailed:
		return run.Command("run", "schedule", name) // one that succeeds
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
	return slot.CompletedAt, fmt.Sprintf("Passed over the slot of %s (%s)", at, slot.Disposition)
}

// Gate is one condition of running, and whether it is met.
type Gate struct {
	Name string
	Open bool
	Text string
}

// Why tells what a schedule does next and why, and why it did not do more.
type Why struct {
	Details
	At    time.Time
	Next  string
	Gates []Gate
	Slot  *store.Slot // the one that was asked for
	Runs  []store.Run // its last ones, the newest first
}

// Why reads why a schedule runs, does not run, or waits. With an instant it
// tells what became of the slot of that time, or of the one before it.
func (s *Service) Why(ctx context.Context, ownerID, id string, at time.Time) (y Why, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		sch, err := s.Owned(ctx, tx, ownerID, id)
		if err != nil {
			return err
		}
		y = Why{At: tx.Now}
		if y.Details, err = s.details(ctx, tx, sch, recentSlots); err != nil {
			return err
		}
		if !at.IsZero() {
			y.At = at
			around, err := tx.ListSlots(ctx, store.SlotFilter{ScheduleID: id}, at.Add(time.Millisecond), "", 1)
			if err != nil {
				return err
			}
			if len(around) > 0 {
				y.Slot = &around[0]
			}
		}
		y.Gates = y.gates(tx.Now)
		y.Next = y.nextWords(tx.Now)
		y.Runs, _, err = tx.ListRuns(ctx, store.RunFilter{Schedule: id}, store.Place{}, recentSlots)
		return err
	})
	return y, err
}

func (d Details) gates(now time.Time) []Gate {
	enabled := Gate{"enabled", d.Row.Enabled, "It is switched on."}
	if !enabled.Open {
		enabled.Text = "It is switched off."
		if d.Row.Issue != "" {
			enabled.Text = "It was switched off: " + d.Row.Issue
		}
	}
	due := Gate{Name: "due", Text: "No slot is due."}
	idle := Gate{"idle", true, "No slot runs."}
	for _, slot := range d.Open {
		switch {
		case run.SlotStatus(slot.Status) == run.SlotRunning:
			idle = Gate{"idle", false, "The slot of " + pawl.FormatTime(slot.ScheduledFor) + " runs since " + pawl.FormatTime(slot.StartedAt) + "."}
		case !slot.ScheduledFor.After(now):
			due = Gate{"due", true, "The slot of " + pawl.FormatTime(slot.ScheduledFor) + " waits."}
		case !due.Open:
			due.Text = "The next slot is that of " + pawl.FormatTime(slot.ScheduledFor) + "."
		}
	}
	granted := Gate{"grant", d.refusal == nil, "The grant allows it."}
	if d.refusal != nil {
		granted.Text = refusalWords(d.refusal)
	}
	return []Gate{enabled, idle, due, granted, {"worker", !d.there.Missing, d.there.Sentence()}}
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
	runs := slices.ContainsFunc(d.Open, func(s store.Slot) bool { return run.SlotStatus(s.Status) == run.SlotRunning })
	switch next := d.nextAt(now); {
	case !d.Row.Enabled && runs:
		return "What runs goes on to its end; then it does nothing until it is switched on."
	case !d.Row.Enabled:
		return "It does nothing until it is switched on."
	case d.there.Missing:
		return "It does nothing until a worker is there."
	case next.IsZero() && runs:
		return "It goes on when the slot that is open has ended."
	case next.IsZero() && d.Pending > 0:
		return "It is due now."
	case next.IsZero():
		return "No further slot is planned."
	case d.refusal != nil:
		return "The slot of " + pawl.FormatTime(next) + " comes up " + strings.TrimPrefix(when.Until(now, next), "Next ") + " and will be passed over: " + strings.TrimSuffix(lowered(refusalWords(d.refusal)), ".") + "."
	default:
		return when.Until(now, next) + ", at " + pawl.FormatTime(next) + "."
	}
}

func lowered(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// Next lists the next instants of a schedule, with clock changes marked.
func Next(sch store.Schedule, after time.Time, count int) ([]when.Instant, error) {
	schedule, err := scheduleOf(sch.Cron, sch.Timezone)
	if err != nil {
		return nil, err
	}
	return schedule.Preview(after, count), nil
}

// Words are when a schedule is due, in words.
func Words(sch store.Schedule) string {
	schedule, err := scheduleOf(sch.Cron, sch.Timezone)
	if err != nil { // its zone may have been lost since it was checked
		return sch.Cron
	}
	return schedule.Describe()
}

// ScheduleOfRun is the id of the schedule that a run belongs to.
func ScheduleOfRun(r *store.Run) string { return scheduleOfLane(r.Lane) }

// PolicyOf is the policy of a schedule as the contract names it.
func PolicyOf(sch store.Schedule) pawl.ConcurrencyPolicy {
	return pawl.ConcurrencyPolicy(sch.Policy)
}
