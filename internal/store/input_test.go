package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func input0(workflowID, id string) eventstore.Input {
	return eventstore.Input{ID: id, WorkflowID: workflowID, Source: "gmail", Type: "mail", ExternalID: "x-" + id, Title: "about " + id, CreatedBy: "run"}
}

// registered adds inputs of these ids.
func registered(t testing.TB, db *store.DB, workflowID string, ids ...string) {
	t.Helper()
	var list []eventstore.Input
	for _, id := range ids {
		list = append(list, input0(workflowID, id))
	}
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { return eventstore.In(tx).AddInputs(ctx, list) })
}

func skip(t testing.TB, db *store.DB, id string) (first bool) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		first, err = eventstore.In(tx).SkipInput(ctx, id, "ann")
		return err
	})
	return first
}

func inputOf(t testing.TB, db *store.DB, id string) eventstore.Input {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (eventstore.Input, error) {
		return eventstore.In(tx).GetInput(ctx, id)
	})
}

// 3.2: registering again returns the same input and leaves it as it is.
func TestRegisteringAgainKeepsTheInput(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		registered(t, db, w.ID, "i1")
		first := inputOf(t, db, "i1")
		want := input0(w.ID, "i1")
		want.CreatedAt, want.Status = first.CreatedAt, eventstore.InputOrphaned
		if diff := cmp.Diff(want, first); diff != "" || first.CreatedAt.IsZero() {
			t.Errorf("registered at %v (-want +got):\n%s", first.CreatedAt, diff)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			tx.Now = store.AtForTest(1)
			again := input0(w.ID, "i1")
			again.Title, again.CreatedBy = "another", "another"
			sameThing := again
			sameThing.ID = "i1 under another id"
			elsewhere := input0(other.ID, "i2")
			elsewhere.ExternalID = again.ExternalID
			return eventstore.In(tx).AddInputs(ctx, []eventstore.Input{again, sameThing, elsewhere, elsewhere})
		})
		if diff := cmp.Diff(first, inputOf(t, db, "i1")); diff != "" {
			t.Errorf("registering again changed it:\n%s", diff)
		}
		if n := store.CountForTest(t, db, `select count(*) from inputs`); n != 2 {
			t.Errorf("%d inputs, want this one and that of the other workflow", n)
		}
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).GetInput(ctx, "nobody")
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) || err.Error() != `read input: there is no input "nobody"` {
			t.Errorf("an input that is not there: %v", err)
		}
	})
}

func TestKnownInputsAreThoseOfTheWorkflow(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		var ids []string
		want := map[string]bool{}
		for i := range 1100 {
			ids = append(ids, fmt.Sprint("i", i))
			want[ids[i]] = true
		}
		registered(t, db, w.ID, ids...)
		registered(t, db, other.ID, "foreign")
		asked := append(slices.Clone(ids), "foreign", "nobody", "i1")
		for _, c := range []struct {
			asked []string
			want  map[string]bool
		}{{asked, want}, {nil, map[string]bool{}}, {[]string{"foreign"}, map[string]bool{}}} {
			got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string]bool, error) {
				return eventstore.In(tx).KnownInputs(ctx, w.ID, c.asked)
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%d asked (-want +got):\n%s", len(c.asked), diff)
			}
		}
	})
}

// 3.2: the status of an input follows from its events.
func TestInputStatusFollowsFromItsEvents(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for _, c := range []struct {
			events []eventstore.EventStatus
			want   eventstore.InputStatus
		}{
			{nil, eventstore.InputOrphaned},
			{[]eventstore.EventStatus{eventstore.EventPending}, eventstore.InputPending},
			{[]eventstore.EventStatus{eventstore.EventReserved}, eventstore.InputPending},
			{[]eventstore.EventStatus{eventstore.EventConsumed}, eventstore.InputDone},
			{[]eventstore.EventStatus{eventstore.EventSkipped}, eventstore.InputDone},
			{[]eventstore.EventStatus{eventstore.EventConsumed, eventstore.EventSkipped, eventstore.EventConsumed}, eventstore.InputDone},
			{[]eventstore.EventStatus{eventstore.EventConsumed, eventstore.EventReserved}, eventstore.InputPending},
			{[]eventstore.EventStatus{eventstore.EventConsumed, eventstore.EventPending}, eventstore.InputPending},
		} {
			name := fmt.Sprint(c.events)
			w := deployed(t, db, name, "in")
			registered(t, db, w.ID, name, "noise")
			published(t, db, w.ID, event0("in", "noise", `1`, "noise"))
			for k, status := range c.events {
				id := fmt.Sprint("m", k)
				published(t, db, w.ID, event0("in", id, `1`, name))
				moved(t, db, w.ID, "in", id, status)
			}
			if got := inputOf(t, db, name).Status; got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			skip(t, db, name)
			if got := inputOf(t, db, name).Status; got != eventstore.InputSkipped {
				t.Errorf("%s: %s after it was skipped", name, got)
			}
		}
	})
}

