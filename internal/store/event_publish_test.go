package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

func event0(topic, id, payload string, causes ...string) eventstore.NewEvent {
	return eventstore.NewEvent{Topic: topic, MessageID: id, Payload: json.RawMessage(payload), CausedBy: causes}
}

func published(t testing.TB, db *store.DB, workflowID string, list ...eventstore.NewEvent) (p eventstore.Published) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = eventstore.In(tx).Publish(ctx, workflowID, "run", list)
		return err
	})
	return p
}

// eventOf reads one event of a topic.
func eventOf(t testing.TB, db *store.DB, workflowID, topic, id string) eventstore.Event {
	t.Helper()
	found := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
		return eventstore.In(tx).EventsByMessage(ctx, workflowID, topic, []string{id})
	})
	if len(found) != 1 {
		t.Fatalf("%d events %q in %s", len(found), id, topic)
	}
	return found[0]
}

func topicSeqs(t testing.TB, db *store.DB, workflowID string) map[string]int64 {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string]int64, error) {
		seqs := map[string]int64{}
		return seqs, errors.Join(eventstore.In(tx).AskTopicSeqs(ctx, workflowID, seqs), tx.Flush(ctx))
	})
}

// linked lists the events that an input is linked with, by what the table of
// links says.
func linked(t testing.TB, db *store.DB, workflowID, input string) string {
	t.Helper()
	list := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
		return eventstore.In(tx).ListEvents(ctx, workflowID, eventstore.EventFilter{InputID: input}, 0, 100)
	})
	slices.Reverse(list)
	return messages(list)
}

func messages(list []eventstore.Event) string {
	var out []string
	for _, e := range list {
		out = append(out, e.MessageID)
	}
	return strings.Join(out, " ")
}

// moved takes an event and ends it in the given status.
func moved(t testing.TB, db *store.DB, workflowID, topic, id string, to eventstore.EventStatus) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := eventstore.In(tx).ReserveEvents(ctx, workflowID, "holder of "+id, []eventstore.Reservation{{Topic: topic, IDs: []string{id}}}); err != nil {
			return err
		}
		var err error
		switch to {
		case eventstore.EventConsumed:
			err = eventstore.In(tx).ConsumeEvents(ctx, "holder of "+id)
		case eventstore.EventSkipped:
			_, err = eventstore.In(tx).SkipReservedEvents(ctx, "holder of "+id)
		case eventstore.EventPending:
			_, err = eventstore.In(tx).ReleaseEvents(ctx, "holder of "+id)
		case eventstore.EventReserved:
		}
		return err
	})
}

func TestPublishedEventComesBackAsItWasStored(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		if p := published(t, db, w.ID, event0("in", "ü 1", `{"a":[1,null]}`, "i2", "i1"), event0("in", "2", "")); p != (eventstore.Published{New: 2}) || !p.News() {
			t.Errorf("%+v", p)
		}
		got := eventOf(t, db, w.ID, "in", "ü 1")
		want := eventstore.Event{
			ID: got.ID, WorkflowID: w.ID, Topic: "in", Seq: 1, MessageID: "ü 1", Payload: json.RawMessage(`{"a":[1,null]}`),
			Status: eventstore.EventPending, CreatedBy: "run", CausedBy: []string{"i2", "i1"}, CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt,
		}
		if diff := cmp.Diff(want, got); diff != "" || got.ID == 0 || got.CreatedAt.IsZero() {
			t.Errorf("%d at %v (-want +got):\n%s", got.ID, got.CreatedAt, diff)
		}
		if e := eventOf(t, db, w.ID, "in", "2"); string(e.Payload) != "null" || e.CausedBy == nil || len(e.CausedBy) != 0 || e.Seq != 2 {
			t.Errorf("without payload and causes: %+v", e)
		}
		if p := published(t, db, w.ID); p != (eventstore.Published{}) || p.News() {
			t.Errorf("nothing published: %+v", p)
		}
	})
}

