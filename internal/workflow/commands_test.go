package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

func TestOutside(t *testing.T) {
	hold(t,
		behaviour{"an event wakes its lane in the transaction that stores it", publishArms},
		behaviour{"an event that cannot be taken is refused with its place", publishRefusals},
		behaviour{"a known event is replaced while it is pending and counted after that", publishAgain},
		behaviour{"an event whose row retention removed is known when it comes again", publishForgotten},
		behaviour{"what publishing answers is what is stored", publishAnswers},
		behaviour{"an event while its workflow is paused waits", publishWhilePaused},
		behaviour{"skipping an input skips what is pending", skipPending},
		behaviour{"skipping an input in the middle of prepare is no fault of the script", skipInPrepare},
		behaviour{"skipping an input that is taken ends the run and gives the others back", skipReserved},
		behaviour{"skipping an input after the call left lets the run finish", skipAfterCall},
		behaviour{"an input that was skipped stays so when it comes again", skipStays},
		behaviour{"cancelling a run gives back what it took and the lane goes on", cancelGivesBack},
		behaviour{"cancelling is refused once a call left", cancelAfterCall},
	)
}

// the job is armed for now, with the event or not at all; what is known
// already arms nothing.
func publishArms(t *testing.T, k *kit) {
	w := k.deploy("arms", "1", consuming(takeOne("in")))
	k.work(w)
	armed := len(k.armed.specs)
	gone := errors.New("given up")
	event := ExternalEvent{Topic: "in", MessageID: "a"}
	err := k.do(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := k.s.PublishExternal(ctx, tx, "arms", event, "tester")
		return errors.Join(err, gone)
	})
	if !errors.Is(err, gone) || len(k.armed.specs) != armed || len(k.statuses(w, "in")) != 0 {
		t.Errorf("a transaction that was given up left something (%v)", err)
	}
	k.publish(w, "in", "a")
	specs := k.armed.specs[armed:]
	if len(specs) != 1 || specs[0].Key != jobKey(w.Lane) || !specs[0].RunAt.Equal(time.Now()) || specs[0].KeyMode != store.Earliest {
		t.Fatalf("armed: %+v", specs)
	}
	k.work(w)
	k.publish(w, "in", "a")
	expect(t, "armed for a duplicate", len(k.armed.specs), armed+1)
	k.ranSince()
	k.work(w)
	expect(t, "runs for a duplicate", len(k.ranSince()), 0)
}

// new, changed, with an input, of a skipped input, and taken already.
func publishAnswers(t *testing.T, k *kit) {
	w := k.deploy("answers", "1", consuming(takeOne("in")))
	k.settle(w)
	k.publish(w, "in", "skipped")
	k.skipInput(w, "skipped")
	k.publish(w, "in", "taken")
	k.settle(w)
	input := &OutsideInput{Source: "test", Type: "thing", ID: "skipped", Title: "Skipped"}
	for _, c := range []struct {
		event  ExternalEvent
		status eventstore.EventStatus
	}{
		{ExternalEvent{Topic: "in", MessageID: "new", Payload: json.RawMessage(`{"a": 1}`)}, eventstore.EventPending},
		{ExternalEvent{Topic: "in", MessageID: "none"}, eventstore.EventPending},
		{ExternalEvent{Topic: "in", MessageID: "new", Payload: json.RawMessage(`{"a": 2}`)}, eventstore.EventPending},
		{ExternalEvent{Topic: "in", MessageID: "from", Input: &OutsideInput{Source: "test", Type: "thing", ID: "other", Title: "Other"}}, eventstore.EventPending},
		{ExternalEvent{Topic: "in", MessageID: "of skipped", Input: input}, eventstore.EventSkipped},
		{ExternalEvent{Topic: "in", MessageID: "taken", Payload: json.RawMessage(`"other"`)}, eventstore.EventConsumed},
	} {
		var told, kept eventstore.Event
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			told, _, err = k.s.PublishExternal(ctx, tx, "answers", c.event, "tester")
			return err
		})
		k.read(func(ctx context.Context, tx *store.Tx) error {
			found, err := eventstore.In(tx).EventsByMessage(ctx, w.ID, "in", []string{c.event.MessageID})
			if err == nil && len(found) == 1 {
				kept = found[0]
			}
			return err
		})
		answer := func(e eventstore.Event) string {
			return fmt.Sprint(e.Topic, e.MessageID, string(e.Payload), e.Status, e.CausedBy, e.Attempt, e.Duplicates, e.CreatedBy, e.ReservedBy, pawl.FormatTime(e.CreatedAt))
		}
		expect(t, c.event.MessageID+": the answer", answer(told), answer(kept))
		expect(t, c.event.MessageID+": status", told.Status, c.status)
		if c.status == eventstore.EventConsumed {
			expect(t, "what was taken", string(kept.Payload), `"taken"`)
		}
	}
}

