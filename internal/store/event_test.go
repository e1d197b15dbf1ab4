package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

func peeked(t testing.TB, db *store.DB, workflowID, topic string, limit int) string {
	t.Helper()
	return messages(mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
		return eventstore.In(tx).PeekEvents(ctx, workflowID, topic, limit, 1<<30)
	}))
}

// reserved tries to give events to a run, in a transaction that is given up
// when they cannot be had.
func reserved(t testing.TB, db *store.DB, workflowID, runID string, list ...eventstore.Reservation) error {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return eventstore.In(tx).ReserveEvents(ctx, workflowID, runID, list)
	})
	if !errors.Is(err, eventstore.ErrNotReserved) {
		return err
	}
	return db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return eventstore.In(tx).WhyNotReserved(ctx, workflowID, list)
	})
}

// statuses tells what became of the events of a topic, in their order.
func statuses(t testing.TB, db *store.DB, workflowID, topic string) string {
	t.Helper()
	list := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
		return eventstore.In(tx).ListEvents(ctx, workflowID, eventstore.EventFilter{Topic: topic}, 0, 1000)
	})
	slices.SortFunc(list, func(a, b eventstore.Event) int { return int(a.Seq - b.Seq) })
	var out []string
	for _, e := range list {
		s := e.MessageID + " " + string(e.Status)
		if e.ReservedBy != "" {
			s += " by " + e.ReservedBy
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// abc publishes the events a, b and c to the topic in.
func abc(t testing.TB, db *store.DB, workflowID string) {
	t.Helper()
	published(t, db, workflowID, event0("in", "a", `1`), event0("in", "b", `2`), event0("in", "c", `3`))
}

// 3.1: peek returns pending events, the oldest first, and no more than asked.
func TestPeekReturnsPendingEventsOldestFirst(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in", "out"), deployed(t, db, "other", "in")
		for _, id := range []string{"z", "m", "taken", "a", "ended", "k"} {
			published(t, db, w.ID, event0("in", id, `1`))
		}
		published(t, db, w.ID, event0("out", "of another topic", `1`))
		published(t, db, other.ID, event0("in", "of another workflow", `1`))
		moved(t, db, w.ID, "in", "taken", eventstore.EventReserved)
		moved(t, db, w.ID, "in", "ended", eventstore.EventConsumed)
		moved(t, db, w.ID, "in", "m", eventstore.EventPending) // released: its place stays
		for limit, want := range map[int]string{0: "", 1: "z", 3: "z m a", 100: "z m a k"} {
			if got := peeked(t, db, w.ID, "in", limit); got != want {
				t.Errorf("limit %d: %q, want %q", limit, got, want)
			}
		}
	})
}

// Events are found by message id whatever became of them, the oldest first and
// each once, also when more are asked for than fit one statement.
func TestEventsByMessageAreTheOldestFirst(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in"), deployed(t, db, "other", "in")
		var list []eventstore.NewEvent
		var ids []string
		for i := range 1100 {
			ids = append(ids, fmt.Sprintf("m%04d", 1099-i))
			list = append(list, event0("in", ids[i], `1`))
		}
		published(t, db, w.ID, list...)
		published(t, db, other.ID, event0("in", "foreign", `1`))
		moved(t, db, w.ID, "in", "m0000", eventstore.EventConsumed)
		moved(t, db, w.ID, "in", "m0001", eventstore.EventReserved)
		asked := slices.Concat([]string{"nobody", "foreign"}, slices.Sorted(slices.Values(ids)), ids[:600])
		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
			return eventstore.In(tx).EventsByMessage(ctx, w.ID, "in", asked)
		})
		if diff := cmp.Diff(strings.Join(ids, " "), messages(got)); diff != "" {
			t.Errorf("%d events (-want +got):\n%.500s", len(got), diff)
		}
		if asked[2] != "m0000" {
			t.Error("the list of the caller was sorted")
		}
		none := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
			return eventstore.In(tx).EventsByMessage(ctx, w.ID, "in", nil)
		})
		if len(none) != 0 {
			t.Errorf("%d events for no ids", len(none))
		}
	})
}