// publishing replaces payload and causes while the event is pending,
// counts a duplicate otherwise, and never changes the status.
func TestPublishingAKnownEvent(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for _, c := range []struct {
			name    string
			status  eventstore.EventStatus
			payload string
			want    eventstore.Published
		}{
			{"pending, same payload", eventstore.EventPending, `1`, eventstore.Published{Duplicate: 1}},
			{"pending, other payload", eventstore.EventPending, `2`, eventstore.Published{Changed: 1}},
			{"reserved, same payload", eventstore.EventReserved, `1`, eventstore.Published{Duplicate: 1}},
			{"reserved, other payload", eventstore.EventReserved, `2`, eventstore.Published{Duplicate: 1}},
			{"consumed, other payload", eventstore.EventConsumed, `2`, eventstore.Published{Duplicate: 1}},
			{"skipped, other payload", eventstore.EventSkipped, `2`, eventstore.Published{Duplicate: 1}},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := deployed(t, db, c.name, "in")
				published(t, db, w.ID, event0("in", "m", `1`, "old"))
				moved(t, db, w.ID, "in", "m", c.status)
				want := eventOf(t, db, w.ID, "in", "m")
				seq := topicSeqs(t, db, w.ID)["in"]

				if p := published(t, db, w.ID, event0("in", "m", c.payload, "new", "newer")); p != c.want {
					t.Errorf("published %+v, want %+v", p, c.want)
				}
				got := eventOf(t, db, w.ID, "in", "m")
				want.Duplicates += c.want.Duplicate
				links := [3]string{"m", "", ""}
				if c.status == eventstore.EventPending {
					want.Payload, want.CausedBy = json.RawMessage(c.payload), []string{"new", "newer"}
					links = [3]string{"", "m", "m"}
				}
				if c.want.Changed == 1 {
					want.UpdatedAt, seq = got.UpdatedAt, seq+1
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := [3]string{linked(t, db, w.ID, "old"), linked(t, db, w.ID, "new"), linked(t, db, w.ID, "newer")}; got != links {
					t.Errorf("links %q, want %q", got, links)
				}
				if got := topicSeqs(t, db, w.ID)["in"]; got != seq {
					t.Errorf("the topic is at %d, want %d", got, seq)
				}
			})
		}
	})
}

// What is new, changed or known is told apart even within one transaction,
// where every row has the same instant.
func TestPublishingAgainInOneTransaction(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, step := range []struct {
				event eventstore.NewEvent
				want  eventstore.Published
			}{
				{event0("in", "m", `1`), eventstore.Published{New: 1}},
				{event0("in", "m", `1`), eventstore.Published{Duplicate: 1}},
				{event0("in", "m", `2`), eventstore.Published{Changed: 1}},
				{event0("in", "m", `2`), eventstore.Published{Duplicate: 1}},
				{event0("in", "m", `1`), eventstore.Published{Changed: 1}},
			} {
				if p, err := eventstore.In(tx).Publish(ctx, w.ID, "run", []eventstore.NewEvent{step.event}); err != nil || p != step.want {
					t.Errorf("step %d: %+v, %v, want %+v", i, p, err, step.want)
				}
			}
			return nil
		})
		if e := eventOf(t, db, w.ID, "in", "m"); e.Duplicates != 2 || string(e.Payload) != `1` || e.Seq != 1 {
			t.Errorf("%+v", e)
		}
	})
}

func TestLastOfTwoWithOneMessageIDInOneCallCounts(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in", "other")
		p := published(t, db, w.ID, event0("in", "a", `1`, "i1"), event0("in", "b", `1`), event0("in", "a", `2`, "i2"), event0("other", "a", `3`))
		if p != (eventstore.Published{New: 3}) {
			t.Errorf("%+v", p)
		}
		if e := eventOf(t, db, w.ID, "in", "a"); string(e.Payload) != `2` || e.Seq != 1 || linked(t, db, w.ID, "i1") != "" || linked(t, db, w.ID, "i2") != "a" {
			t.Errorf("%+v", e)
		}
		if e := eventOf(t, db, w.ID, "other", "a"); string(e.Payload) != `3` {
			t.Errorf("the same message id in another topic: %+v", e)
		}
	})
}

// 3.1: one call may publish to several topics, all or nothing.
func TestPublishToSeveralTopicsIsAllOrNothing(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, foreign := deployed(t, db, "mail", "b", "a"), deployed(t, db, "foreign", "z")
		if p := published(t, db, w.ID, event0("b", "1", `1`), event0("a", "1", `1`), event0("b", "2", `1`)); p != (eventstore.Published{New: 3}) {
			t.Errorf("%+v", p)
		}
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).Publish(ctx, w.ID, "run", []eventstore.NewEvent{event0("a", "2", `1`), event0("z", "1", `1`)})
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) || err.Error() != "publish to z: there is no such topic" {
			t.Errorf("publishing to a topic of another workflow: %v", err)
		}
		if diff := cmp.Diff(map[string]int64{"a": 1, "b": 2}, topicSeqs(t, db, w.ID)); diff != "" {
			t.Errorf("topics (-want +got):\n%s", diff)
		}
		if n := store.CountForTest(t, db, `select count(*) from events`); n != 3 || len(topicSeqs(t, db, foreign.ID)) != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// More events than fit one statement keep the order in which they were given,
