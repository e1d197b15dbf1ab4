package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// TaskName is the task that tries effects again.
const TaskName = "pawl.hook"

const (
	mostAttempts = 20        // of an effect that is refused: some ten hours
	longestWait  = time.Hour // between two of them
)

type retryPayload struct {
	Delivery int64 `json:"delivery"`
}

func retryJob(id int64, now time.Time) store.JobSpec {
	payload, _ := json.Marshal(retryPayload{id}) // always works
	return store.JobSpec{
		Task: TaskName, Key: fmt.Sprintf("hook:%d", id), KeyMode: store.Keep, Payload: payload,
		RunAt: now.Add(queue.DefaultBackoff(id, 1)), MaxAttempts: mostAttempts,
	}
}

// Tasks are those of the service.
func (s *Service) Tasks() map[string]queue.Task {
	return map[string]queue.Task{TaskName: {Internal: true, Run: s.retry, Backoff: func(id int64, attempt int) time.Duration {
		return min(longestWait, queue.DefaultBackoff(id, 1)<<min(attempt, 12)) // the first attempt was the delivery itself
	}}}
}

// retry tries the effect of a pending delivery again. The effect and the end of the
// job are one transaction.
func (s *Service) retry(ctx context.Context, j *queue.Job) error {
	var payload retryPayload
	if err := json.Unmarshal(j.Payload, &payload); err != nil {
		return queue.Permanent(err)
	}
	err := j.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		d, err := hookstore.In(tx).HoldDelivery(ctx, payload.Delivery)
		if errors.Is(err, pawl.ErrNotFound) || err == nil && d.Outcome != hookstore.Pending {
			return j.Complete(ctx, tx) // it is forgotten, or was delivered by a person
		}
		if err == nil {
			err = s.again(ctx, tx, &d, true)
		}
		if err != nil {
			return err
		}
		return j.Complete(ctx, tx)
	})
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Reason == lane.ReasonHalted {
		return queue.ErrHalted // that says nothing about the delivery, and no attempt is spent
	}
	if !refused(err) {
		return err
	}
	last := j.Attempt+1 >= mostAttempts
	if kept := s.stillRefused(ctx, j, payload.Delivery, reasonOf(err), last); kept != nil {
		return kept
	}
	if last { // the delivery says so itself
		return nil
	}
	return err
}

// stillRefused notes another attempt that led to nothing.
func (s *Service) stillRefused(ctx context.Context, j *queue.Job, id int64, why string, last bool) error {
	return j.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		d, err := hookstore.In(tx).HoldDelivery(ctx, id)
		if err != nil || d.Outcome != hookstore.Pending {
			return pawl.IgnoreNotFound(err)
		}
		d.Attempts++
		d.Reason = why
		if last {
			d.Outcome = hookstore.Failed
			s.log.Warn("a delivery is given up", "hook", d.Hook, "delivery", d.DeliveryID, "why", why)
		}
		tx.AfterCommit(func() { s.cfg.Changed(d.Hook) })
		return hookstore.In(tx).SetOutcome(ctx, d)
	})
}

// again does the effect of a delivery that is kept, by the hook as it is now, and
// notes how it stands. One that does not fit any more is filtered, or refused if a
// person asked for it.
func (s *Service) again(ctx context.Context, tx *store.Tx, d *hookstore.Delivery, mayFilter bool) error {
	h, err := hookstore.In(tx).HookByName(ctx, d.Hook)
	if err != nil {
		return err
	}
	t := &target{Hook: h}
	if err := json.Unmarshal(h.Definition, &t.definition); err != nil {
		return fmt.Errorf("read hook: %w", err)
	}
	in := incoming{id: d.DeliveryID, headers: d.Headers, body: d.Body, bytes: d.Bytes}
	if in.value, err = decode(d.Body); err != nil {
		return fmt.Errorf("read delivery: %w", err)
	}
	d.Attempts++
	why := t.unfit(in)
	switch {
	case why != "" && !mayFilter:
		return lane.Refuse("deliver again", hookstore.Filtered, "the hook is not for this delivery: "+why, "Change when, or leave it.")
	case why != "":
		d.Outcome, d.Reason = hookstore.Filtered, why
	default:
		d.Outcome, d.Reason = hookstore.Delivered, ""
		d.Effects++
		if d.Effect, err = s.effect(ctx, tx, t, d, in); err != nil {
			return err
		}
	}
	tx.AfterCommit(func() { s.cfg.Changed(d.Hook) })
	return hookstore.In(tx).SetOutcome(ctx, *d)
}

// Find reads a delivery of a hook.
func (s *Service) Find(ctx context.Context, tx *store.Tx, name, id string) (hookstore.Delivery, error) {
	return hookstore.In(tx).FindDelivery(ctx, name, id)
}

// Redeliver does the effect of a delivery once more because a person wants it, in the
// caller's transaction. What was refused cannot be: nobody knows who sent it, and its
// body was not kept.
func (s *Service) Redeliver(ctx context.Context, tx *store.Tx, name, id, by string) (hookstore.Delivery, error) {
	d, err := hookstore.In(tx).FindDelivery(ctx, name, id)
	if err == nil {
		d, err = hookstore.In(tx).HoldDelivery(ctx, d.ID)
	}
	if err != nil {
		return d, err
	}
	if d.Outcome == hookstore.Refused {
		return d, lane.Refuse("deliver again", hookstore.Refused, "the delivery was refused, and its body was not kept", "Ask the sender to send it again.")
	}
	if err := s.again(ctx, tx, &d, false); err != nil {
		return d, err
	}
	return d, tx.Audit(ctx, by, "hook.redeliver", "hook:"+name, map[string]string{"delivery": fmt.Sprint(d.ID), "deliveryId": d.DeliveryID, "effect": d.Effect})
}