// 3.1: all events that a run names are reserved, or none.
func TestReserveTakesAllOrNone(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in", "out"), deployed(t, db, "other", "in")
		abc(t, db, w.ID)
		published(t, db, w.ID, event0("out", "x", `1`), event0("in", "taken", `1`), event0("in", "ended", `1`))
		published(t, db, other.ID, event0("in", "foreign", `1`))
		moved(t, db, w.ID, "in", "taken", eventstore.EventReserved)
		moved(t, db, w.ID, "in", "ended", eventstore.EventConsumed)
		before := statuses(t, db, w.ID, "in") + statuses(t, db, w.ID, "out")
		for _, c := range []struct {
			name string
			list []eventstore.Reservation
			want string
		}{
			{"missing", []eventstore.Reservation{{Topic: "in", IDs: []string{"a", "nobody", "b"}}}, `there is no event "nobody" in topic "in"`},
			{"of another topic", []eventstore.Reservation{{Topic: "in", IDs: []string{"a", "x"}}}, `there is no event "x" in topic "in"`},
			{"of another workflow", []eventstore.Reservation{{Topic: "in", IDs: []string{"foreign"}}}, `there is no event "foreign" in topic "in"`},
			{"topic that is not there", []eventstore.Reservation{{Topic: "in", IDs: []string{"a"}}, {Topic: "nowhere", IDs: []string{"a"}}}, `there is no event "a" in topic "nowhere"`},
			{"taken", []eventstore.Reservation{{Topic: "in", IDs: []string{"a", "b", "taken"}}}, `event "taken" of topic "in" is reserved, not pending`},
			{"ended", []eventstore.Reservation{{Topic: "out", IDs: []string{"x"}}, {Topic: "in", IDs: []string{"ended"}}}, `event "ended" of topic "in" is consumed, not pending`},
			{"twice in one list", []eventstore.Reservation{{Topic: "in", IDs: []string{"a", "b", "a"}}}, `an event of topic "in" is named twice`},
			{"twice in two lists", []eventstore.Reservation{{Topic: "in", IDs: []string{"a"}}, {Topic: "in", IDs: []string{"a", "b"}}}, `an event of topic "in" is named twice`},
		} {
			err := reserved(t, db, w.ID, "r", c.list...)
			if !errors.Is(err, pawl.ErrInvalid) || err.Error() != "reserve events: "+c.want {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			if after := statuses(t, db, w.ID, "in") + statuses(t, db, w.ID, "out"); after != before {
				t.Errorf("%s left %s", c.name, after)
			}
		}
		if err := reserved(t, db, w.ID, "r", eventstore.Reservation{Topic: "in", IDs: []string{"c", "a"}}, eventstore.Reservation{Topic: "out", IDs: []string{"x"}}, eventstore.Reservation{Topic: "in", IDs: nil}); err != nil {
			t.Errorf("reserve: %v", err)
		}
		want := "a reserved by r, b pending, c reserved by r, taken reserved by holder of taken, ended consumed by holder of ended"
		if got := statuses(t, db, w.ID, "in"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := statuses(t, db, w.ID, "out"); got != "x reserved by r" {
			t.Errorf("out: %s", got)
		}
	})
}

func TestReserveManyEvents(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		var list []eventstore.NewEvent
		var ids []string
		for i := range 1000 {
			ids = append(ids, fmt.Sprint("m", i))
			list = append(list, event0("in", ids[i], `1`))
		}
		published(t, db, w.ID, list...)
		twice := append(slices.Clone(ids), "m0") // far apart: not in one statement
		if err := reserved(t, db, w.ID, "r", eventstore.Reservation{Topic: "in", IDs: twice}); !errors.Is(err, pawl.ErrInvalid) || !strings.HasSuffix(err.Error(), "is named twice") {
			t.Errorf("one is named twice: %v", err)
		}
		if err := reserved(t, db, w.ID, "r", eventstore.Reservation{Topic: "in", IDs: ids}); err != nil {
			t.Errorf("reserve: %v", err)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if n, err := eventstore.In(tx).ReleaseEvents(ctx, "r"); err != nil || n != 1000 {
				t.Errorf("%d events were released: %v", n, err)
			}
			return nil
		})
		if got := peeked(t, db, w.ID, "in", 1000); got != strings.Join(ids, " ") {
			t.Errorf("the order changed: %.100s", got)
		}
	})
}