// and a mixture of all cases is counted right.
func TestPublishManyEventsAtOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		var list []eventstore.NewEvent
		var want []string
		for i := range 1200 {
			id := fmt.Sprint("m", (i*7)%1200) // not in the order of the ids
			list, want = append(list, event0("in", id, `1`, fmt.Sprint("i", i%600), "all")), append(want, id)
		}
		if p := published(t, db, w.ID, list...); p != (eventstore.Published{New: 1200}) {
			t.Fatalf("%+v", p)
		}
		peek := func() []eventstore.Event {
			return mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
				return eventstore.In(tx).PeekEvents(ctx, w.ID, "in", 2000, 1<<30)
			})
		}
		all := peek()
		if got := messages(all); got != strings.Join(want, " ") {
			t.Errorf("the order is not that in which they were given: %.200s", got)
		}
		for i, e := range all {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d has number %d", i, e.Seq)
			}
		}
		for i := range list {
			if i%3 == 0 {
				list[i].Payload = json.RawMessage(`2`)
			}
			list[i].CausedBy = []string{"later"}
		}
		if p := published(t, db, w.ID, append(list, event0("in", "new", `1`))...); p != (eventstore.Published{New: 1, Changed: 400, Duplicate: 800}) {
			t.Errorf("again: %+v", p)
		}
		if got := messages(peek()); got != strings.Join(want, " ")+" new" {
			t.Errorf("publishing again changed the order: %.200s", got)
		}
		if n := store.CountForTest(t, db, `select count(*) from event_causes where input_id <> 'later'`); n != 0 {
			t.Errorf("%d links of causes that were replaced", n)
		}
		if n := store.CountForTest(t, db, `select count(*) from event_causes`); n != 1200 {
			t.Errorf("%d links, want 1200", n)
		}
	})
}

// 3.2: what comes from a skipped input is skipped at once.
func TestEventOfASkippedInputIsSkippedAtOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		registered(t, db, w.ID, "gone", "here")
		skip(t, db, "gone")
		published(t, db, w.ID, event0("in", "one", `1`, "gone"), event0("in", "two", `1`, "here", "gone"), event0("in", "three", `1`, "here"))
		for id, want := range map[string]eventstore.EventStatus{"one": eventstore.EventSkipped, "two": eventstore.EventSkipped, "three": eventstore.EventPending} {
			if e := eventOf(t, db, w.ID, "in", id); e.Status != want {
				t.Errorf("event %s is %s, want %s", id, e.Status, want)
			}
		}
	})
}

// What is known raises no topic's number, for nobody is to be woken; topics
// keep their numbers apart, and adding them again changes nothing.
func TestTopicNumbers(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "a", "b")
		other := deployed(t, db, "other", "a")
		expect := func(step string, want map[string]int64) {
			t.Helper()
			if diff := cmp.Diff(want, topicSeqs(t, db, w.ID)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step, diff)
			}
		}
		expect("at first", map[string]int64{"a": 0, "b": 0})
		published(t, db, w.ID, event0("a", "1", `1`), event0("a", "2", `1`))
		published(t, db, other.ID, event0("a", "1", `1`))
		expect("two new", map[string]int64{"a": 2, "b": 0})
		published(t, db, w.ID, event0("a", "1", `1`), event0("a", "2", `1`))
		expect("two duplicates", map[string]int64{"a": 2, "b": 0})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return eventstore.In(tx).EnsureTopics(ctx, w.ID, []string{"c", "a"})
		})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { return eventstore.In(tx).EnsureTopics(ctx, w.ID, nil) })
		expect("topics added", map[string]int64{"a": 2, "b": 0, "c": 0})
		published(t, db, w.ID, event0("a", "3", `1`))
		if e := eventOf(t, db, w.ID, "a", "3"); e.Seq != 3 {
			t.Errorf("the next event has number %d", e.Seq)
		}
	})
}