// Nobody waits for events of a topic that no consumer takes.
func TestEventsWithoutAConsumerKeepNoInputPending(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in", "out"), deployed(t, db, "other", "in")
		registered(t, db, w.ID, "i")
		registered(t, db, other.ID, "j")
		published(t, db, w.ID, event0("in", "m", `1`, "i"), event0("out", "m", `1`, "i"))
		published(t, db, other.ID, event0("in", "m", `1`, "j"))
		moved(t, db, w.ID, "in", "m", eventstore.EventConsumed)
		for _, step := range []struct {
			subscribed []string
			want       eventstore.InputStatus
		}{{[]string{"in", "out"}, eventstore.InputPending}, {[]string{"in"}, eventstore.InputDone}, {[]string{"out"}, eventstore.InputPending}, {nil, eventstore.InputDone}} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return eventstore.In(tx).SetSubscribed(ctx, w.ID, step.subscribed)
			})
			if got := inputOf(t, db, "i").Status; got != step.want {
				t.Errorf("with consumers of %q it is %s, want %s", step.subscribed, got, step.want)
			}
			if got := inputOf(t, db, "j").Status; got != eventstore.InputPending {
				t.Errorf("that of another workflow is %s", got)
			}
		}
	})
}

// 3.2: skipping ends what is pending, and leaves what is held or has ended.
func TestSkippingAnInput(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in", "out")
		registered(t, db, w.ID, "i", "j")
		published(t, db, w.ID, event0("in", "pending", `1`, "i"), event0("in", "shared", `1`, "j", "i"), event0("out", "pending", `1`, "i"),
			event0("in", "reserved", `1`, "i"), event0("in", "reserved too", `1`, "i"), event0("in", "consumed", `1`, "i"), event0("in", "other", `1`, "j"))
		for _, id := range []string{"reserved", "reserved too"} {
			moved(t, db, w.ID, "in", id, eventstore.EventReserved)
		}
		moved(t, db, w.ID, "in", "consumed", eventstore.EventConsumed)
		if !skip(t, db, "i") {
			t.Error("the first skip was not the first")
		}
		skipped := inputOf(t, db, "i")
		if skipped.SkippedBy != "ann" || skipped.SkippedAt.IsZero() {
			t.Errorf("%+v", skipped)
		}
		for _, c := range []struct {
			topic, id string
			want      eventstore.EventStatus
		}{
			{"in", "pending", eventstore.EventSkipped}, {"in", "shared", eventstore.EventSkipped}, {"out", "pending", eventstore.EventSkipped},
			{"in", "reserved", eventstore.EventReserved}, {"in", "consumed", eventstore.EventConsumed}, {"in", "other", eventstore.EventPending},
		} {
			if e := eventOf(t, db, w.ID, c.topic, c.id); e.Status != c.want {
				t.Errorf("%s of %s is %s, want %s", c.id, c.topic, e.Status, c.want)
			}
		}
		holding := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]string, error) {
			return eventstore.In(tx).RunsHolding(ctx, "i")
		})
		if diff := cmp.Diff([]string{"holder of reserved", "holder of reserved too"}, holding); diff != "" {
			t.Errorf("runs that hold events of it (-want +got):\n%s", diff)
		}
		if none := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]string, error) {
			return eventstore.In(tx).RunsHolding(ctx, "j")
		}); len(none) != 0 {
			t.Errorf("runs that hold events of another: %v", none)
		}
		if skip(t, db, "i") || skip(t, db, "nobody") {
			t.Error("a second skip, or one of nothing, counted")
		}
		if diff := cmp.Diff(skipped, inputOf(t, db, "i")); diff != "" {
			t.Errorf("a second skip changed it:\n%s", diff)
		}
	})
}

