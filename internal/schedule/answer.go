package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// answered goes on with a run that asked a person, once there is an answer.
func (a *attempt) answered(ctx context.Context, tx *store.Tx) (step, error) {
	q, err := tx.GetQuestion(ctx, a.run.ID)
	if err != nil || q.Answer == nil {
		return step{}, unlessGone(err)
	}
	if a.run, err = a.ledger.Resume(ctx, tx, a.claim.Fence(), a.run); err != nil {
		return step{}, err
	}
	a.question, a.resume = q.ID, q.Answer
	return step{execute: true}, nil
}

// Approve answers what a run of a schedule asks, in the caller's transaction,
// and lets it go on. An absent answer is true.
func (s *Service) Approve(ctx context.Context, tx *store.Tx, r store.Run, answer json.RawMessage, by string) error {
	sch, slot, err := s.waiting(ctx, tx, r, "approve run")
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		answer = json.RawMessage("true")
	}
	if !json.Valid(answer) {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "approve run", Msg: "the answer is not JSON", Fields: []pawl.Field{{Pointer: "/answer", Message: "must be JSON"}}}
	}
	open, err := tx.AnswerQuestion(ctx, r.ID, answer, by)
	if err != nil {
		return err
	}
	if !open {
		return refuse("approve run", "not_waiting", "the run was answered already", "")
	}
	if err := tx.Audit(ctx, by, "run.approve", "run:"+r.ID, map[string]string{"schedule": sch.Name}); err != nil {
		return err
	}
	return s.arm(ctx, tx, sch, slot.ScheduledFor, tx.Now)
}

// Seen refuses a decision that is made about another question than the one that
// the run asks now, in the caller's transaction: asked is when the one was asked
// that was shown. A graph can ask several in a row.
func (s *Service) Seen(ctx context.Context, tx *store.Tx, r store.Run, asked time.Time) error {
	same, err := tx.HoldQuestion(ctx, r.ID, asked)
	if err == nil && !same {
		return refuse("decide about run", "changed", "the question is another one than the one you saw", "Look at it again.")
	}
	return err
}

// Reject ends a run that asks a person for good, in the caller's transaction.
func (s *Service) Reject(ctx context.Context, tx *store.Tx, r store.Run, by string) error {
	sch, slot, err := s.waiting(ctx, tx, r, "reject run")
	if err != nil {
		return err
	}
	if _, err := s.ledger.Cancel(ctx, tx, r); err != nil {
		return err
	}
	if err := tx.Audit(ctx, by, "run.reject", "run:"+r.ID, map[string]string{"schedule": sch.Name}); err != nil {
		return err
	}
	key := pawl.SlotKey(sch.ID, slot.ScheduledFor)
	tx.AfterCommit(func() { go s.cancelElsewhere(context.WithoutCancel(ctx), key) })
	return s.close(ctx, tx, sch, slot, failed(contract.Aborted, "A person rejected it."))
}

// waiting finds the slot of a run that asks a person.
func (s *Service) waiting(ctx context.Context, tx *store.Tx, r store.Run, op string) (store.Schedule, store.Slot, error) {
	if r.Status != pawl.StatusPausedApproval {
		return store.Schedule{}, store.Slot{}, refuse(op, "not_waiting", "the run does not wait for an answer: it is "+string(r.Status), "")
	}
	return s.slotOf(ctx, tx, r)
}

// slotOf finds the slot of any attempt.
func (s *Service) slotOf(ctx context.Context, tx *store.Tx, r store.Run) (store.Schedule, store.Slot, error) {
	id := scheduleOfLane(r.Lane)
	sch, err := tx.GetSchedule(ctx, id)
	if err != nil {
		return store.Schedule{}, store.Slot{}, err
	}
	slot, err := tx.GetSlot(ctx, id, r.ScheduledFor)
	return sch, slot, err
}

// scheduleOfLane is the schedule that a lane belongs to.
func scheduleOfLane(lane string) string {
	for i := range lane {
		if lane[i] == ':' {
			return lane[:i]
		}
	}
	return lane
}