// Whoever saw a topic's number can see every event up to it, while many
// publish, publish in vain and fail: else a consumer would sleep over an event.
func TestReaderOfATopicsNumberSeesEveryEventUpToIt(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		var publishers, reader sync.WaitGroup
		for i := range 12 {
			publishers.Go(func() {
				for k := range 25 {
					err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
						list := []eventstore.NewEvent{event0("in", fmt.Sprint(i, "-", k), `1`)}
						if k%3 == 0 {
							list = append(list, event0("in", fmt.Sprint(i, "-", k, "-more"), `1`))
						}
						if k%5 == 4 { // known
							list = []eventstore.NewEvent{event0("in", fmt.Sprint(i, "-", k-1), `1`)}
						}
						if _, err := eventstore.In(tx).Publish(ctx, w.ID, "run", list); err != nil {
							return err
						}
						if _, _, err := eventstore.In(tx).CountWaiting(ctx, w.ID, []string{"in"}); err != nil { // time passes before the commit
							return err
						}
						if k%7 == 6 {
							return store.ErrBoomForTest
						}
						return nil
					}, store.Lazy)
					if err != nil && !errors.Is(err, store.ErrBoomForTest) {
						t.Errorf("publish: %v", err)
					}
				}
			})
		}
		seen := map[int64]int{} // by number: how many events up to it were seen
		stop := make(chan struct{})
		reader.Go(func() {
			for last := false; !last; {
				select {
				case <-stop:
					last = true
				default:
				}
				err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					seqs := map[string]int64{}
					err := errors.Join(eventstore.In(tx).AskTopicSeqs(ctx, w.ID, seqs), tx.Flush(ctx))
					if err != nil {
						return err
					}
					var n, above int
					err = tx.QueryRow(ctx, `select count(case when seq <= $2 then 1 end), count(case when seq > $2 then 1 end)
						from events where workflow_id = $1`, w.ID, seqs["in"]).Scan(&n, &above)
					if above > 0 {
						t.Errorf("%d events above the number of the topic", above)
					}
					seen[seqs["in"]] = n
					return err
				})
				if err != nil {
					t.Errorf("read: %v", err)
				}
			}
		})
		publishers.Wait()
		close(stop)
		reader.Wait()
		for seq, n := range seen {
			if all := store.CountForTest(t, db, `select count(*) from events where seq <= $1`, seq); all != n {
				t.Errorf("who saw number %d saw %d of the %d events up to it", seq, n, all)
			}
		}
		if len(seen) < 5 {
			t.Errorf("only %d states were seen", len(seen))
		}
		if double := store.CountForTest(t, db, `select count(*) - count(distinct seq) from events`); double != 0 {
			t.Errorf("%d events share a number", double)
		}
	})
}

// The same, step by step: the second publisher waits for the first, so the
// higher number is committed later.
func TestSecondPublisherWaitsForTheFirst(t *testing.T) {
	db := store.OpenForTest(t, pgtest.URL(t))
	w := deployed(t, db, "mail", "in", "other")
	publish := func(topics ...string) store.Func {
		return func(ctx context.Context, tx *store.Tx) error {
			var list []eventstore.NewEvent
			for _, topic := range topics {
				list = append(list, event0(topic, store.NewID(), `1`))
			}
			_, err := eventstore.In(tx).Publish(ctx, w.ID, "run", list)
			return err
		}
	}
	during(t, db, publish("in", "other"), publish("other", "in"))
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := publish("in")(ctx, tx); err != nil {
			return err
		}
		store.MustWriteForTest(t, db, publish("other")) // another topic does not wait
		return nil
	})
	if diff := cmp.Diff(map[string]int64{"in": 3, "other": 3}, topicSeqs(t, db, w.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Topics are taken in one order by everybody, whatever the order in the call,
// so that publishers do not deadlock.
func TestTopicsAreTakenInOneOrder(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		topics := []string{"B", "a", "c", "d", "e", "f", "g"}
		w := deployed(t, db, "mail", topics...)
		var list []eventstore.NewEvent
		for _, topic := range []string{"g", "a", "e", "B", "f", "c", "d"} {
			list = append(list, event0(topic, "m", `1`))
		}
		var taken []string
		for _, s := range store.Statements(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).Publish(ctx, w.ID, "run", list)
			return err
		}) {
			if strings.HasPrefix(s.Text, "update topics") {
				taken = append(taken, s.Args[1].(string))
			}
		}
		if diff := cmp.Diff(topics, taken); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// 3.2: causes follow from the events that a run named, whatever became of them.
func TestCausesAreThoseOfTheNamedEvents(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "a", "b")
		published(t, db, w.ID, event0("a", "1", `1`, "i3", "i1"), event0("a", "2", `1`, "i1"), event0("a", "3", `1`, "i9"), event0("b", "1", `1`, "i2"), event0("b", "2", `1`))
		moved(t, db, w.ID, "a", "1", eventstore.EventSkipped)
		moved(t, db, w.ID, "a", "2", eventstore.EventPending)
		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]string, error) {
			return eventstore.In(tx).CausesOf(ctx, w.ID, []eventstore.Reservation{{Topic: "a", IDs: []string{"1", "2", "nobody"}}, {Topic: "b", IDs: []string{"1", "2"}}, {Topic: "b", IDs: nil}})
		})
		if diff := cmp.Diff([]string{"i1", "i2", "i3"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		none := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]string, error) {
			return eventstore.In(tx).CausesOf(ctx, w.ID, nil)
		})
		if len(none) != 0 {
			t.Errorf("without events: %v", none)
		}
	})
}