// What a run holds goes one way at a time: back, to the end, or to another run;
// and what others hold stays.
func TestHeldEventsMoveTogether(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for _, c := range []struct {
			name    string
			move    func(ctx context.Context, tx *store.Tx) (int64, error)
			want    string
			attempt int
		}{
			{"release", func(ctx context.Context, tx *store.Tx) (int64, error) {
				return eventstore.In(tx).ReleaseEvents(ctx, "r")
			}, "a pending, b reserved by s, c pending", 1},
			{"consume", func(ctx context.Context, tx *store.Tx) (int64, error) {
				var held int64
				err := tx.QueryRow(ctx, `select count(*) from events where reserved_by = 'r' and status = 'reserved'`).Scan(&held)
				return held, errors.Join(err, eventstore.In(tx).ConsumeEvents(ctx, "r"))
			}, "a consumed by r, b reserved by s, c consumed by r", 0},
			{"skip", func(ctx context.Context, tx *store.Tx) (int64, error) {
				return eventstore.In(tx).SkipReservedEvents(ctx, "r")
			}, "a skipped by r, b reserved by s, c skipped by r", 0},
			{"transfer", func(ctx context.Context, tx *store.Tx) (int64, error) {
				return eventstore.In(tx).TransferEvents(ctx, "r", "r2")
			}, "a reserved by r2, b reserved by s, c reserved by r2", 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := deployed(t, db, c.name, "in")
				abc(t, db, w.ID)
				if err := errors.Join(reserved(t, db, w.ID, "r", eventstore.Reservation{Topic: "in", IDs: []string{"a", "c"}}), reserved(t, db, w.ID, "s", eventstore.Reservation{Topic: "in", IDs: []string{"b"}})); err != nil {
					t.Fatal(err)
				}
				var moved, again int64
				store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
					tx.Now = store.AtForTest(9)
					if moved, err = c.move(ctx, tx); err != nil {
						return err
					}
					again, err = c.move(ctx, tx)
					return err
				})
				if got := statuses(t, db, w.ID, "in"); got != c.want || moved != 2 || again != 0 {
					t.Errorf("moved %d, then %d: %s", moved, again, got)
				}
				if e := eventOf(t, db, w.ID, "in", "a"); e.Attempt != c.attempt || e.UpdatedAt != store.AtForTest(9) {
					t.Errorf("%+v", e)
				}
				if e := eventOf(t, db, w.ID, "in", "b"); e.Attempt != 0 || e.UpdatedAt == store.AtForTest(9) {
					t.Errorf("what another run holds was changed: %+v", e)
				}
				store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { // the next case uses the same names
					for _, run := range []string{"r", "r2", "s"} {
						if err := eventstore.In(tx).ConsumeEvents(ctx, run); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	})
}

// 3.1: every release counts an attempt.
func TestReleaseCountsAttempts(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		abc(t, db, w.ID)
		for range 3 {
			moved(t, db, w.ID, "in", "b", eventstore.EventPending)
		}
		if e := eventOf(t, db, w.ID, "in", "b"); e.Attempt != 3 {
			t.Errorf("attempt %d", e.Attempt)
		}
		if got := peeked(t, db, w.ID, "in", 9); got != "a b c" {
			t.Errorf("the order is %s", got)
		}
	})
}

