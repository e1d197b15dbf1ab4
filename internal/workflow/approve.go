package workflow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// How long a person has to answer, and how long before the end somebody is
// reminded.
const (
	approvalTime = 7 * 24 * time.Hour
	approvalWarn = 24 * time.Hour
)

// approvalHash names what is approved: this script, this method at this
// address, these arguments. Anything else must be asked for again.
func approvalHash(version string, t tool.Target, address string, args json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(orNullJSON(args)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(value) // keys are sorted
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%q\n%s", version, t.Name, t.Method.Name, address, canonical))
	return hex.EncodeToString(sum[:]), nil
}

// approved reports whether a call may be made: a person approved exactly this
// one, or all calls of the method by this workflow.
func (x *execution) approved(ctx context.Context, t tool.Target, args json.RawMessage) (ok bool, err error) {
	hash, err := approvalHash(x.run.ScriptVersion, t, x.cfg.Tools.Address(t, args), args)
	if err != nil {
		return false, violation("tool", "tools.%s.%s: the arguments are not JSON", t.Name, t.Method.Name)
	}
	err = x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		rules, err := mutationstore.In(tx).ApprovalRules(ctx, x.id)
		if err != nil {
			return err
		}
		for _, r := range rules {
			if r.Tool == t.Name && r.Method == t.Method.Name {
				ok = true
				return nil
			}
		}
		a, err := mutationstore.In(tx).NewestApproval(ctx, x.run.ID)
		if errors.Is(err, pawl.ErrNotFound) {
			return nil
		}
		if err == nil && a.State == mutationstore.ApprovalApproved && a.Hash == hash {
			x.approval, ok = &a, true
		}
		return err
	})
	return ok, err
}

// useApproval spends the approval of the call, in the transaction that writes
// it down.
func (x *execution) useApproval(ctx context.Context, tx *store.Tx) error {
	if x.approval == nil {
		return nil
	}
	return mutationstore.In(tx).MoveApproval(ctx, x.approval.ID, mutationstore.ApprovalApproved, mutationstore.ApprovalUsed, "")
}

// sameInstant is the instant that mutate sees: for a run that asked a person,
// the one that it saw then, so that the same script makes the same call.
func (x *execution) sameInstant(now time.Time) time.Time {
	if a := x.view.asked; a != nil && a.RunID == x.run.ID {
		return a.PhaseAt
	}
	return now
}

// ask makes the run wait for a person: the question shows what will really be
// sent, and the script's title only beside it.
func (x *execution) ask(ctx context.Context, h *host) error {
	call := h.asked
	address := x.cfg.Tools.Address(call.target, call.args)
	hash, err := approvalHash(x.run.ScriptVersion, call.target, address, call.args)
	if err != nil {
		return x.stop(ctx, pawl.ClassLogic, "tool", "the arguments of the call are not JSON")
	}
	title := ""
	if x.prepared.UI != nil {
		title = x.prepared.UI.Title
	}
	if err := x.cfg.fault("before ask"); err != nil {
		return err
	}
	err = x.write(ctx, func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		_, err := mutationstore.In(tx).InsertApproval(ctx, mutationstore.Approval{
			WorkflowID: x.id, RunID: x.run.ID, Tool: call.target.Name, Method: call.target.Method.Name,
			Arguments: x.cfg.Tools.Redact(orNullJSON(call.args)), Address: address, Hash: hash, Title: title, PhaseAt: h.now, ExpiresAt: tx.Now.Add(approvalTime),
		})
		if err != nil {
			return runstore.Run{}, err
		}
		x.cfg.Emit(tx, lane.Change{Ref: refOf(x.view.workflow.Name), What: "asked", Run: r.ID})
		paused, err := x.ledger.Pause(ctx, tx, r)
		if err != nil {
			return runstore.Run{}, err
		}
		return paused, x.settleView(ctx, tx, x.view)
	})
	if err != nil {
		return fmt.Errorf("ask about run %s: %w", x.run.ID, err)
	}
	x.ended = true
	return x.cfg.fault("asked person")
}

// askedBy reads the question that a run waits for, or nil.
func askedBy(ctx context.Context, tx *store.Tx, r runstore.Run) (*mutationstore.Approval, error) {
	if r.Status != pawl.StatusPausedApproval || r.ErrorClass != "" {
		return nil, nil //nolint:nilnil // it waits for something else
	}
	a, err := mutationstore.In(tx).NewestApproval(ctx, r.ID)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil, nil //nolint:nilnil // nothing was asked
	}
	return &a, err
}

func (v *view) approvedCall() bool {
	return v.asked != nil && v.asked.State == mutationstore.ApprovalApproved
}

// waitsForAnswer reports whether the newest run asked something that can still
// be answered. When the time is over it cannot, even if nobody has noted so:
// nobody works on a lane that is paused or whose process is down.
func (v *view) waitsForAnswer() bool {
	return v.asked != nil && v.asked.State == mutationstore.ApprovalPending && v.asked.ExpiresAt.After(v.now)
}

// chooseReminder waits for the answer, and until somebody must be reminded.
func (v *view) chooseReminder(d run.Decision) step {
	due := v.asked.ExpiresAt
	if v.asked.WarnedAt.IsZero() {
		due = due.Add(-approvalWarn)
	}
	if due.After(v.now) {
		return step{do: actWait, until: due, reason: d.Reason}
	}
	return v.named(step{do: actRemind, reason: "a question expires"})
}

// remind tells that a question expires soon, or ends it. The run then waits
// until a person resumes it, and asks again.
func (e *session) remind(ctx context.Context, v *view) error {
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if v.asked.ExpiresAt.After(tx.Now) {
			e.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "asked again", Run: v.row.ID})
			if err := e.cfg.Notify(ctx, tx, lane.Notice{
				Ref: refOf(v.workflow.Name), What: lane.NoticeReminder, Issue: run.IssueApproval, RunID: v.row.ID, At: tx.Now,
				Text: "A question expires in " + v.asked.ExpiresAt.Sub(tx.Now).Round(time.Hour).String() + ": may it call " + v.asked.Tool + "." + v.asked.Method + "?",
			}); err != nil {
				return err
			}
			return mutationstore.In(tx).WarnedOfApproval(ctx, v.asked.ID)
		}
		e.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "expired", Run: v.row.ID})
		return mutationstore.In(tx).MoveApproval(ctx, v.asked.ID, mutationstore.ApprovalPending, mutationstore.ApprovalExpired, "")
	})
}