// Context 3.1, 3.11.2: unknown topics, topics that nobody takes, bad ids and
// inputs; each with a pointer to the field.
func publishRefusals(t *testing.T, k *kit) {
	d := consuming(takeOne("in"))
	d.config.Topics = append(d.config.Topics, "lonely")
	w := k.deploy("refusals", "1", d)
	k.work(w)
	for name, c := range map[string]struct {
		event   ExternalEvent
		pointer string
	}{
		"an unknown topic":           {ExternalEvent{Topic: "inn", MessageID: "a"}, "/topic"},
		"a topic without a consumer": {ExternalEvent{Topic: "lonely", MessageID: "a"}, "/topic"},
		"no topic":                   {ExternalEvent{MessageID: "a"}, "/topic"},
		"no id":                      {ExternalEvent{Topic: "in"}, "/messageId"},
		"a long id":                  {ExternalEvent{Topic: "in", MessageID: strings.Repeat("x", maxMessageID+1)}, "/messageId"},
		"an id with NUL":             {ExternalEvent{Topic: "in", MessageID: "a\x00b"}, "/messageId"},
		"half an input":              {ExternalEvent{Topic: "in", MessageID: "a", Input: &OutsideInput{Source: "s", Type: "t"}}, "/input"},
	} {
		err := k.do(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := k.s.PublishExternal(ctx, tx, "refusals", c.event, "tester")
			return err
		})
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Pointer != c.pointer {
			t.Errorf("%s: %v, want a fault at %s", name, err, c.pointer)
		}
	}
	expect(t, "events", len(k.statuses(w, "in")), 0)
	err := k.do(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := k.s.PublishExternal(ctx, tx, "nobody-knows", ExternalEvent{Topic: "in", MessageID: "a"}, "tester")
		return err
	})
	if !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("an event for what is not there: %v", err)
	}
}

// payload and causes only while pending; the status never changes.
func publishAgain(t *testing.T, k *kit) {
	w := k.deploy("again", "1", consuming(takeOne("in")))
	k.work(w)
	send := func(payload string) (e eventstore.Event, p eventstore.Published) {
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			e, p, err = k.s.PublishExternal(ctx, tx, "again", ExternalEvent{Topic: "in", MessageID: "a", Payload: json.RawMessage(payload)}, "tester")
			return err
		})
		return e, p
	}
	_, first := send("1")
	e, second := send("2")
	if first.New != 1 || second.Changed != 1 || string(e.Payload) != "2" {
		t.Errorf("at first %+v, then %+v with %s", first, second, e.Payload)
	}
	k.work(w)
	e, third := send("3")
	if third.Duplicate != 1 || string(e.Payload) != "2" || e.Status != eventstore.EventConsumed || e.Duplicates != 1 {
		t.Errorf("after it was consumed: %+v, %s, %s", third, e.Payload, e.Status)
	}
}

// What retention removes is remembered by its id: whoever sends it once more is told
// that it is known, and nothing runs.
func publishForgotten(t *testing.T, k *kit) {
	w := k.deploy("forgets", "1", consuming(takeOne("in")))
	k.publish(w, "in", "a")
	k.work(w)
	k.write(func(ctx context.Context, tx *store.Tx) error {
		n, err := eventstore.In(tx).DeleteEvents(ctx, w.ID, "in", []int64{k.find(w, "in", "a").ID})
		expect(t, "removed", n, 1)
		return err
	})
	k.ranSince()
	var e eventstore.Event
	var p eventstore.Published
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		e, p, err = k.s.PublishExternal(ctx, tx, "forgets", ExternalEvent{Topic: "in", MessageID: "a", Payload: json.RawMessage("7")}, "tester")
		return err
	})
	k.work(w)
	expect(t, "what it did", p, eventstore.Published{Duplicate: 1})
	if e.MessageID != "a" || e.Status != eventstore.EventConsumed || string(e.Payload) != "7" || e.CreatedAt.IsZero() {
		t.Errorf("it is told as %+v", e)
	}
	expect(t, "runs", len(k.ranSince()), 0)
}

// it is kept, and nobody runs for it.
func publishWhilePaused(t *testing.T, k *kit) {
	w := k.deploy("waits", "1", consuming(takeOne("in")))
	k.work(w)
	k.pause("waits")
	k.publish(w, "in", "a")
	k.ranSince()
	k.work(w)
	expect(t, "runs", len(k.ranSince()), 0)
	expect(t, "pending", k.look("waits").Pending, 1)
}

// Context 3.2.6: hidden from peek; the others are taken.
func skipPending(t *testing.T, k *kit) {
	w := k.deploy("skip-pending", "1", consuming(takeOne("in")))
	k.pause("skip-pending")
	k.publish(w, "in", "a", "b")
	expect(t, "skip, twice", []bool{k.skipInput(w, "a"), k.skipInput(w, "a")}, []bool{true, false})
	k.resume("skip-pending")
	k.work(w)
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "skipped", "b": "consumed"})
	err := k.do(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.SkipInput(ctx, tx, "in_unknown", "tester")
		return err
	})
	if !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("skipping what is not there: %v", err)
	}
}