// An event of a skipped input does not become pending again when its run lets
// it go.
func TestReleasedEventOfASkippedInputIsSkipped(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		registered(t, db, w.ID, "i", "j")
		published(t, db, w.ID, event0("in", "of both", `1`, "i", "j"), event0("in", "of j", `1`, "j"), event0("in", "of none", `1`))
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return eventstore.In(tx).ReserveEvents(ctx, w.ID, "r", []eventstore.Reservation{{Topic: "in", IDs: []string{"of both", "of j", "of none"}}})
		})
		skip(t, db, "i")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			n, err := eventstore.In(tx).ReleaseEvents(ctx, "r")
			if n != 3 {
				t.Errorf("%d events were let go", n)
			}
			return err
		})
		for id, want := range map[string]eventstore.EventStatus{"of both": eventstore.EventSkipped, "of j": eventstore.EventPending, "of none": eventstore.EventPending} {
			if e := eventOf(t, db, w.ID, "in", id); e.Status != want || e.ReservedBy != "" || e.Attempt != 1 {
				t.Errorf("%s: %+v", id, e)
			}
		}
	})
}

// However a skip meets a publisher or a run that lets go, no event of the
// input stays pending. PostgreSQL only: SQLite has one writer.
func TestSkipMeetsOthersWhoChangeItsEvents(t *testing.T) {
	skipIt := func(_ workflowstore.Workflow) store.Func {
		return func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).SkipInput(ctx, "i", "ann")
			return err
		}
	}
	publish := func(w workflowstore.Workflow) store.Func {
		return func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).Publish(ctx, w.ID, "run", []eventstore.NewEvent{event0("in", "new", `1`, "i")})
			return err
		}
	}
	release := func(_ workflowstore.Workflow) store.Func {
		return func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).ReleaseEvents(ctx, "holder of held")
			return err
		}
	}
	for _, c := range []struct {
		name          string
		first, second func(w workflowstore.Workflow) store.Func
		event         string
	}{
		{"publish, then skip", publish, skipIt, "new"},
		{"skip, then publish", skipIt, publish, "new"},
		{"release, then skip", release, skipIt, "held"},
		{"skip, then release", skipIt, release, "held"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := store.OpenForTest(t, pgtest.URL(t))
			w := deployed(t, db, "mail", "in", "out")
			registered(t, db, w.ID, "i")
			published(t, db, w.ID, event0("in", "held", `1`, "i"))
			moved(t, db, w.ID, "in", "held", eventstore.EventReserved)
			during(t, db, c.first(w), c.second(w))
			if e := eventOf(t, db, w.ID, "in", c.event); e.Status != eventstore.EventSkipped {
				t.Errorf("the event is %s", e.Status)
			}
		})
	}
}

// A list is read page by page without gaps and doubles, also where many inputs
// share an instant.
func TestInputsAreListedPageByPage(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in"), deployed(t, db, "other")
		registered(t, db, other.ID, "foreign")
		var all []eventstore.Input
		for i := range 4 {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = store.AtForTest(i)
				var list []eventstore.Input
				for k := range 6 {
					list = append(list, input0(w.ID, fmt.Sprint("i", i, k)))
				}
				return eventstore.In(tx).AddInputs(ctx, list)
			})
		}
		for i := range 4 {
			published(t, db, w.ID, event0("in", fmt.Sprint("p", i), `1`, fmt.Sprint("i", i, 0)), event0("in", fmt.Sprint("d", i), `1`, fmt.Sprint("i", i, 1)))
			moved(t, db, w.ID, "in", fmt.Sprint("d", i), eventstore.EventConsumed)
			skip(t, db, fmt.Sprint("i", i, 2))
			for k := range 6 {
				all = append(all, inputOf(t, db, fmt.Sprint("i", i, k)))
			}
		}
		slices.SortFunc(all, func(a, b eventstore.Input) int { return strings.Compare(b.ID, a.ID) }) // here also the order of time
		for _, status := range []eventstore.InputStatus{"", eventstore.InputPending, eventstore.InputDone, eventstore.InputSkipped, eventstore.InputOrphaned} {
			var want, got []eventstore.Input
			for _, i := range all {
				if status == "" || i.Status == status {
					want = append(want, i)
				}
			}
			for cursor := (eventstore.InputCursor{}); ; {
				page := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Input, error) {
					return eventstore.In(tx).ListInputs(ctx, w.ID, status, cursor, 5)
				})
				got = append(got, page...)
				if len(page) < 5 {
					break
				}
				cursor = eventstore.InputCursor{CreatedAt: page[4].CreatedAt, ID: page[4].ID}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) < 4 {
				t.Errorf("%q: %d inputs (-want +got):\n%s", status, len(want), diff)
			}
		}
	})
}