// one query finds the topics with pending events; topics without one are
// absent, and no topics need no query.
func TestOldestPendingIsOneQuery(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in", "out", "empty", "ended"), deployed(t, db, "other", "in")
		abc(t, db, w.ID)
		abc(t, db, other.ID)
		published(t, db, w.ID, event0("out", "x", `1`), event0("ended", "x", `1`), event0("ended", "y", `1`))
		moved(t, db, w.ID, "in", "a", eventstore.EventReserved)
		moved(t, db, w.ID, "ended", "x", eventstore.EventConsumed)
		moved(t, db, w.ID, "ended", "y", eventstore.EventSkipped)
		ids := map[string]int64{"inb": eventOf(t, db, w.ID, "in", "b").ID, "outx": eventOf(t, db, w.ID, "out", "x").ID}
		for _, c := range []struct {
			topics  []string
			want    map[string]string // the oldest of each
			queries int
		}{
			{[]string{"in", "out", "empty", "ended", "nowhere"}, map[string]string{"in": "b", "out": "x"}, 1},
			{[]string{"in"}, map[string]string{"in": "b"}, 1},
			{nil, nil, 0},
			{[]string{}, nil, 0},
		} {
			asked := store.Statements(t, db, func(ctx context.Context, tx *store.Tx) error {
				got, err := eventstore.In(tx).OldestPending(ctx, w.ID, c.topics)
				want := map[string]int64{}
				for topic, message := range c.want {
					want[topic] = ids[topic+message]
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q (-want +got):\n%s", c.topics, diff)
				}
				return err
			})
			if len(asked) != c.queries {
				t.Errorf("%q: %d queries, want %d", c.topics, len(asked), c.queries)
			}
		}
	})
}

// consumers are ordered by their oldest pending event, over all their
// topics.
func TestOldestPendingEventOverTopics(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "a", "b", "empty"), deployed(t, db, "other", "a")
		published(t, db, other.ID, event0("a", "foreign", `1`))
		for _, e := range []eventstore.NewEvent{event0("b", "1", `1`), event0("a", "2", `1`), event0("b", "3", `1`), event0("a", "4", `1`)} {
			published(t, db, w.ID, e)
		}
		expect := func(want string, topics ...string) {
			t.Helper()
			var id, wantID int64
			ages := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string]int64, error) {
				return eventstore.In(tx).OldestPending(ctx, w.ID, topics)
			})
			for _, age := range ages {
				if id == 0 || age < id {
					id = age
				}
			}
			if want != "" {
				wantID = eventOf(t, db, w.ID, want[:1], want[1:]).ID
			}
			if id != wantID {
				t.Errorf("oldest of %q is %d, want %d (%s)", topics, id, wantID, want)
			}
		}
		expect("b1", "a", "b", "empty")
		many := []string{"a", "b", "empty", "1", "2", "3", "4", "5", "6", "7"}
		if asked := store.Statements(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := eventstore.In(tx).OldestPending(ctx, w.ID, many)
			return err
		}); len(asked) != 1 { // T-138
			t.Errorf("ten topics need %d statements", len(asked))
		}
		expect("a2", "empty", "a")
		expect("", "empty", "nowhere")
		expect("")
		moved(t, db, w.ID, "b", "1", eventstore.EventConsumed)
		expect("a2", "a", "b")
		moved(t, db, w.ID, "a", "2", eventstore.EventReserved)
		expect("b3", "a", "b")
		expect("a4", "a")
	})
}

