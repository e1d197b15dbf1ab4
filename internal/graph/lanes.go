package graph

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/graph/contract"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// Lane is a schedule as people see it.
type Lane struct {
	ID       string
	Name     string
	Word     run.Word
	Issue    run.Issue
	Sentence string
	Schedule string // in words
	NextAt   time.Time
	LastAt   time.Time
	LastText string
	Pending  int
	Paused   bool
	Labels   map[string]string
}

// Details are everything about one schedule.
type Details struct {
	Lane
	Row    store.Schedule
	Open   []store.Slot // the oldest first
	Recent []store.Slot // the latest first
	Newest store.Run    // zero if it never ran

	health store.Attention // what its slots say about it; zero: nothing is wrong
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
	d.Lane = d.lane(tx.Now)
	return d, nil
}

func (d Details) lane(now time.Time) Lane {
	sch := d.Row
	l := Lane{ID: sch.ID, Name: sch.Name, Schedule: Words(sch), NextAt: d.nextAt(now), Paused: !sch.Enabled, Labels: sch.Labels}
	for _, slot := range d.Open {
		if run.SlotStatus(slot.Status) == run.SlotPending && !slot.ScheduledFor.After(now) {
			l.Pending++
		}
	}
	l.Word, l.Issue, l.Sentence = d.words()
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
func (d Details) words() (run.Word, run.Issue, string) {
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

func (d Details) runningWords(slot store.Slot) (run.Word, run.Issue, string) {
	switch {
	case d.Newest.Status == pawl.StatusPausedApproval:
		return run.NeedsAttention, run.IssueApproval, "The graph asks something; answer it: pawl approve " + d.Newest.ID
	case d.Newest.Status == pawl.StatusPausedTransient && d.Newest.ErrorCode != notAnswered:
		return run.Running, run.IssueBackingOff, fmt.Sprintf("Attempt %d of the slot %s failed and is tried again: %s", slot.Attempts, pawl.FormatTime(slot.ScheduledFor), d.Newest.ErrorMessage)
	}
	return run.Running, run.IssueNone, ""
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
		y.Runs, _, err = tx.ListRuns(ctx, store.RunFilter{Schedule: id}, store.RunCursor{}, recentSlots)
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
	granted := Gate{"grant", d.Issue != run.IssuePermission, "The grant allowed the last slot."}
	if !granted.Open {
		granted.Text = d.Sentence
	}
	return []Gate{enabled, idle, due, granted}
}

func (d Details) nextWords(now time.Time) string {
	switch next := d.nextAt(now); {
	case !d.Row.Enabled:
		return "It does nothing until it is switched on."
	case next.IsZero():
		return "It goes on when the slot that is open has ended."
	default:
		return when.Until(now, next) + ", at " + pawl.FormatTime(next) + "."
	}
}

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
func PolicyOf(sch store.Schedule) contract.ConcurrencyPolicy {
	return contract.ConcurrencyPolicy(sch.Policy)
}
