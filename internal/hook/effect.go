package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// errChanged ends a transaction of a delivery that was judged by a version of its
// hook which is not in force.
var errChanged = errors.New("the hook was changed")

// keep keeps a delivery with its effect. The zero Delivery is one that is known.
func (s *Service) keep(ctx context.Context, t *target, in incoming) (d hookstore.Delivery, err error) {
	why := t.unfit(in)
	write := s.db.Write
	if p := t.definition.Publish; p != nil && why == "" {
		probe := t.delivery(in)
		if _, err := s.payload(p.Payload, &probe, in); err != nil { // it would end the transaction of others, too
			return s.keepPending(ctx, t, in, err)
		}
		write = func(ctx context.Context, fn store.Func, _ ...store.Option) error {
			return s.cfg.Together(ctx, Event{Workflow: p.Workflow, Topic: p.Topic, MessageID: t.messageID(&probe)}, fn)
		}
	}
	err = write(ctx, func(ctx context.Context, tx *store.Tx) error {
		d = t.delivery(in)
		switch {
		case why != "":
			d.Outcome, d.Reason = hookstore.Filtered, why
		default:
			d.Outcome, d.Attempts, d.Effects, d.Effect = hookstore.Delivered, 1, 1, t.published()
		}
		known, err := s.add(ctx, tx, &d, t)
		if err != nil || known || why != "" {
			return err
		}
		did, err := s.effect(ctx, tx, t, &d, in)
		if err != nil || did == d.Effect {
			return err
		}
		d.Effect = did
		return hookstore.In(tx).SetOutcome(ctx, d)
	})
	if !refused(err) {
		return d, err
	}
	return s.keepPending(ctx, t, in, err)
}

// delivery is the row of a delivery that has no outcome yet.
func (t *target) delivery(in incoming) hookstore.Delivery {
	return hookstore.Delivery{Hook: t.Name, DeliveryID: in.id, Headers: in.headers, Body: in.body, Bytes: in.bytes}
}

// add keeps the row, or finds out that the delivery is known, which makes it the
// zero one.
func (s *Service) add(ctx context.Context, tx *store.Tx, d *hookstore.Delivery, t *target) (known bool, err error) {
	added, err := hookstore.In(tx).AddDelivery(ctx, d, t.Version)
	if err != nil || added {
		return false, err
	}
	if known, err = hookstore.In(tx).Knows(ctx, t.Name, d.DeliveryID); err == nil && !known {
		err = errChanged
	}
	*d = hookstore.Delivery{}
	return known, err
}

// keepPending keeps a delivery whose effect was refused, with a job that tries it
// again.
func (s *Service) keepPending(ctx context.Context, t *target, in incoming, why error) (d hookstore.Delivery, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		d = t.delivery(in)
		d.Outcome, d.Attempts, d.Reason = hookstore.Pending, 1, reasonOf(why)
		known, err := s.add(ctx, tx, &d, t)
		if err != nil || known {
			return err
		}
		_, err = s.jobs.EnqueueTx(ctx, tx, retryJob(d.ID, tx.Now))
		return err
	})
	return d, err
}

// refused reports whether an effect is not possible as things are, and not for want
// of a database.
func refused(err error) bool {
	return slices.Contains([]pawl.Code{pawl.CodeInvalid, pawl.CodeNotFound, pawl.CodeConflict, pawl.CodeForbidden, pawl.CodeTooLarge}, pawl.ErrorCode(err))
}

// reasonOf is why an effect was refused, for people.
func reasonOf(err error) string {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return err.Error()
	}
	parts := []string{e.Msg}
	for _, f := range e.Fields {
		parts = append(parts, f.Message)
	}
	return strings.Join(parts, ": ")
}

// effect does what the hook is for, in the transaction of the delivery, and tells
// what came of it. A delivery that had its effect before has it again as another
// one: that is what people ask for.
func (s *Service) effect(ctx context.Context, tx *store.Tx, t *target, d *hookstore.Delivery, in incoming) (string, error) {
	def, by := t.definition, "hook "+t.Name
	trace := in.headers[telemetry.Header]
	ctx = telemetry.Request(ctx, trace)
	switch {
	case def.Publish != nil:
		payload, err := s.payload(def.Publish.Payload, d, in)
		if err != nil {
			return "", err
		}
		return t.published(), s.cfg.Publish(ctx, tx, Event{def.Publish.Workflow, def.Publish.Topic, t.messageID(d), payload}, by)
	case def.Job != nil:
		payload, err := s.jobPayload(def.Job.Payload, d, in)
		if err != nil {
			return "", err
		}
		id, err := s.cfg.Enqueue(ctx, tx, store.JobSpec{
			Task: def.Job.Task, Payload: payload, Lane: def.Job.Lane, Priority: def.Job.Priority, MaxAttempts: def.Job.MaxAttempts, Owner: t.Owner, CreatedBy: by, Trace: telemetry.Clean(trace),
		})
		return "enqueued the job " + id, err
	case def.Run != nil:
		slot, err := s.cfg.Run(ctx, tx, t.Owner, def.Run.Schedule, by)
		return fmt.Sprintf("runs %s as of %s", def.Run.Schedule, pawl.FormatTime(slot)), err
	}
	return "", &pawl.Error{Code: pawl.CodeInvalid, Msg: "the hook says nothing about what a delivery becomes"}
}

// messageID tells the event of a delivery from all others.
func (t *target) messageID(d *hookstore.Delivery) string {
	id := "hook/" + t.Name + "/" + d.DeliveryID
	if d.Effects > 1 {
		id += fmt.Sprintf("#%d", d.Effects)
	}
	return id
}

// published says what an event became; empty if deliveries become something else.
func (t *target) published() string {
	if p := t.definition.Publish; p != nil {
		return fmt.Sprintf("published %s to %s", p.Topic, p.Workflow)
	}
	return ""
}

// payload is the part of a delivery that goes on.
func (s *Service) payload(which string, d *hookstore.Delivery, in incoming) (json.RawMessage, error) {
	out := in.body
	if which == spec.WholeDelivery {
		out, _ = json.Marshal(map[string]any{ // of types that can be JSON
			"id": d.DeliveryID, "hook": d.Hook, "receivedAt": d.ReceivedAt.UTC().Format(time.RFC3339Nano), "headers": in.headers, "body": in.body,
		})
	} else if at, err := spec.ParseSelector(which); err == nil && len(at.Path) > 0 {
		value, ok := at.In(in.value)
		if !ok {
			return nil, &pawl.Error{Code: pawl.CodeInvalid, Msg: "the body has nothing at " + which}
		}
		out, _ = json.Marshal(value)
	}
	if int64(len(out)) > s.cfg.MaxPayload {
		return nil, &pawl.Error{Code: pawl.CodeTooLarge, Msg: fmt.Sprintf("the payload has %d bytes, more than the %d that are allowed", len(out), s.cfg.MaxPayload)}
	}
	return out, nil
}

// jobPayload is that of a job, which may be fixed.
func (s *Service) jobPayload(written json.RawMessage, d *hookstore.Delivery, in incoming) (json.RawMessage, error) {
	which := "body"
	if len(written) > 0 && written[0] != '"' {
		return written, nil
	}
	if len(written) > 0 {
		if err := json.Unmarshal(written, &which); err != nil {
			return nil, fmt.Errorf("read hook: %w", err)
		}
	}
	return s.payload(which, d, in)
}