// A reservation is orphaned when its run ended, is not there, or has a
// successor; not while the run may go on.
func TestOrphanedReservationsAreFound(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "in"), deployed(t, db, "other", "in")
		hold := func(workflowID, name string, status pawl.Status, retryOf string) string {
			t.Helper()
			r := run0("lane of " + name)
			r.Status, r.RetryOf = status, retryOf
			r = insertRun(t, db, r)
			published(t, db, workflowID, event0("in", name, `1`))
			if err := reserved(t, db, workflowID, r.ID, eventstore.Reservation{Topic: "in", IDs: []string{name}}); err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		var want []eventstore.OrphanedReservation
		for _, status := range pawl.Statuses() {
			run := hold(w.ID, string(status), status, "")
			if status == pawl.StatusCommitted || status == pawl.StatusCancelled {
				want = append(want, eventstore.OrphanedReservation{WorkflowID: w.ID, Topic: "in", MessageID: string(status), RunID: run})
			}
		}
		before := hold(w.ID, "has a successor", pawl.StatusCrashed, "")
		want = append(want, eventstore.OrphanedReservation{WorkflowID: w.ID, Topic: "in", MessageID: "has a successor", RunID: before})
		hold(w.ID, "is the successor", pawl.StatusActive, before)
		want = append(want, eventstore.OrphanedReservation{WorkflowID: other.ID, Topic: "in", MessageID: "elsewhere", RunID: hold(other.ID, "elsewhere", pawl.StatusCommitted, "")})
		published(t, db, w.ID, event0("in", "of nobody", `1`), event0("in", "ended", `1`))
		moved(t, db, w.ID, "in", "of nobody", eventstore.EventReserved)
		moved(t, db, w.ID, "in", "ended", eventstore.EventConsumed)
		want = append(want, eventstore.OrphanedReservation{WorkflowID: w.ID, Topic: "in", MessageID: "of nobody", RunID: "holder of of nobody"})

		inThis := slices.DeleteFunc(slices.Clone(want), func(o eventstore.OrphanedReservation) bool { return o.WorkflowID != w.ID })
		for _, c := range []struct {
			workflowID string
			limit      int
			want       []eventstore.OrphanedReservation
		}{{"", 100, want}, {"", 2, want[:2]}, {w.ID, 100, inThis}, {other.ID, 100, want[3:4]}} {
			got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.OrphanedReservation, error) {
				return eventstore.In(tx).OrphanedReservations(ctx, c.workflowID, c.limit)
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("workflow %q, limit %d (-want +got):\n%s", c.workflowID, c.limit, diff)
			}
		}
	})
}

func TestEventsAreListedPageByPage(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail", "a", "b"), deployed(t, db, "other", "a")
		published(t, db, other.ID, event0("a", "foreign", `1`, "i0"))
		for i := range 24 {
			topic, id := []string{"a", "b"}[i%2], fmt.Sprint("m", i)
			published(t, db, w.ID, event0(topic, id, `1`, fmt.Sprint("i", i%3)))
			if i%4 < 2 {
				moved(t, db, w.ID, topic, id, eventstore.EventConsumed)
			}
		}
		for _, f := range []eventstore.EventFilter{
			{}, {Topic: "a"}, {Status: eventstore.EventConsumed}, {InputID: "i1"}, {Topic: "b", Status: eventstore.EventPending, InputID: "i2"}, {Topic: "nowhere"}, {InputID: "nobody"},
		} {
			var want []string
			for i := 23; i >= 0; i-- {
				status := eventstore.EventPending
				if i%4 < 2 {
					status = eventstore.EventConsumed
				}
				if (f.Topic == "" || f.Topic == []string{"a", "b"}[i%2]) && (f.Status == "" || f.Status == status) && (f.InputID == "" || f.InputID == fmt.Sprint("i", i%3)) {
					want = append(want, fmt.Sprint("m", i))
				}
			}
			var got []eventstore.Event
			for before := int64(0); ; {
				page := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]eventstore.Event, error) {
					return eventstore.In(tx).ListEvents(ctx, w.ID, f, before, 5)
				})
				got = append(got, page...)
				if len(page) < 5 {
					break
				}
				before = page[4].ID
			}
			if diff := cmp.Diff(strings.Join(want, " "), messages(got)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", f, diff)
			}
		}
	})
}

// Ids grow with time, also for events of one transaction: they order events of
// several topics.
func TestEventIDsGrow(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail", "in")
		var last int64
		for i := range 3 {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = tx.Now.Add(-time.Duration(i) * time.Hour) // a clock that goes back
				_, err := eventstore.In(tx).Publish(ctx, w.ID, "run", []eventstore.NewEvent{event0("in", fmt.Sprint("x", i), `1`), event0("in", fmt.Sprint("y", i), `1`)})
				return err
			})
			for _, name := range []string{"x", "y"} {
				id := eventOf(t, db, w.ID, "in", fmt.Sprint(name, i)).ID
				if id <= last {
					t.Errorf("id %d after %d", id, last)
				}
				last = id
			}
		}
	})
}