// CancelRun asks for the end of a run. One that is executed ends by itself when
// its executor has stopped it; one that waits for a person ends at once.
func (s *Service) CancelRun(ctx context.Context, tx *store.Tx, r store.Run, by string) error {
	if r.Status == pawl.StatusPausedApproval {
		return s.Reject(ctx, tx, r, by)
	}
	if r.Status != pawl.StatusActive && r.Status != pawl.StatusPausedTransient {
		return refuse("cancel run", "not_running", "the run is over: it is "+string(r.Status), "")
	}
	sch, slot, err := s.slotOf(ctx, tx, r)
	if err != nil {
		return err
	}
	if err := tx.Audit(ctx, by, "run.cancel", "run:"+r.ID, map[string]string{"schedule": sch.Name}); err != nil {
		return err
	}
	if r.Status == pawl.StatusPausedTransient && r.ErrorCode != notAnswered { // it waits for its next attempt, which it will not have
		if run.SlotStatus(slot.Status).Closed() {
			return refuse("cancel run", "not_running", "the slot of the run is closed already", "")
		}
		newest, err := newestOf(ctx, tx, slot)
		if err != nil {
			return err
		}
		if newest.ID != r.ID {
			return refuse("cancel run", "not_running", "a later attempt follows the run", "Cancel that one: "+newest.ID)
		}
		return s.close(ctx, tx, sch, slot, failed(contract.Aborted, "A person cancelled it."))
	}
	key := pawl.SlotKey(sch.ID, slot.ScheduledFor)
	tx.AfterCommit(func() { go s.cancelElsewhere(context.WithoutCancel(ctx), key) })
	return nil
}

func refuse(op, reason, msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeConflict, Reason: reason, Op: op, Msg: msg, Hint: hint}
}

// attention tells people, once for each cause, that a schedule needs them.
func (s *Service) attention(ctx context.Context, tx *store.Tx, sch store.Schedule, issue run.Issue, cause, runID, text string) error {
	known, err := tx.GetAttention(ctx, pawl.KindSchedule, sch.ID)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return err
	}
	what := "needs_attention"
	if issue == run.IssueNone {
		what, text, cause = "recovered", "It works again.", ""
	} else {
		cause = string(issue) + ":" + cause
	}
	same := known.Cause == cause
	if same && (cause == "" || known.Text == text) {
		return nil
	}
	next := store.Attention{Kind: pawl.KindSchedule, Lane: sch.ID, Cause: cause, Issue: string(issue), Text: text, Since: tx.Now}
	if same {
		next.Since = known.Since
	}
	if err := tx.SetAttention(ctx, next); err != nil || same {
		return err
	}
	return s.cfg.Notify(ctx, tx, Notice{Schedule: sch.Name, What: what, Issue: issue, Text: text, RunID: runID, At: tx.Now})
}

// attend tells people what a closed slot means for them. Failures of one kind
// in a row are told once.
func (s *Service) attend(ctx context.Context, tx *store.Tx, sch store.Schedule, slot store.Slot) error {
	issue, text := slotIssue(slot)
	if issue == run.IssueNone && slot.Disposition != string(run.DispositionFired) {
		return nil // passed over; it says nothing about the schedule's health
	}
	return s.attention(ctx, tx, sch, issue, slot.ErrorCode, slot.RunID, text)
}

// slotIssue is what a closed slot says about its schedule.
func slotIssue(slot store.Slot) (run.Issue, string) {
	switch {
	case slot.Status == string(run.SlotError) && slot.ErrorCode == string(contract.Aborted):
		return run.IssueNone, ""
	case slot.Status == string(run.SlotError):
		return run.IssueFailed, "The run of " + pawl.FormatTime(slot.ScheduledFor) + " failed (" + slot.ErrorCode + "): " + slot.ErrorMessage
	case slot.Disposition == string(run.DispositionSkippedGrant):
		return run.IssuePermission, "The grant does not allow it: " + slot.ErrorMessage
	case slot.Disposition == string(run.DispositionSkippedBudget):
		return run.IssuePrecondition, "Its budget is used up: " + slot.ErrorMessage
	}
	return run.IssueNone, ""
}