// Lesson 37, context 3.2.6: prepare has seen the event, a person skips it, and
// prepare wants to take it. Nobody did anything wrong.
func skipInPrepare(t *testing.T, k *kit) {
	first := true
	w := k.deploy("skip-prepare", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if first {
			first = false
			k.skipInput(k.workflow("skip-prepare"), "a")
		}
		return take("in", ids...)
	}))
	k.publish(w, "in", "a", "b")
	k.work(w)
	for _, r := range k.runs(w) {
		if r.Status != pawl.StatusCommitted && r.Status != pawl.StatusCancelled {
			t.Errorf("a run of a healthy script is %s: %s", r.Status, r.ErrorMessage)
		}
	}
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "skipped", "b": "consumed"})
}

// Context 3.2.6: before the call; the other event of the run is taken by the
// next one.
func skipReserved(t *testing.T, k *kit) {
	k.writeThrough()
	d := orderDefinition()
	mutate := d.handlers["consumers.order.mutate"]
	first := true
	w := k.deploy("skip-reserved", "1", d.handler("consumers.order.prepare", func(c *goCtx, _ []json.RawMessage) any {
		out := take("in", c.peek("in")...)
		out["data"] = strings.Join(c.peek("in"), " ")
		return out
	}).handler("consumers.order.mutate", func(c *goCtx, args []json.RawMessage) any {
		if first {
			first = false
			k.skipInput(k.workflow("skip-reserved"), "a")
		}
		return mutate(c, args)
	}))
	k.publish(w, "in", "a", "b")
	k.work(w)
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "skipped", "b": "consumed"})
	expect(t, "orders", k.desk.things(), []string{"b"})
	expect(t, "first run", k.runs(w)[0].Status, pawl.StatusCancelled)
	expect(t, "attempts of the other event", k.eventAttempts(w, "b"), 1)
	k.checkInvariants(w)
}

// Context 3.2.6: what was sent is finished, and its event is consumed.
func skipAfterCall(t *testing.T, k *kit) {
	w := k.deploy("skip-sent", "1", orderDefinition())
	k.publish(w, "in", "a")
	k.desk.answer = func(tool.Call) error { k.skipInput(w, "a"); return nil }
	k.work(w)
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventConsumed)
	expect(t, "orders", k.desk.things(), []string{"a"})
	for _, r := range k.runs(w) {
		expect(t, "run", r.Status, pawl.StatusCommitted)
	}
	k.read(func(ctx context.Context, tx *store.Tx) error {
		i, err := eventstore.In(tx).GetInput(ctx, thingID(w, "a"))
		expect(t, "input", i.Status, eventstore.InputSkipped)
		return err
	})
}

// Context 3.2.6: a producer that finds it again does not bring it back.
func skipStays(t *testing.T, k *kit) {
	const name = "skip-stays"
	n := 0
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		n++
		c.call("registerInput", map[string]string{"source": "test", "type": "thing", "id": "a", "title": "Thing a"})
		c.publish("in", fmt.Sprintf("a-%d", n), nil, thingID(k.workflow(name), "a"))
		return nothing{}
	}))
	k.work(w)
	k.skipInput(w, "a")
	k.follow(w, time.Hour)
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a-1": "consumed", "a-2": "skipped"})
}

// cancelNewest cancels the newest run as a person does.
func (k *kit) cancelNewest(w workflowstore.Workflow) error {
	return k.do(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.CancelRun(ctx, tx, k.lastRun(w), "tester")
		return err
	})
}

// it is over for good; its events are news for the next run.
func cancelGivesBack(t *testing.T, k *kit) {
	k.writeThrough()
	d := orderDefinition()
	mutate := d.handlers["consumers.order.mutate"]
	first := true
	w := k.deploy("cancels", "1", d.handler("consumers.order.mutate", func(c *goCtx, args []json.RawMessage) any {
		if first {
			first = false
			r := k.lastRun(k.workflow("cancels"))
			if err := k.do(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.CancelRun(ctx, tx, r, "tester")
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		return mutate(c, args)
	}))
	k.publish(w, "in", "a")
	k.work(w)
	runs := k.runs(w)
	expect(t, "the first run", runs[0].Status, pawl.StatusCancelled)
	expect(t, "the run after it", runs[1].RetryOf, "")
	expect(t, "orders", k.desk.things(), []string{"a"})
	if err := k.cancelNewest(w); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("cancelling a committed run: %v", err)
	}
}

// from there on it only goes forward.
func cancelAfterCall(t *testing.T, k *kit) {
	w := k.deploy("too-late", "1", orderDefinition())
	k.publish(w, "in", "a")
	k.desk.answer = func(tool.Call) error {
		if err := k.cancelNewest(w); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("cancelling a run whose call left: %v", err)
		}
		return nil
	}
	k.work(w)
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventConsumed)
	for _, r := range k.runs(w) {
		expect(t, "run", r.Status, pawl.StatusCommitted)
	}
}
