package schedule

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// noteSlot notes what a closed slot means for people.
func (s *Service) noteSlot(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot) error {
	if slot.Doubt {
		return s.noteIssue(ctx, tx, sch, run.IssueOutcomeUnknown, pawl.FormatTime(slot.ScheduledFor), slot.RunID, doubt(sch, slot))
	}
	issue, text := slotIssue(slot)
	if issue == run.IssuePrecondition && !sch.CappedUntil.IsZero() {
		return s.noteIssue(ctx, tx, sch, issue, causeCapped, slot.RunID, sch.Issue)
	}
	if issue == run.IssueNone && slot.Disposition != string(run.DispositionFired) {
		return nil // passed over; it says nothing about the schedule's health
	}
	return s.noteIssue(ctx, tx, sch, issue, slot.ErrorCode, slot.RunID, text)
}

// noteIssue notes what a schedule needs a person for, nothing if the issue is
// none. Failures of one kind in a row are one cause.
func (s *Service) noteIssue(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, issue run.Issue, cause, runID, text string) error {
	// As it mostly is. Of slots beside each other one may have waited for the
	// schedule's row while another one wrote that of the lane.
	if issue == run.IssueNone && sch.Calm && sch.Enabled && !mayOverlap(sch) {
		return nil
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
	if err != nil {
		return pawl.IgnoreNotFound(err) // it is deleted, and what it began comes to its end
	}
	health := runstore.Attention{}
	if issue != run.IssueNone {
		health = runstore.Attention{Cause: string(issue) + ":" + cause, Issue: string(issue), Text: text}
	}
	return s.settleAs(ctx, tx, known, health, runID)
}

// settleLane writes how a schedule stands, in the transaction that changed it.
func (s *Service) settleLane(ctx context.Context, tx *store.Tx, id string) error {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, id)
	if err != nil {
		return pawl.IgnoreNotFound(err)
	}
	return s.settleAs(ctx, tx, known, known.Attention, "")
}

// settleAs is settleLane with what its slots say about it. A slot that waits for
// a person or for its next attempt has no active run that would tell of it.
func (s *Service) settleAs(ctx context.Context, tx *store.Tx, known runstore.Lane, health runstore.Attention, runID string) error {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, known.ID)
	if err != nil {
		return err
	}
	asks, tries, err := waitingSlots(ctx, tx, sch.ID)
	if err != nil {
		return err
	}
	if health.Issue == string(run.IssueNone) || health.Issue == string(run.IssueOutcomeUnknown) { // that another slot ended well answers nothing
		words := health.Text
		if health, err = attentionOf(ctx, tx, sch); err != nil {
			return err
		}
		if health.Cause == "" {
			health.Text = words // what people are told instead of that it works again
		}
	}
	if asks && known.Issue == string(run.IssueApproval) { // that another slot ended well does not answer it
		health = known.Attention
	}
	told := health
	if health.Issue == string(run.IssueApproval) { // which says something only while it waits
		health = runstore.Attention{}
	}
	state, _, _ := restOf(sch, health, known.Pause)
	waits, err := waitingFresh(ctx, tx, sch)
	if err != nil {
		return err
	}
	switch {
	case asks:
		state = run.NeedsAttention
	case tries, waits && state == run.Idle:
		state = run.Running
	}
	_, err = s.cfg.Settle(ctx, tx, refOf(sch.ID, sch.Name), known, lane.Rest{State: state, Attention: &told, Run: runID})
	return err
}

// waitingSlots reports whether a slot that has begun asks a person, and whether
// one waits for its next attempt.
func waitingSlots(ctx context.Context, tx *store.Tx, scheduleID string) (asks, tries bool, err error) {
	running, err := schedulestore.In(tx).RunningSlots(ctx, scheduleID, mostRunning)
	if err != nil {
		return false, false, err
	}
	for _, slot := range running {
		newest, err := newestOf(ctx, tx, slot)
		if err != nil {
			return false, false, err
		}
		asks = asks || newest.Status == pawl.StatusPausedApproval
		tries = tries || newest.Status == pawl.StatusPausedTransient || newest.Status == pawl.StatusCrashed
	}
	return asks, tries, nil
}

// slotIssue is what a closed slot says about its schedule.
func slotIssue(slot schedulestore.Slot) (run.Issue, string) {
	switch {
	case slot.Status == string(run.SlotError) && slot.ErrorCode == string(contract.Aborted):
		return run.IssueNone, ""
	case slot.Status == string(run.SlotError):
		return run.IssueFailed, "The run of " + pawl.FormatTime(slot.ScheduledFor) + " failed (" + slot.ErrorCode + "): " + slot.ErrorMessage
	case slot.Disposition == string(run.DispositionSkippedGrant):
		return run.IssuePermission, "The grant does not allow it: " + slot.ErrorMessage
	case slot.Disposition == string(run.DispositionSkippedBudget):
		return run.IssuePrecondition, "Its budget is used up: " + slot.ErrorMessage
	case slot.Disposition == string(run.DispositionSkippedStale):
		return run.IssueStale, "The slot of " + pawl.FormatTime(slot.ScheduledFor) + " did not run: " + slot.ErrorMessage
	}
	return run.IssueNone, ""
}
